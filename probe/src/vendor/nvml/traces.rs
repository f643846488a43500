//! The driver's sample buffers, which are read before they overflow.

#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

use std::time::Duration;

use nvml_wrapper_sys::bindings::{
    nvmlSamplingType_enum_NVML_GPU_UTILIZATION_SAMPLES as GPU_UTILIZATION,
    nvmlSamplingType_enum_NVML_MEMORY_UTILIZATION_SAMPLES as MEMORY_UTILIZATION,
    nvmlSamplingType_enum_NVML_TOTAL_POWER_SAMPLES as TOTAL_POWER, nvmlSamplingType_t,
};

use super::{cached::count, paced::Every, querier::Querier};
use crate::{
    model::{Trace, TraceMetric, now_ms},
    vendor::nvml::query::Value,
};

struct Drain {
    metric: TraceMetric,
    buffer: nvmlSamplingType_t,
    every: Every,
    /// The measured interval between the driver's samples.
    spacing_us: u64,
    /// The time of the newest sample that was returned.
    last_us: u64,
    /// The driver's unit, as a multiple of the metric's unit.
    unit: f64,
}

pub(super) struct TraceReader {
    drains: [Drain; 3],
}

impl TraceReader {
    /// Creates a reader of all buffers. A call costs 0.7 ms for power and 2.8 ms for each
    /// utilization. The buffer of power covers 2.36 s, and those of utilization 14 s.
    pub(super) fn new() -> Self {
        let drain = |metric, buffer, seconds, spacing_us, unit| Drain {
            metric,
            buffer,
            every: Every::new(Duration::from_secs(seconds)),
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

    /// Returns the samples since the last call, from the buffers that are due.
    pub(super) fn read(&mut self, querier: &mut Querier) -> Vec<Trace> {
        let due = self
            .drains
            .iter_mut()
            .filter_map(|drain| drain.every.is_due().then_some(drain));
        due.filter_map(|drain| drain.take_in(timed(&querier.samples(drain.buffer, drain.last_us)?)))
            .collect()
    }
}

/// Parses an answer with alternating times and values. Times are in microseconds, values in the
/// driver's unit.
fn timed(answer: &Value) -> Vec<(u64, f64)> {
    match answer {
        Value::Reals(reals) => {
            let sample = |[at_us, value]: &[f64; 2]| Some((*count(*at_us).value()?, *value));
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

impl Drain {
    fn take_in(&mut self, samples: Vec<(u64, f64)>) -> Option<Trace> {
        // If the clock was set back, the last time is ahead of all future samples.
        if self.last_us > now_ms().saturating_mul(1000).saturating_add(FUTURE_US) {
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
        // Offsets have 32 bits. A sample whose offset does not fit has the wrong time.
        let offset_us = |at_us: u64| u32::try_from(at_us.saturating_sub(start_us)).ok();
        new.retain(|(at_us, _)| offset_us(*at_us).is_some());
        Some(Trace {
            // The device fills in its index and UUID.
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

/// The maximum time by which a sample may be in the future. If it is further ahead, the clock was
/// set back.
const FUTURE_US: u64 = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn power() -> Drain {
        let [power, ..] = TraceReader::new().drains;
        power
    }

    #[test]
    fn nothing_twice_and_nothing_left_out_at_the_seams() {
        let mut drain = power();
        let begun = now_ms() * 1000 - 4_000_000;
        let samples = |from: u64, to: u64| {
            (from..to)
                .map(|at| (begun + at * 20_000, 500_000.0))
                .collect::<Vec<_>>()
        };
        let first = drain.take_in(samples(0, 100)).unwrap();
        // The driver may return samples again that it has already returned.
        let second = drain.take_in(samples(90, 200)).unwrap();
        assert_eq!((first.values.len(), second.values.len()), (100, 100));
        assert_eq!(second.start_us, begun + 100 * 20_000);
        assert!(!first.gap && !second.gap);
        assert_eq!(first.values.first(), Some(&500.0));
        assert_eq!(drain.take_in(samples(190, 200)), None);
    }

    #[test]
    fn what_was_overwritten_is_a_gap() {
        let mut drain = power();
        let begun = now_ms() * 1000 - 4_000_000;
        drain.take_in(vec![(begun, 1.0)]);
        assert!(drain.take_in(vec![(begun + 60_000, 1.0)]).unwrap().gap);
    }

    #[test]
    fn samples_out_of_order_or_of_another_clock_do_no_harm() {
        let mut drain = power();
        let begun = now_ms() * 1000;
        let trace = drain
            .take_in(vec![(begun + 20_000, 2.0), (begun, 1.0), (begun, 1.0)])
            .unwrap();
        assert_eq!(trace.offsets_us, [0, 20_000]);
        drain.take_in(vec![(begun + 3_600_000_000, 1.0)]);
        assert!(
            drain.take_in(vec![(begun + 40_000, 1.0)]).is_some(),
            "the clock was set back"
        );
    }
}
