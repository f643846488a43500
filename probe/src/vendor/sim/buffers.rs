//! Simulation of the buffers in which the driver records values.

use crate::model::TraceMetric;

use super::Machine;

/// A value that the driver has recorded in a buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordedValue {
    /// The driver's timestamp, in microseconds since 1970.
    pub at_us: u64,
    /// The value, in the unit of its metric.
    pub value: f64,
}

/// Returns the interval between two values in a buffer, in milliseconds.
pub(super) fn period_ms(metric: TraceMetric) -> u64 {
    match metric {
        TraceMetric::PowerWatts => 20,
        TraceMetric::GpuPercent | TraceMetric::MemoryPercent => 200,
    }
}

/// Returns the number of values that a buffer stores.
fn buffer_length(metric: TraceMetric) -> u64 {
    match metric {
        TraceMetric::PowerWatts => 119,
        TraceMetric::GpuPercent | TraceMetric::MemoryPercent => 71,
    }
}

impl Machine {
    /// Returns the values in a GPU's buffer at the given time, sorted from oldest to newest. Only
    /// values after `after_us` are returned. Values are recorded at fixed times, counted from the
    /// start of the timeline.
    pub fn read_buffer(
        &self,
        gpu: u32,
        metric: TraceMetric,
        elapsed_ms: u64,
        after_us: u64,
    ) -> Vec<RecordedValue> {
        let period_ms = period_ms(metric);
        let start_ms = self.timeline.unix_ms(0.0);
        let newest = (start_ms + elapsed_ms) / period_ms;
        let oldest = (newest + 1)
            .saturating_sub(buffer_length(metric))
            .max(start_ms.div_ceil(period_ms));
        let moments = (oldest..=newest).map(|number| number * period_ms - start_ms);
        moments
            .map(|at_ms| (self.driver_timestamp_us(gpu, at_ms), at_ms))
            .filter(|(at_us, _)| *at_us > after_us)
            .map(|(at_us, at_ms)| RecordedValue {
                at_us,
                value: self.world.recorded_value(gpu, metric, at_ms),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::sim::Scenario;

    fn start_machine(toml: &str) -> Machine {
        Machine::start(
            Scenario::from_toml(&format!("start_ms = 1_700_000_000_007\n{toml}"), "test").unwrap(),
        )
    }

    #[test]
    fn buffer_has_driver_length_and_interval() {
        let machine = start_machine("");
        for (metric, count, step_us) in [
            (TraceMetric::PowerWatts, 119, 20_000),
            (TraceMetric::GpuPercent, 71, 200_000),
        ] {
            let samples = machine.read_buffer(0, metric, 60_000, 0);
            assert_eq!(samples.len(), count);
            assert!(
                samples
                    .iter()
                    .all(|sample| sample.at_us.is_multiple_of(step_us))
            );
            assert!(
                samples
                    .windows(2)
                    .all(|pair| pair[1].at_us == pair[0].at_us + step_us)
            );
            let age_us = 1_700_000_060_007_000 - samples[count - 1].at_us;
            assert!(age_us < step_us, "the newest is {age_us} us old");
        }
    }

    #[test]
    fn consecutive_reads_return_each_value_once() {
        let machine = start_machine("");
        let all = machine.read_buffer(0, TraceMetric::PowerWatts, 12_000, 0);
        let (mut pieces, mut seen) = (Vec::new(), all[0].at_us - 1);
        for elapsed_ms in [9_800, 10_019, 10_500, 10_500, 12_000] {
            let piece = machine.read_buffer(0, TraceMetric::PowerWatts, elapsed_ms, seen);
            seen = piece.last().map_or(seen, |last| last.at_us);
            pieces.extend(piece);
        }
        assert_eq!(pieces, all);
    }

    #[test]
    fn new_buffer_starts_with_the_timeline() {
        let machine = start_machine(
            "[[gpu]]\nindex = 0\nutilization_percent = [[0, 0], [10, 100]]\npower_watts = 300",
        );
        let young = machine.read_buffer(0, TraceMetric::GpuPercent, 1_000, 0);
        assert_eq!(
            young.iter().map(|sample| sample.value).collect::<Vec<_>>(),
            [2.0, 4.0, 6.0, 8.0, 10.0]
        );
        let values = |metric, ms| {
            machine
                .read_buffer(0, metric, ms, 0)
                .into_iter()
                .map(|sample| sample.value)
        };
        assert_eq!(
            values(TraceMetric::PowerWatts, 60).collect::<Vec<_>>(),
            [300.0; 3]
        );
        assert_eq!(
            values(TraceMetric::MemoryPercent, 1_000).next_back(),
            Some(4.0)
        );
    }
}
