//! The runs as one client follows them: each change, or only the newest where they come too fast.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::Runs;
use crate::stream::TextFrame;

/// Progress is looked at, not recorded.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// One client's place among the changes. The first frames that it gets are all runs that are known.
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

    /// Waits until a run has changed, and gives each that has as a frame. Whoever stops waiting
    /// loses nothing.
    pub(crate) async fn next(&mut self) -> Vec<TextFrame> {
        sleep_until(self.not_before).await;
        // The sender lives as long as the runs do, and those as long as this.
        let _ = self.changes.wait_for(|change| *change > self.seen).await;
        let change = *self.changes.borrow_and_update();
        let frames = self.runs.changed_since(self.seen);
        self.seen = change;
        self.not_before = Instant::now() + MIN_INTERVAL;
        frames
    }
}
