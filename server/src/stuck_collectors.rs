//! Collectors that were killed but do not exit, because they are stuck in the driver.

use std::time::Duration;

use tokio::{process::Child, time::timeout};

/// The time after which a killed collector counts as stuck.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Killed collectors that may still hold the GPUs.
#[derive(Debug, Default)]
pub(crate) struct StuckCollectors(Vec<Child>);

impl StuckCollectors {
    /// Kills a collector, and waits briefly for its end. A collector that does not end is kept as
    /// stuck.
    pub(crate) async fn kill(&mut self, mut child: Child) {
        // An error means that the process has already ended.
        let _ = child.start_kill();
        if timeout(KILL_TIMEOUT, child.wait()).await.is_err() {
            self.0.push(child);
        }
    }

    pub(crate) fn find_pids(&mut self) -> Vec<u32> {
        self.0
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        self.0.iter().filter_map(Child::id).collect()
    }
}
