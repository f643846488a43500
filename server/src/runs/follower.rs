//! Changes of runs for one client: every change, or only the newest states if there are too many.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::Runs;
use crate::stream::TextFrame;

/// The minimum time between two updates. Progress is only displayed, so intermediate states can be
/// skipped.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// One client's position in the changes. Its first frames are all known runs.
pub(crate) struct Follower {
    runs: Arc<Runs>,
    changes: watch::Receiver<u64>,
    seen: u64,
    not_before: Instant,
}

impl Follower {
    pub(crate) fn new(runs: &Arc<Runs>) -> Self {
        Self {
            runs: Arc::clone(runs),
            changes: runs.changes(),
            seen: 0,
            not_before: Instant::now(),
        }
    }

    /// Waits until a run has changed, and returns a frame for each changed run. Canceling this
    /// loses nothing.
    pub(crate) async fn next(&mut self) -> Vec<TextFrame> {
        sleep_until(self.not_before).await;
        // The sender cannot be dropped, because `self` owns the runs.
        let _ = self.changes.wait_for(|change| *change > self.seen).await;
        let change = *self.changes.borrow_and_update();
        let frames = self.runs.changed_since(self.seen);
        self.seen = change;
        self.not_before = Instant::now() + MIN_INTERVAL;
        frames
    }
}
