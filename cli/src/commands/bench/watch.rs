//! What a GPU says of itself while it works: clocks, power, temperature, and what holds it down.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use gpumon_probe::{
    model::{GpuSample, Health, Reading, Record, ThrottleReason},
    owner::CommandLines,
    sampler::{self, Options},
    source::Extent,
};
use serde::Serialize;

use crate::options::SourceArgs;

/// As often as a GPU is read for anybody; what that costs does not show in the times.
const INTERVAL: Duration = Duration::from_millis(100);
/// As many samples as are of use: of ten minutes.
const KEPT: usize = 6000;

/// NVML's readings of one GPU, taken on a thread that may hang without holding anything up.
pub(super) struct Watch {
    samples: Arc<Mutex<Vec<GpuSample>>>,
}

/// What they say of a stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Load {
    /// How many readings there are.
    samples: usize,
    /// Clock of the multiprocessors.
    #[serde(skip_serializing_if = "Option::is_none")]
    sm_mhz: Option<Range>,
    /// The board's draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    watts: Option<Range>,
    /// The chip's temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    celsius: Option<Range>,
    /// In how many of the readings which reason held the clocks down.
    held_down_by: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Range {
    min: f64,
    max: f64,
}

impl Watch {
    /// Begins to read the GPU with this UUID. Where NVML does not know it, or is not there, nothing is ever read.
    pub(super) fn start(source: &SourceArgs, uuid: &str) -> Self {
        let samples = Arc::new(Mutex::new(Vec::new()));
        let (kept, source, uuid) = (Arc::clone(&samples), source.clone(), uuid.to_owned());
        thread::spawn(move || {
            let options = Options { extent: Extent::Glance, ..Options::new(INTERVAL, CommandLines::Own) };
            let keep = |record: &Record| {
                if let Record::Sample(sample) = record {
                    let gpu = sample.gpus.iter().find(|gpu| gpu.uuid.as_deref() == Some(&uuid));
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.extend(gpu.filter(|gpu| gpu.health == Health::Ok).cloned());
                    let surplus = kept.len().saturating_sub(KEPT);
                    kept.drain(..surplus);
                }
                ControlFlow::Continue(())
            };
            // Times are true without it; `gpumon doctor` says why there is nothing to read.
            let _ = source.open().and_then(|source| sampler::run(&source, &options, keep));
        });
        Self { samples }
    }

    /// What was read from when to when, in ms since 1970; `None` where nothing was.
    pub(super) fn between(&self, from_ms: u64, to_ms: u64) -> Option<Load> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        Load::of(samples.iter().filter(|sample| (from_ms..=to_ms).contains(&sample.at_ms)))
    }
}

impl Load {
    fn of<'a>(samples: impl Iterator<Item = &'a GpuSample>) -> Option<Self> {
        let samples: Vec<_> = samples.collect();
        let mut held_down_by = BTreeMap::new();
        let reasons = samples.iter().filter_map(|sample| sample.throttle_reasons.value()).flatten();
        for reason in reasons.filter(|reason| **reason != ThrottleReason::GpuIdle) {
            let name = serde_json::to_value(reason).ok()?.as_str()?.to_owned();
            *held_down_by.entry(name).or_default() += 1;
        }
        let watts = |sample: &GpuSample| {
            let power = &sample.power;
            fresh(&power.instant_watts).or_else(|| fresh(&power.draw_watts))
        };
        (!samples.is_empty()).then(|| Self {
            samples: samples.len(),
            sm_mhz: range(samples.iter().filter_map(|sample| fresh(&sample.clocks.sm_mhz)).map(f64::from)),
            watts: range(samples.iter().filter_map(|sample| watts(sample))),
            celsius: range(samples.iter().filter_map(|sample| fresh(&sample.temperature.gpu_celsius))),
            held_down_by,
        })
    }
}

/// A value of this very moment.
fn fresh<T: Copy>(reading: &Reading<T>) -> Option<T> {
    match reading {
        Reading::Now(value) => Some(*value),
        Reading::Earlier { .. } | Reading::Absent(_) => None,
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<Range> {
    values.fold(None, |range: Option<Range>, value| {
        let Range { min, max } = range.unwrap_or(Range { min: value, max: value });
        Some(Range { min: min.min(value), max: max.max(value) })
    })
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::Absence;

    use super::*;

    #[test]
    fn a_stretch_of_time_is_summed_up_and_an_empty_one_is_nothing() {
        let sample = || GpuSample::absent(0, None, 1, Health::Ok, &Absence::Unknown);
        let mut hot = sample();
        hot.power.draw_watts = Reading::Now(500.0);
        hot.power.instant_watts = Reading::Now(690.0);
        hot.throttle_reasons = Reading::Now(vec![ThrottleReason::SwPowerCap, ThrottleReason::GpuIdle]);
        let mut cool = sample();
        cool.power.draw_watts = Reading::Now(120.0);
        cool.temperature.gpu_celsius = Reading::Earlier { value: 99.0, at_ms: 1 };
        let load = Load::of([&hot, &cool].into_iter()).unwrap();
        assert_eq!((load.samples, load.watts), (2, Some(Range { min: 120.0, max: 690.0 })));
        assert_eq!((load.sm_mhz, load.celsius), (None, None), "what is not known is left out");
        assert_eq!(load.held_down_by, BTreeMap::from([("sw_power_cap".to_owned(), 1)]));
        assert_eq!(Load::of([].into_iter()), None);
    }
}
