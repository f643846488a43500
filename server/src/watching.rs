//! Whether somebody watches: while nobody does, the collector reads what is dear no more often than
//! history needs it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::lock;

/// Whoever asked how things are now may do so again.
const LOOKS_FOR: Duration = Duration::from_secs(10);

/// Who watches.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    watchers: watch::Sender<usize>,
    /// Until when somebody counts who asked a moment ago.
    looked_until: Mutex<Option<Instant>>,
}

/// Somebody who watches, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Watcher(Arc<Watching>);

impl Watching {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// How many watch.
    pub(crate) fn watchers(&self) -> watch::Receiver<usize> {
        self.watchers.subscribe()
    }

    /// One more watches from now on.
    pub(crate) fn begin(self: &Arc<Self>) -> Watcher {
        self.watchers.send_modify(|watchers| *watchers += 1);
        Watcher(Arc::clone(self))
    }

    /// Somebody asks how things are now, and counts for a while as one who watches.
    pub(crate) fn look(self: &Arc<Self>) {
        self.look_for(LOOKS_FOR);
    }

    fn look_for(self: &Arc<Self>, time: Duration) {
        let until = Instant::now() + time;
        let counts = lock::lock(&self.looked_until).replace(until).is_some();
        if !counts {
            tokio::spawn(Arc::clone(self).end_look(self.begin()));
        }
    }

    async fn end_look(self: Arc<Self>, _watcher: Watcher) {
        loop {
            let until = {
                let mut until = lock::lock(&self.looked_until);
                *until = until.filter(|until| *until > Instant::now());
                *until
            };
            match until {
                Some(until) => sleep_until(until).await,
                None => return,
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.watchers.send_modify(|watchers| *watchers -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn each_who_watches_counts_until_they_go() {
        let watching = Watching::new();
        let mut watchers = watching.watchers();
        let both = (watching.begin(), watching.begin());
        assert_eq!(*watchers.borrow_and_update(), 2);
        drop(both);
        assert_eq!(*watchers.borrow_and_update(), 0);
    }

    #[tokio::test]
    async fn who_looked_counts_for_a_while_behind_the_last_time() {
        let watching = Watching::new();
        let mut watchers = watching.watchers();
        let begun = Instant::now();
        watching.look_for(MS(300));
        sleep(MS(100)).await;
        watching.look_for(MS(600));
        assert_eq!(
            *watchers.borrow_and_update(),
            1,
            "looking twice is one who watches"
        );
        watchers.changed().await.unwrap();
        assert_eq!(*watchers.borrow_and_update(), 0);
        assert!(begun.elapsed() >= MS(700));
        watching.look();
        assert_eq!(
            *watchers.borrow_and_update(),
            1,
            "the next time counts again"
        );
    }
}
