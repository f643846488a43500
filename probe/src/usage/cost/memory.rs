//! The memory that something holds: its peak, and the change.

use crate::{model::Process, usage::steps::Span};

/// Of one GPU, or of all together.
#[derive(Debug, Default, Clone)]
pub(super) struct Memory {
    /// What was held by the last sample before the beginning.
    before: Option<u64>,
    peak: Option<u64>,
    /// What was held by the first sample behind the end.
    after: Option<u64>,
    /// When the newest sample was, and what it told.
    newest: Option<(f64, Option<u64>)>,
}

/// What processes hold; `None` where the driver tells it of none of them.
pub(super) fn held<'a>(processes: impl IntoIterator<Item = &'a Process>) -> Option<u64> {
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
        self.add(at_ms, held(own.iter().copied()), span);
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
        // What is shorter than the time between samples is only seen after it.
        if at_ms <= span.to_ms || self.peak.is_none() {
            self.peak = self.peak.max(held.filter(|bytes| *bytes > 0));
        }
        // Of what goes on, that is what it holds by now.
        if at_ms >= span.to_ms {
            self.after = held;
        }
    }

    /// It was over at a time, behind which there may have been a sample already.
    pub(super) fn end(&mut self, to_ms: f64) {
        self.after = self
            .newest
            .filter(|(at_ms, _)| *at_ms >= to_ms)
            .and_then(|(_, held)| held);
    }

    /// Returns the memory in the newest sample.
    pub(super) fn newest(&self) -> Option<u64> {
        self.newest.and_then(|(_, held)| held)
    }

    pub(super) fn peak_bytes(&self) -> Option<u64> {
        self.peak.max(self.before.filter(|bytes| *bytes > 0))
    }

    /// Of what has ended with its memory, that is not known.
    pub(super) fn change_bytes(&self) -> Option<i64> {
        let (before, after) = self.before.zip(self.after)?;
        if after == 0 && self.peak_bytes().is_some() {
            return None;
        }
        Some(after.cast_signed().saturating_sub(before.cast_signed()))
    }
}
