//! The number of viewers. Without viewers, the collector takes expensive readings only as often as
//! the history needs them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::lock;

/// The time for which a client counts as a viewer after requesting current data.
const LOOKS_FOR: Duration = Duration::from_secs(10);

/// The current viewers of the server.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    watchers: watch::Sender<usize>,
    /// The time until which the last request for current data counts as a viewer.
    looked_until: Mutex<Option<Instant>>,
}

/// A viewer, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watcher(Arc<Watching>);

impl Watching {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns a channel with the number of viewers.
    pub(crate) fn watchers(&self) -> watch::Receiver<usize> {
        self.watchers.subscribe()
    }

    /// Adds a viewer.
    pub(crate) fn begin(self: &Arc<Self>) -> Watcher {
        self.watchers.send_modify(|watchers| *watchers += 1);
        Watcher(Arc::clone(self))
    }

    /// Counts a request for current data as a viewer for some time.
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
