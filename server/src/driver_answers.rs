//! The driver's answers for tools of its vendor.

use gpumon_probe::{model::Platform, vendor::GpuAnswers};
use serde::{Deserialize, Serialize};

use crate::frame::{CollectorState, CollectorStatus};

/// What the driver answered the collector, as of its newest sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// Whether samples are coming.
    pub collector: CollectorStatus,
    /// What the answers come from; `None` until the collector has told it, and while the driver
    /// gives the GPUs other indices.
    pub platform: Option<Platform>,
    /// When the newest sample was taken; `None` until there is one.
    pub at_ms: Option<u64>,
    /// The interval of samples then.
    pub interval_ms: u32,
    /// GPU by GPU.
    pub gpus: Vec<GpuAnswers>,
}

impl Answers {
    /// The answers and their platform, if they are recent at `now_ms`: the newest sample is at most
    /// one interval and half a second old, and never older than one and a half seconds.
    pub fn fresh(self, now_ms: u64) -> Option<(Platform, Vec<GpuAnswers>)> {
        let patience = 500 + u64::from(self.interval_ms).min(1000);
        let is_fresh = now_ms.saturating_sub(self.at_ms?) <= patience;
        (is_fresh && self.collector.state == CollectorState::Running)
            .then(|| self.platform.map(|platform| (platform, self.gpus)))?
    }
}
