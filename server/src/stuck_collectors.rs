//! Collectors that were killed but do not end, because they are stuck in the driver.

use std::time::Duration;

use tokio::{process::Child, time::timeout};

/// The time after which a killed collector counts as stuck.
const PATIENCE: Duration = Duration::from_secs(1);

/// The collectors that still hold the GPUs.
#[derive(Debug, Default)]
pub(crate) struct StuckCollectors(Vec<Child>);

impl StuckCollectors {
    /// Kills a collector unless it has ended, and waits for a moment for its end.
    pub(crate) async fn kill(&mut self, mut child: Child) {
        // An error means that the process has ended.
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
