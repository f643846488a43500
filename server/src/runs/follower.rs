//! Changes of runs for one client. The client receives every change or, if there are too many, only
//! the newest states.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::Runs;
use crate::stream::TextFrame;

/// The minimum time between two updates. Progress is only displayed, so the states in between can
/// be skipped.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// One client's position in the sequence of changes. The client first receives a frame for each
/// known run.
pub(crate) struct RunFollower {
    runs: Arc<Runs>,
    changes: watch::Receiver<u64>,
    seen: u64,
    not_before: Instant,
}

impl RunFollower {
    pub(crate) fn new(runs: &Arc<Runs>) -> Self {
        Self {
            runs: Arc::clone(runs),
            changes: runs.changes(),
            seen: 0,
            not_before: Instant::now(),
        }
    }

    /// Waits until a run has changed, and returns a frame for each changed run. If the future is
    /// canceled, no change is lost.
    pub(crate) async fn next_changes(&mut self) -> Vec<TextFrame> {
        sleep_until(self.not_before).await;
        // Waiting fails only if the sender is dropped, but `self` owns the runs.
        let _ = self.changes.wait_for(|change| *change > self.seen).await;
        let change = *self.changes.borrow_and_update();
        let frames = self.runs.list_changed_runs(self.seen);
        self.seen = change;
        self.not_before = Instant::now() + MIN_INTERVAL;
        frames
    }
}
