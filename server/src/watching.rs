//! The number of viewers. Without viewers, the collector takes expensive readings only as often as
//! the history needs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::lock;

/// The time for which a client counts as a viewer after it has requested current data.
const REQUEST_VIEW_DURATION: Duration = Duration::from_secs(10);

/// A counter of the server's current viewers.
#[derive(Debug, Default)]
pub(crate) struct ViewerCounter {
    watchers: watch::Sender<usize>,
    /// The time until which a client that requested current data still counts as a viewer.
    looked_until: Mutex<Option<Instant>>,
}

/// A guard that counts as a viewer until it is dropped.
#[derive(Debug)]
pub(crate) struct ViewerGuard(Arc<ViewerCounter>);

impl ViewerCounter {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns a channel with the number of viewers.
    pub(crate) fn viewer_count(&self) -> watch::Receiver<usize> {
        self.watchers.subscribe()
    }

    /// Adds a viewer.
    pub(crate) fn add_viewer(self: &Arc<Self>) -> ViewerGuard {
        self.watchers.send_modify(|watchers| *watchers += 1);
        ViewerGuard(Arc::clone(self))
    }

    /// Counts the client as a viewer for some time, because it requested current data.
    pub(crate) fn record_request(self: &Arc<Self>) {
        self.add_viewer_for(REQUEST_VIEW_DURATION);
    }

    fn add_viewer_for(self: &Arc<Self>, time: Duration) {
        let until = Instant::now() + time;
        let counts = lock::lock(&self.looked_until).replace(until).is_some();
        if !counts {
            tokio::spawn(Arc::clone(self).remove_viewer_when_expired(self.add_viewer()));
        }
    }

    async fn remove_viewer_when_expired(self: Arc<Self>, _watcher: ViewerGuard) {
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

impl Drop for ViewerGuard {
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
    fn viewer_counts_until_dropped() {
        let watching = ViewerCounter::new();
        let mut watchers = watching.viewer_count();
        let both = (watching.add_viewer(), watching.add_viewer());
        assert_eq!(*watchers.borrow_and_update(), 2);
        drop(both);
        assert_eq!(*watchers.borrow_and_update(), 0);
    }

    #[tokio::test]
    async fn request_counts_as_viewer_for_a_while() {
        let watching = ViewerCounter::new();
        let mut watchers = watching.viewer_count();
        let begun = Instant::now();
        watching.add_viewer_for(MS(300));
        sleep(MS(100)).await;
        watching.add_viewer_for(MS(600));
        assert_eq!(
            *watchers.borrow_and_update(),
            1,
            "looking twice is one who watches"
        );
        watchers.changed().await.unwrap();
        assert_eq!(*watchers.borrow_and_update(), 0);
        assert!(begun.elapsed() >= MS(700));
        watching.record_request();
        assert_eq!(
            *watchers.borrow_and_update(),
            1,
            "the next time counts again"
        );
    }
}
