//! The peak and the change of a measurement's memory.

use crate::{model::Process, usage::steps::Span};

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

impl Memory {
    pub(super) fn push(&mut self, at_ms: f64, own: &[&Process], span: Span) {
        self.add(at_ms, sum_process_memory(own.iter().copied()), span);
    }

    pub(super) fn add(&mut self, at_ms: f64, held: Option<u64>, span: Span) {
        self.newest = Some((at_ms, held));
        if at_ms <= span.from_ms {
            self.before = held;
            return;
        }
        if self.after.is_some() {
            return;
        }
        // Short measurements can fall between two samples. If there is no sample within the
        // measurement, a later sample is used.
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
