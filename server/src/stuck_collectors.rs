//! Collectors that were killed and do not die: a process that is stuck in the driver cannot.

use std::time::Duration;

use tokio::{process::Child, time::timeout};

/// How long a killed collector may take to end before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(1);

/// Those that still hold the GPUs.
#[derive(Debug, Default)]
pub(crate) struct StuckCollectors(Vec<Child>);

impl StuckCollectors {
    /// Kills a collector, if it has not ended, and waits a little for its end.
    pub(crate) async fn kill(&mut self, mut child: Child) {
        // An error means that it has ended.
        let _ = child.start_kill();
        if timeout(PATIENCE, child.wait()).await.is_err() {
            self.0.push(child);
        }
    }

    pub(crate) fn pids(&mut self) -> Vec<u32> {
        self.0
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        self.0.iter().filter_map(Child::id).collect()
    }
}
