//! Draining the buffers of a simulated driver, as rarely as a real one would be.

use crate::{
    model::{Trace, TraceMetric},
    vendor::sim::{Machine, buffers::period_ms},
};

#[derive(Debug)]
pub(super) struct Drains([Drain; 3]);

#[derive(Debug)]
struct Drain {
    metric: TraceMetric,
    /// It is left alone for so long.
    every_ms: u64,
    drained_ms: Option<u64>,
    seen_us: u64,
}

impl Drains {
    pub(super) fn new() -> Self {
        let drain = |metric, every_ms| Drain {
            metric,
            every_ms,
            drained_ms: None,
            seen_us: 0,
        };
        Self([
            drain(TraceMetric::PowerWatts, 2_000),
            drain(TraceMetric::GpuPercent, 5_000),
            drain(TraceMetric::MemoryPercent, 5_000),
        ])
    }

    /// What came since the last time, of the buffers whose turn it is.
    pub(super) fn take(&mut self, machine: &Machine, index: u32, elapsed_ms: u64) -> Vec<Trace> {
        self.0
            .iter_mut()
            .filter_map(|drain| drain.take(machine, index, elapsed_ms))
            .collect()
    }
}

impl Drain {
    fn take(&mut self, machine: &Machine, index: u32, elapsed_ms: u64) -> Option<Trace> {
        if self
            .drained_ms
            .is_some_and(|drained_ms| elapsed_ms < drained_ms + self.every_ms)
        {
            return None;
        }
        if self.metric != TraceMetric::PowerWatts && machine.world.is_divided(index, elapsed_ms) {
            return None;
        }
        let samples = machine.recorded(index, self.metric, elapsed_ms, self.seen_us);
        let (first, last) = (samples.first()?, samples.last()?);
        let gap = self.drained_ms.is_some()
            && first.at_us > self.seen_us + period_ms(self.metric) * 1_000;
        self.drained_ms = Some(elapsed_ms);
        self.seen_us = last.at_us;
        Some(Trace {
            index,
            uuid: Some(machine.world.identity(index).uuid.clone()),
            metric: self.metric,
            start_us: first.at_us,
            offsets_us: samples
                .iter()
                .map(|sample| (sample.at_us - first.at_us) as u32)
                .collect(),
            values: samples.iter().map(|sample| sample.value).collect(),
            gap,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::sim::Scenario;

    #[test]
    fn traces_join_without_a_gap_unless_they_come_too_late() {
        let machine = Machine::start(Scenario::from_toml("gpus = 2", "test").unwrap());
        let mut drains = Drains::new();
        let power = |traces: Vec<Trace>| {
            traces
                .into_iter()
                .find(|trace| trace.metric == TraceMetric::PowerWatts)
        };
        let first = power(drains.take(&machine, 1, 10_000)).unwrap();
        assert_eq!(
            (first.index, first.values.len(), first.gap),
            (1, 119, false)
        );
        assert_eq!(power(drains.take(&machine, 1, 11_900)), None);
        let second = power(drains.take(&machine, 1, 12_000)).unwrap();
        let end = first.start_us + u64::from(first.offsets_us[118]);
        assert_eq!(
            (second.start_us, second.values.len(), second.gap),
            (end + 20_000, 100, false)
        );
        let late = drains.take(&machine, 1, 60_000);
        assert_eq!(
            late.iter().map(|trace| trace.gap).collect::<Vec<_>>(),
            [true, true, true]
        );
    }
}
