//! The time for which each GPU has answered since the collector was started. A restarted collector
//! needs minutes to find conditions again. Until then, a missing condition proves nothing, and a
//! firing alert continues.

use std::collections::BTreeMap;

use gpumon_probe::{
    derive::{ConditionSettings, Moment, found_after_ms},
    model::{GpuSample, Health},
};

use super::{Readings, observe, place::Place};
use crate::rules::{Check, Watch};

#[derive(Debug, Default)]
pub(super) struct SinceStart {
    started_ms: Option<u64>,
    last: Option<Moment>,
    /// Milliseconds by GPU index.
    answered_ms: BTreeMap<u32, u64>,
}

impl SinceStart {
    /// Adds the time since the previous call for all GPUs that answer now.
    pub(super) fn update(&mut self, readings: &Readings<'_>, now: Moment) {
        if self.started_ms.replace(readings.started_ms) != Some(readings.started_ms) {
            self.answered_ms.clear();
        }
        let step_ms = self.last.replace(now).map_or(0, |last| now.since(last));
        for gpu in gpus(readings).iter().filter(|gpu| gpu.health == Health::Ok) {
            *self.answered_ms.entry(gpu.index).or_default() += step_ms;
        }
    }

    /// Returns `true` if a rule is about a condition that is absent, but may not have been found
    /// yet. A sleeping GPU has no conditions.
    pub(super) fn may_be_unfound(
        &self,
        check: &Check,
        place: &Place,
        readings: &Readings<'_>,
        settings: &ConditionSettings,
    ) -> bool {
        let (Watch::Condition { kind, min_severity }, Place::Gpu(index)) = (&check.watch, place)
        else {
            return false;
        };
        let Some(gpu) = gpus(readings).iter().find(|gpu| gpu.index == *index) else {
            return false;
        };
        let answered_ms = self.answered_ms.get(index).copied().unwrap_or(0);
        !matches!(gpu.health, Health::Asleep { .. })
            && observe::condition(gpu, *kind, *min_severity).is_none()
            && answered_ms < found_after_ms(*kind, settings)
    }
}

fn gpus<'a>(readings: &Readings<'a>) -> &'a [GpuSample] {
    readings.sample.map_or(&[], |sample| &sample.gpus)
}
