//! The hub's data for the evaluation of alert rules.

use std::sync::Arc;

use gpumon_probe::model::{Inventory, Sample};

use super::Hub;
use crate::frame::{CollectorState, late_ms};

/// The data for the evaluation of alert rules.
pub(crate) struct KnownReadings {
    /// The newest sample, unless it is too old to show the current state.
    pub(crate) sample: Option<Arc<Sample>>,
    pub(crate) inventory: Option<Arc<Inventory>>,
    /// Whether GPUs are being read. This is `false` during a pause, and before the first sample
    /// after a start.
    pub(crate) is_watched: bool,
    /// The time since which the collector has its state.
    pub(crate) started_ms: u64,
}

impl Hub {
    /// Returns the data for alert rules. An immediate restart of the collector does not count as a
    /// gap.
    pub(crate) fn readings(&self, now_ms: u64) -> KnownReadings {
        self.read(|state| {
            let interval_ms = state
                .sample
                .as_ref()
                .map_or(0, |sample| u64::from(sample.interval_ms));
            let is_recent = |at_ms: u64| now_ms.saturating_sub(at_ms) < late_ms(interval_ms);
            let sample = state
                .sample
                .clone()
                .filter(|sample| is_recent(sample.at_ms));
            let is_watched = match state.collector.state {
                CollectorState::Paused | CollectorState::Starting => false,
                CollectorState::Running => sample.is_some() || !is_recent(state.collector.since_ms),
                CollectorState::Restarting | CollectorState::Unavailable => true,
            };
            let started_ms = state.collector.since_ms;
            KnownReadings {
                sample,
                inventory: state.inventory.clone(),
                is_watched,
                started_ms,
            }
        })
    }
}
