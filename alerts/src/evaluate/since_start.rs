//! The time for which each GPU has responded since the collector was started. A restarted collector
//! needs minutes to detect conditions again. Until then, an absent condition proves nothing, so a
//! firing alert continues.

use std::collections::BTreeMap;

use gpumon_probe::{
    derive::{ConditionSettings, Moment, detection_time_ms},
    model::{GpuSample, Health},
};

use super::{EvaluationInput, observe, place::AlertTarget};
use crate::rules::{RuleCheck, Watch};

#[derive(Debug, Default)]
pub(super) struct TimeSinceStart {
    started_ms: Option<u64>,
    last: Option<Moment>,
    /// The time for which each GPU has responded, in milliseconds, by GPU index.
    answered_ms: BTreeMap<u32, u64>,
}

impl TimeSinceStart {
    /// Adds the time since the previous call for every GPU that responds now.
    pub(super) fn update(&mut self, readings: &EvaluationInput<'_>, now: Moment) {
        if self.started_ms.replace(readings.started_ms) != Some(readings.started_ms) {
            self.answered_ms.clear();
        }
        let step_ms = self.last.replace(now).map_or(0, |last| now.ms_since(last));
        for gpu in sample_gpus(readings)
            .iter()
            .filter(|gpu| gpu.health == Health::Ok)
        {
            *self.answered_ms.entry(gpu.index).or_default() += step_ms;
        }
    }

    /// Returns `true` if the rule's condition is absent, but the collector may not have had enough
    /// time to detect it. A sleeping GPU has no conditions.
    pub(super) fn may_condition_be_undetected(
        &self,
        check: &RuleCheck,
        place: &AlertTarget,
        readings: &EvaluationInput<'_>,
        settings: &ConditionSettings,
    ) -> bool {
        let (Watch::Condition { kind, min_severity }, AlertTarget::Gpu(index)) =
            (&check.watch, place)
        else {
            return false;
        };
        let Some(gpu) = sample_gpus(readings).iter().find(|gpu| gpu.index == *index) else {
            return false;
        };
        let answered_ms = self.answered_ms.get(index).copied().unwrap_or(0);
        !matches!(gpu.health, Health::Asleep { .. })
            && observe::find_condition(gpu, *kind, *min_severity).is_none()
            && answered_ms < detection_time_ms(*kind, settings)
    }
}

fn sample_gpus<'a>(readings: &EvaluationInput<'a>) -> &'a [GpuSample] {
    readings.sample.map_or(&[], |sample| &sample.gpus)
}
