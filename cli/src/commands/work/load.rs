//! What a GPU said of itself while it worked: clocks, power, energy, temperature, what held it down, who else was there.

use std::collections::BTreeMap;

use gpumon_probe::model::{GpuSample, Reading, ThrottleReason};
use serde::{Deserialize, Serialize};

use super::others::Others;

/// The energy counter moves ten times a second: of less than three of its steps nothing is told.
const SHORTEST_MS: u64 = 300;

/// What the readings of a stretch of time say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Load {
    /// How many readings there are.
    pub(crate) samples: usize,
    /// Clock of the multiprocessors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sm_mhz: Option<Range>,
    /// The board's draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) watts: Option<Range>,
    /// What the board used in all of the time, by its own counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) joules: Option<f64>,
    /// The chip's temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) celsius: Option<Range>,
    /// The share of what the chip does at the clock that it had; left out where no clock changes that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) share_at_clock: Option<f64>,
    /// In how many of the readings which reason held the clocks down.
    pub(crate) held_down_by: BTreeMap<String, usize>,
    /// Who else computed there, as `others` and `others_omitted`.
    #[serde(flatten)]
    pub(crate) others: Others,
}

/// What a reading was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Range {
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) max: f64,
}

impl Load {
    /// Of the samples from when to when, in ms since 1970; `None` where there is none. `before` are the PIDs of before
    /// the work.
    pub(super) fn of(samples: &[GpuSample], from_ms: u64, to_ms: u64, before: &[u32]) -> Option<Self> {
        let all = || samples.iter().filter(|sample| (from_ms..=to_ms).contains(&sample.at_ms));
        let reasons = all().filter_map(|sample| sample.throttle_reasons.value()).flatten();
        let mut held_down_by = BTreeMap::new();
        for reason in reasons.filter(|reason| **reason != ThrottleReason::GpuIdle) {
            let name = serde_json::to_value(reason).ok()?.as_str()?.to_owned();
            *held_down_by.entry(name).or_default() += 1;
        }
        let count = all().count();
        (count > 0).then(|| Self {
            samples: count,
            sm_mhz: Range::of(all().filter_map(|sample| fresh(&sample.clocks.sm_mhz)).map(f64::from)),
            watts: Range::of(all().filter_map(watts)),
            joules: joules(all(), from_ms, to_ms),
            celsius: Range::of(all().filter_map(|sample| fresh(&sample.temperature.gpu_celsius))),
            share_at_clock: None,
            held_down_by,
            others: Others::than_this_process(all(), before),
        })
    }

    /// What held the clocks down in most of the time, by NVML's name.
    pub(crate) fn held_down_mostly_by(&self) -> Option<&str> {
        let (name, count) = self.held_down_by.iter().max_by_key(|(_, count)| **count)?;
        (count * 2 > self.samples).then_some(name)
    }
}

/// The board's draw at this very moment.
pub(super) fn watts(sample: &GpuSample) -> Option<f64> {
    fresh(&sample.power.instant_watts).or_else(|| fresh(&sample.power.draw_watts))
}

/// What the counter says of the time between the first and the last reading, for all of the time.
fn joules<'a>(samples: impl Iterator<Item = &'a GpuSample>, from_ms: u64, to_ms: u64) -> Option<f64> {
    let counts: Vec<_> =
        samples.filter_map(|sample| Some((sample.at_ms, fresh(&sample.power.energy_joules_total)?))).collect();
    let ((begun_ms, first), (ended_ms, last)) = (counts.first()?, counts.last()?);
    let (read_ms, all_ms) = (ended_ms - begun_ms, to_ms - from_ms);
    (read_ms >= SHORTEST_MS && read_ms * 2 >= all_ms).then(|| (last - first) / read_ms as f64 * all_ms as f64)
}

/// A value of this very moment.
pub(super) fn fresh<T: Copy>(reading: &Reading<T>) -> Option<T> {
    match reading {
        Reading::Now(value) => Some(*value),
        Reading::Earlier { .. } | Reading::Absent(_) => None,
    }
}

impl Range {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut count, mut sum, mut min, mut max) = (0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            (count, sum, min, max) = (count + 1.0, sum + value, min.min(value), max.max(value));
        }
        (count > 0.0).then(|| Self { min, mean: sum / count, max })
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Health};

    use super::*;

    fn sample(at_ms: u64) -> GpuSample {
        GpuSample::absent(0, None, at_ms, Health::Ok, &Absence::Unknown)
    }

    #[test]
    fn a_stretch_of_time_is_summed_up_and_an_empty_one_is_nothing() {
        let mut hot = sample(10);
        hot.power.draw_watts = Reading::Now(500.0);
        hot.power.instant_watts = Reading::Now(690.0);
        hot.throttle_reasons = Reading::Now(vec![ThrottleReason::SwPowerCap, ThrottleReason::GpuIdle]);
        let mut cool = sample(20);
        cool.power.draw_watts = Reading::Now(120.0);
        cool.temperature.gpu_celsius = Reading::Earlier { value: 99.0, at_ms: 1 };
        let samples = [sample(5), hot.clone(), cool, sample(25)];
        let load = Load::of(&samples, 6, 24, &[]).unwrap();
        assert_eq!((load.samples, load.watts), (2, Some(Range { min: 120.0, mean: 405.0, max: 690.0 })));
        assert_eq!((load.sm_mhz, load.celsius, load.joules), (None, None, None), "what is not known is left out");
        assert_eq!(load.held_down_by, BTreeMap::from([("sw_power_cap".to_owned(), 1)]));
        assert_eq!(load.held_down_mostly_by(), None);
        assert_eq!(Load::of(&[hot], 10, 10, &[]).unwrap().held_down_mostly_by(), Some("sw_power_cap"));
        assert_eq!(Load::of(&samples, 11, 19, &[]), None);
    }

    #[test]
    fn energy_is_told_of_a_stretch_that_was_read_for_long_enough() {
        let counted = |at_ms, joules| {
            let mut sample = sample(at_ms);
            sample.power.energy_joules_total = Reading::Now(joules);
            sample
        };
        let of = |samples: &[GpuSample], to_ms| Load::of(samples, 0, to_ms, &[]).unwrap().joules;
        let samples = [counted(100, 1000.0), counted(300, 1100.0), counted(500, 1200.0)];
        assert_eq!(of(&samples, 600), Some(300.0));
        assert_eq!(of(&samples, 1000), None, "less than half of it was read");
        assert_eq!(of(&samples[..2], 350), None, "too short");
    }
}
