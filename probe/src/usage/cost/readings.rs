//! The readings of a GPU during a measurement: memory, activity, link traffic, conditions, and the
//! values that the driver recorded.

use std::collections::VecDeque;

use crate::{
    model::{CostCondition, GpuCost, GpuSample, LimitSums, Process, Reading, Trace},
    stat::Window,
    usage::steps::Span,
};

/// A measurement's memory on one GPU, or summed over all GPUs.
#[derive(Debug, Default, Clone)]
pub(super) struct Memory {
    /// The memory in the last sample before the start of the measurement.
    before: Option<u64>,
    peak: Option<u64>,
    /// The memory in the first sample after the end of the measurement.
    after: Option<u64>,
    /// The time of the newest sample, and the memory in it.
    newest: Option<(f64, Option<u64>)>,
}

impl Memory {
    pub(super) fn add_reading(&mut self, at_ms: f64, held: Option<u64>, span: Span) {
        self.newest = Some((at_ms, held));
        if at_ms <= span.from_ms {
            self.before = held;
            return;
        }
        if self.after.is_some() {
            return;
        }
        // A short measurement can fall between two samples. If no sample is within the measurement,
        // a later one is used.
        if at_ms <= span.to_ms || self.peak.is_none() {
            self.peak = self.peak.max(held.filter(|bytes| *bytes > 0));
        }
        // While a measurement is running, `span.to_ms` is the current time.
        if at_ms >= span.to_ms {
            self.after = held;
        }
    }

    /// Ends the measurement at `to_ms`, which may be before the newest sample.
    pub(super) fn end(&mut self, to_ms: f64) {
        self.after = self
            .newest
            .filter(|(at_ms, _)| *at_ms >= to_ms)
            .and_then(|(_, held)| held);
    }

    /// Returns the memory in the newest sample.
    pub(super) fn newest_bytes(&self) -> Option<u64> {
        self.newest.and_then(|(_, held)| held)
    }

    pub(super) fn peak_bytes(&self) -> Option<u64> {
        self.peak.max(self.before.filter(|bytes| *bytes > 0))
    }

    /// Returns the memory at the end minus the memory before the start. Returns `None` if the
    /// processes have ended, because their memory at the end is then unknown.
    pub(super) fn change_bytes(&self) -> Option<i64> {
        let (before, after) = self.before.zip(self.after)?;
        if after == 0 && self.peak_bytes().is_some() {
            return None;
        }
        Some(after.cast_signed().saturating_sub(before.cast_signed()))
    }
}

/// Returns the total memory of `processes`, or `None` if the driver reports no process's memory.
pub(super) fn sum_process_memory<'a>(
    processes: impl IntoIterator<Item = &'a Process>,
) -> Option<u64> {
    let mut processes = processes.into_iter().peekable();
    if processes.peek().is_none() {
        return Some(0);
    }
    processes
        .filter_map(|process| process.memory_bytes.value().copied())
        .reduce(u64::saturating_add)
}

/// Activity, link traffic and conditions of a GPU during a measurement.
#[derive(Debug, Default)]
pub(super) struct ObservedReadings {
    /// The statistics of each reading in [`AVERAGED_READINGS`], in the same order.
    windows: [Window; AVERAGED_READINGS.len()],
    conditions: Vec<CostCondition>,
    limits: LimitSums,
    /// The start of the first span.
    from_ms: Option<f64>,
}

/// The readings of activity and link rates that are averaged.
const AVERAGED_READINGS: [fn(&GpuSample) -> Option<&f64>; 7] = [
    |gpu| gpu.activity.value()?.sm_percent.value(),
    |gpu| gpu.activity.value()?.tensor_percent.value(),
    |gpu| gpu.activity.value()?.dram_bandwidth_percent.value(),
    |gpu| gpu.pcie.rx_bytes_per_second.value(),
    |gpu| gpu.pcie.tx_bytes_per_second.value(),
    |gpu| gpu.nvlink.rx_bytes_per_second.value(),
    |gpu| gpu.nvlink.tx_bytes_per_second.value(),
];

