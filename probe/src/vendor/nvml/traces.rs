//! Reading of the driver's sample buffers before they overflow.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

use std::time::Duration;

use nvml_wrapper_sys::bindings::{
    nvmlSamplingType_enum_NVML_GPU_UTILIZATION_SAMPLES as GPU_UTILIZATION,
    nvmlSamplingType_enum_NVML_MEMORY_UTILIZATION_SAMPLES as MEMORY_UTILIZATION,
    nvmlSamplingType_enum_NVML_TOTAL_POWER_SAMPLES as TOTAL_POWER, nvmlSamplingType_t,
};

use super::{querier::Querier, query::Value, schedule::IntervalTimer, to_model::convert_count};
use crate::model::{Trace, TraceMetric, now_ms};

struct TraceBuffer {
    metric: TraceMetric,
    buffer: nvmlSamplingType_t,
    every: IntervalTimer,
    /// The measured interval between the driver's samples, in microseconds.
    spacing_us: u64,
    /// The time of the newest sample that has been returned, in microseconds since 1970.
    last_us: u64,
    /// The factor that converts the driver's unit to the metric's unit.
    unit: f64,
}

pub(super) struct TraceReader {
    drains: [TraceBuffer; 3],
}

impl TraceReader {
    /// Creates a reader for all buffers. A read costs 0.7 ms for power and 2.8 ms for each
    /// utilization. The power buffer covers 2.36 s, and the utilization buffers cover 14 s.
    pub(super) fn new() -> Self {
        let drain = |metric, buffer, seconds, spacing_us, unit| TraceBuffer {
            metric,
            buffer,
            every: IntervalTimer::new(Duration::from_secs(seconds)),
            spacing_us,
            last_us: 0,
            unit,
        };
        Self {
            drains: [
                drain(TraceMetric::PowerWatts, TOTAL_POWER, 2, 20_000, 0.001),
                drain(TraceMetric::GpuPercent, GPU_UTILIZATION, 10, 200_000, 1.0),
                drain(
                    TraceMetric::MemoryPercent,
                    MEMORY_UTILIZATION,
                    10,
                    200_000,
                    1.0,
                ),
            ],
        }
    }

    /// Returns the samples added since the last call, from all buffers that are due.
    pub(super) fn read(&mut self, querier: &mut Querier) -> Vec<Trace> {
        let due = self
            .drains
            .iter_mut()
            .filter_map(|drain| drain.every.is_due().then_some(drain));
        due.filter_map(|drain| {
            drain.add_samples(parse_samples(
                &querier.query_samples(drain.buffer, drain.last_us)?,
            ))
        })
        .collect()
    }
}

/// Parses an answer in which times and values alternate. Times are in microseconds, and values are
/// in the driver's unit.
fn parse_samples(answer: &Value) -> Vec<(u64, f64)> {
    match answer {
        Value::Reals(reals) => {
            let sample =
                |[at_us, value]: &[f64; 2]| Some((*convert_count(*at_us).value()?, *value));
            reals.as_chunks().0.iter().filter_map(sample).collect()
        }
        whole => {
            let sample =
                |[at_us, value]: &[i128; 2]| Some((u64::try_from(*at_us).ok()?, *value as f64));
            whole
                .numbers()
                .as_chunks()
                .0
                .iter()
                .filter_map(sample)
                .collect()
        }
    }
}

impl TraceBuffer {
    fn add_samples(&mut self, samples: Vec<(u64, f64)>) -> Option<Trace> {
        // If the clock was set back, `last_us` is in the future, and no sample would be newer.
        if self.last_us > now_ms().saturating_mul(1000).saturating_add(MAX_FUTURE_US) {
            self.last_us = 0;
        }
        let known = self.last_us;
        let mut new: Vec<_> = samples
            .into_iter()
            .filter(|(at_us, value)| *at_us > known && value.is_finite())
            .collect();
        new.sort_unstable_by_key(|(at_us, _)| *at_us);
        new.dedup_by_key(|(at_us, _)| *at_us);
        let (start_us, _) = *new.first()?;
        self.last_us = new.last()?.0;
        // Offsets are stored in 32 bits. If a sample's offset does not fit, the sample's time is
        // wrong.
        let offset_us = |at_us: u64| u32::try_from(at_us.saturating_sub(start_us)).ok();
        new.retain(|(at_us, _)| offset_us(*at_us).is_some());
        Some(Trace {
            // The caller fills in the GPU's index and UUID.
            index: 0,
            uuid: None,
            metric: self.metric,
            start_us,
            offsets_us: new
                .iter()
                .filter_map(|(at_us, _)| offset_us(*at_us))
                .collect(),
            values: new.iter().map(|(_, value)| value * self.unit).collect(),
            gap: known > 0
                && start_us.saturating_sub(known) > self.spacing_us.saturating_mul(5) / 2,
        })
    }
}

/// If a sample's time is further in the future than this, the clock was set back.
const MAX_FUTURE_US: u64 = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn power_buffer() -> TraceBuffer {
        let [power, ..] = TraceReader::new().drains;
        power
    }

    #[test]
    fn each_sample_is_returned_once() {
        let mut drain = power_buffer();
        let begun = now_ms() * 1000 - 4_000_000;
        let samples = |from: u64, to: u64| {
            (from..to)
                .map(|at| (begun + at * 20_000, 500_000.0))
                .collect::<Vec<_>>()
        };
        let first = drain.add_samples(samples(0, 100)).unwrap();
        // The driver may return the same samples more than once.
        let second = drain.add_samples(samples(90, 200)).unwrap();
        assert_eq!((first.values.len(), second.values.len()), (100, 100));
        assert_eq!(second.start_us, begun + 100 * 20_000);
        assert!(!first.gap && !second.gap);
        assert_eq!(first.values.first(), Some(&500.0));
        assert_eq!(drain.add_samples(samples(190, 200)), None);
    }

    #[test]
    fn overwritten_samples_are_marked_as_gap() {
        let mut drain = power_buffer();
        let begun = now_ms() * 1000 - 4_000_000;
        drain.add_samples(vec![(begun, 1.0)]);
        assert!(drain.add_samples(vec![(begun + 60_000, 1.0)]).unwrap().gap);
    }

    #[test]
    fn samples_are_sorted_despite_clock_changes() {
        let mut drain = power_buffer();
        let begun = now_ms() * 1000;
        let trace = drain
            .add_samples(vec![(begun + 20_000, 2.0), (begun, 1.0), (begun, 1.0)])
            .unwrap();
        assert_eq!(trace.offsets_us, [0, 20_000]);
        drain.add_samples(vec![(begun + 3_600_000_000, 1.0)]);
        assert!(
            drain.add_samples(vec![(begun + 40_000, 1.0)]).is_some(),
            "the clock was set back"
        );
    }
}
