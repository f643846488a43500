//! The hub's data for evaluating alert rules.

use std::sync::Arc;

use gpumon_probe::model::{Inventory, Sample};

use super::Hub;
use crate::frame::{CollectorState, late_sample_age_ms};

/// The data needed to evaluate alert rules.
pub(crate) struct AlertReadings {
    /// The newest sample, unless it is too old to show the current state.
    pub(crate) sample: Option<Arc<Sample>>,
    pub(crate) inventory: Option<Arc<Inventory>>,
    /// Whether GPUs are being read. This is `false` while the collector is paused or has not sent
    /// its first sample.
    pub(crate) is_watched: bool,
    /// The time since which the collector has been in its current state.
    pub(crate) started_ms: u64,
}

impl Hub {
    /// Returns the data for evaluating alert rules. An immediate restart of the collector does not
    /// count as a gap in the readings.
    pub(crate) fn alert_readings(&self, now_ms: u64) -> AlertReadings {
        self.read_state(|state| {
            let interval_ms = state
                .sample
                .as_ref()
                .map_or(0, |sample| u64::from(sample.interval_ms));
            let is_recent =
                |at_ms: u64| now_ms.saturating_sub(at_ms) < late_sample_age_ms(interval_ms);
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
            AlertReadings {
                sample,
                inventory: state.inventory.clone(),
                is_watched,
                started_ms,
            }
        })
    }
}