impl ObservedReadings {
    /// Adds a sample that covers the given span. `own` contains the measured processes.
    pub(super) fn push(&mut self, gpu: &GpuSample, own: &[&Process], span: Span) {
        for (window, read) in self.windows.iter_mut().zip(AVERAGED_READINGS) {
            if let Some(value) = read(gpu) {
                window.add(*value, span.seconds());
            }
        }
        let from_ms = *self.from_ms.get_or_insert(span.from_ms);
        // Windows are longer than the time between two samples, so only the samples that end a
        // window are added.
        if let Reading::Now(limits) = &gpu.limits {
            let start_ms = gpu.at_ms.saturating_sub(limits.window_ms) as f64;
            let ms = span.to_ms.min(gpu.at_ms as f64) - start_ms.max(from_ms);
            // Otherwise, most of the window is outside of the measurement.
            if ms >= limits.window_ms as f64 / 2.0 {
                let pids: Vec<u32> = own.iter().map(|process| process.pid).collect();
                self.limits.add_owners(limits, &pids, ms);
            }
        }
        // The sample may be from after the span's end, and may contain conditions that began after
        // the end. These are skipped.
        for condition in gpu
            .conditions
            .iter()
            .filter(|condition| (condition.since_ms as f64) < span.to_ms)
        {
            let (kind, to_ms) = (condition.kind.tag().unwrap_or_default(), span.to_ms as u64);
            let from_ms = condition.since_ms.max(span.from_ms as u64);
            match self.conditions.iter_mut().rfind(|known| known.kind == kind) {
                // The same condition was already active in the previous sample.
                Some(known) if known.to_ms >= condition.since_ms => {
                    known.to_ms = to_ms;
                    known.text.clone_from(&condition.text);
                }
                _ => {
                    let (kind, text) = (kind.to_owned(), condition.text.clone());
                    self.conditions.push(CostCondition {
                        kind,
                        text,
                        from_ms,
                        to_ms,
                    });
                }
            }
        }
    }

    /// Returns a cost with only the observed values. All other fields have their default values.
    pub(super) fn to_cost(&self) -> GpuCost {
        let [sm, tensor, dram, links @ ..] = &self.windows;
        let [pcie_to_gpu, pcie_from_gpu, nvlink_to_gpu, nvlink_from_gpu] =
            links.map(|rate| rate.weighted_sum().map(|bytes| bytes.round() as u64));
        GpuCost {
            sm_percent: sm.stat().map(Into::into),
            tensor_percent: tensor.stat().map(Into::into),
            dram_percent: dram.stat().map(Into::into),
            pcie_rx_bytes: pcie_to_gpu,
            pcie_tx_bytes: pcie_from_gpu,
            nvlink_rx_bytes: nvlink_to_gpu,
            nvlink_tx_bytes: nvlink_from_gpu,
            limits: self.limits.summary(),
            conditions: self.conditions.clone(),
            ..GpuCost::default()
        }
    }
}

/// The maximum time between two values that may be interpolated. The driver records utilization
/// five times a second, and power more often.
const MAX_INTERPOLATED_MS: f64 = 500.0;

/// How long recorded values are kept, in milliseconds. They are needed until the energy of the
/// steps that they cover has been computed.
const MAX_TIMELINE_MS: f64 = 30_000.0;

/// The values of one metric that the driver recorded, in chronological order. Each value has a time
/// in milliseconds since 1970.
#[derive(Debug, Default)]
pub(super) struct Timeline(VecDeque<(f64, f64)>);

impl Timeline {
    /// Adds the values of a trace. Values that have already been added are ignored, because a
    /// server can send some values twice.
    pub(super) fn add(&mut self, trace: &Trace) {
        for (offset_us, value) in trace.offsets_us.iter().zip(&trace.values) {
            let at_ms = trace.start_us.saturating_add(u64::from(*offset_us)) as f64 / 1000.0;
            if self.newest_ms().is_none_or(|newest_ms| at_ms > newest_ms) {
                self.0.push_back((at_ms, *value));
            }
        }
        let newest_ms = self.newest_ms().unwrap_or_default();
        while self
            .0
            .front()
            .is_some_and(|(at_ms, _)| *at_ms < newest_ms - MAX_TIMELINE_MS)
        {
            self.0.pop_front();
        }
    }

