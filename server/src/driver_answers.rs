//! The driver's answers, as used by gpumon's `smi` command.

use gpumon_probe::{model::Platform, vendor::GpuAnswers};
use serde::{Deserialize, Serialize};

use crate::frame::{CollectorState, CollectorStatus};

/// The driver's answers to the collector at the newest sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// The state of the collector.
    pub collector: CollectorStatus,
    /// The platform that the answers belong to. `None` until the collector has sent it, and while
    /// the driver numbers the GPUs differently.
    pub platform: Option<Platform>,
    /// The time of the newest sample, or `None` if there is none.
    pub at_ms: Option<u64>,
    /// The sampling interval at the time of the newest sample, in milliseconds.
    pub interval_ms: u32,
    /// The driver's answers for each GPU.
    pub gpus: Vec<GpuAnswers>,
}

impl Answers {
    /// Returns the answers and their platform if they are recent at `now_ms`. The newest sample may
    /// be older by at most one interval plus half a second, and never by more than one and a half
    /// seconds.
    pub fn into_recent_answers(self, now_ms: u64) -> Option<(Platform, Vec<GpuAnswers>)> {
        let patience = 500 + u64::from(self.interval_ms).min(1000);
        let is_fresh = now_ms.saturating_sub(self.at_ms?) <= patience;
        (is_fresh && self.collector.state == CollectorState::Running)
            .then(|| self.platform.map(|platform| (platform, self.gpus)))?
    }
}