    /// Returns the time of the newest value, in milliseconds since 1970.
    pub(super) fn newest_ms(&self) -> Option<f64> {
        self.0.back().map(|(at_ms, _)| *at_ms)
    }

    /// Returns the integral of instantaneous values over a span, with linear interpolation and time
    /// in seconds. Returns `None` if values are missing in a part of the span.
    pub(super) fn integrate_linear(&self, span: Span) -> Option<f64> {
        self.integrate(span, |(one_ms, one), (other_ms, other), middle_ms| {
            one + (other - one) * (middle_ms - one_ms) / (other_ms - one_ms)
        })
    }

    /// Returns the integral over a span, with time in seconds. Each value is the average since the
    /// previous value. Returns `None` if values are missing in a part of the span.
    pub(super) fn integrate_steps(&self, span: Span) -> Option<f64> {
        self.integrate(span, |_, (_, later), _| later)
    }

    /// Returns the integral over a span, with time in seconds. The span is split at the recorded
    /// values. For each part, `mean` receives the value before it, the value after it, and the time
    /// of the part's middle, and returns the part's mean.
    fn integrate(
        &self,
        span: Span,
        mean: impl Fn((f64, f64), (f64, f64), f64) -> f64,
    ) -> Option<f64> {
        let first = self
            .0
            .partition_point(|(at_ms, _)| *at_ms <= span.from_ms)
            .checked_sub(1)?;
        let mut sum = 0.0;
        for (one, other) in self.0.iter().skip(first).zip(self.0.iter().skip(first + 1)) {
            if other.0 - one.0 > MAX_INTERPOLATED_MS {
                return None;
            }
            let (start_ms, end_ms) = (one.0.max(span.from_ms), other.0.min(span.to_ms));
            sum +=
                mean(*one, *other, f64::midpoint(start_ms, end_ms)) * (end_ms - start_ms) / 1000.0;
            if other.0 >= span.to_ms {
                return Some(sum);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TraceMetric;

    fn make_trace(start_ms: u64, step_ms: u32, values: &[f64]) -> Trace {
        Trace {
            index: 0,
            uuid: None,
            metric: TraceMetric::PowerWatts,
            start_us: start_ms * 1000,
            offsets_us: (0..values.len() as u32)
                .map(|at| at * step_ms * 1000)
                .collect(),
            values: values.to_vec(),
            gap: false,
        }
    }

    #[test]
    fn integral_can_start_and_end_between_values() {
        let mut line = Timeline::default();
        line.add(&make_trace(1000, 100, &[0.0, 100.0, 100.0, 300.0]));
        line.add(&make_trace(1300, 100, &[300.0, 300.0]));
        let near = |one: Option<f64>, other: f64| (one.unwrap() - other).abs() < 1e-9;
        assert!(near(line.integrate_linear(Span::new(1000, 1100)), 5.0));
        assert!(near(
            line.integrate_linear(Span::new(1050, 1250)),
            3.75 + 10.0 + 7.5
        ));
        assert!(
            near(
                line.integrate_steps(Span::new(1050, 1250)),
                5.0 + 10.0 + 15.0
            ),
            "what is recorded later is of the time before"
        );
        assert_eq!(line.integrate_linear(Span::new(999, 1100)), None);
        assert_eq!(
            line.integrate_linear(Span::new(1100, 1401)),
            None,
            "what is not recorded yet"
        );
    }

    #[test]
    fn gap_has_no_integral() {
        let mut line = Timeline::default();
        line.add(&make_trace(1000, 600, &[1.0, 1.0, 1.0]));
        assert_eq!(line.integrate_linear(Span::new(1000, 1700)), None);
    }

    #[test]
    fn values_older_than_limit_are_removed() {
        let mut line = Timeline::default();
        for second in 0..100 {
            line.add(&make_trace(second * 1000, 100, &[1.0; 10]));
        }
        assert_eq!(line.0.len(), 301);
    }
}
