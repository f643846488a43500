//! The causes that limited a GPU during the time `for` of a rule with `limited_by`.

use std::collections::VecDeque;

use gpumon_probe::{
    derive::MAX_LIMITS_AGE_MS,
    model::{LimitClass, LimitEvidence, LimitSummary, Limits},
};

use super::target::push_value;

/// For each cause, the sum of its shares in all windows since the first, in percent, each
/// multiplied by the length of the window in milliseconds.
type CauseTimes = [f64; LimitClass::ALL.len()];

/// The shares of the causes in the newest windows of limits, which cover a fixed time.
#[derive(Debug)]
pub(super) struct CauseWindow {
    over_ms: u64,
    /// The cause that the rule watches.
    cause: LimitClass,
    /// The sums at the end of each window, oldest first. The first entry contains the sums at the
    /// start of the oldest window.
    times: VecDeque<(u64, CauseTimes)>,
    /// The end and the evidence of the newest window in which the rule's cause had the largest
    /// share.
    evidence: Option<(u64, LimitEvidence)>,
}

impl CauseWindow {
    pub(super) fn new(over_ms: u64, cause: LimitClass) -> Self {
        Self {
            over_ms,
            cause,
            times: VecDeque::new(),
            evidence: None,
        }
    }

    /// Adds the window that ended at `end_ms`. Ignores a window that was already added, and starts
    /// again after a gap or after the clock was set back.
    pub(super) fn push(&mut self, end_ms: u64, limits: &Limits) {
        let start_ms = end_ms.saturating_sub(limits.window_ms);
        let is_far_from = |newest_ms: u64| {
            start_ms.saturating_sub(newest_ms) > MAX_LIMITS_AGE_MS
                || newest_ms.saturating_sub(end_ms) > MAX_LIMITS_AGE_MS
        };
        if self.times.back().is_some_and(|it| is_far_from(it.0)) {
            self.times.clear();
            self.evidence = None;
        }
        let (newest_ms, mut times) = if let Some(newest) = self.times.back() {
            *newest
        } else {
            let first = (start_ms, CauseTimes::default());
            self.times.push_back(first);
            first
        };
        if end_ms <= newest_ms {
            return;
        }
        // After a change of the collector, the new window can overlap the previous one.
        let ms = (end_ms - newest_ms.max(start_ms)) as f64;
        for (time, class) in times.iter_mut().zip(LimitClass::ALL) {
            *time += limits.get_share(class).value().copied().unwrap_or_default() * ms;
        }
        push_value(&mut self.times, end_ms, times, self.over_ms);
        while self.times.len() >= 2 && end_ms - self.times[1].0 >= self.over_ms {
            self.times.pop_front();
        }
        if limits.main == self.cause {
            self.evidence = Some((end_ms, limits.evidence.clone()));
        }
    }

    /// Returns the mean shares of all causes, weighted by the length of the windows. Returns `None`
    /// until the windows cover the whole time.
    pub(super) fn summary(&self) -> Option<LimitSummary> {
        let ((from_ms, first), (to_ms, last)) = (self.times.front()?, self.times.back()?);
        if to_ms - from_ms < self.over_ms {
            return None;
        }
        let times =
            LimitClass::ALL.map(|class| (class, last[class as usize] - first[class as usize]));
        let total: f64 = times.iter().map(|(_, time)| time).sum();
        let shares = times.map(|(class, time)| (class, time / total * 100.0));
        LimitSummary::new((total / 100.0) as u64, shares, |main| {
            let known = self.evidence.as_ref();
            let current = known.filter(|(end_ms, _)| main == self.cause && end_ms > from_ms);
            current
                .map(|(_, evidence)| evidence.clone())
                .unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Confidence, Reading};

    use super::*;

    fn make_window(window_ms: u64, main: LimitClass) -> Limits {
        let shares = LimitClass::ALL.map(|class| {
            Reading::Now(match class {
                _ if class == main => 80.0,
                LimitClass::Idle => 20.0,
                _ => 0.0,
            })
        });
        let evidence = LimitEvidence {
            cpu_percent: Some(window_ms as f64),
            ..LimitEvidence::default()
        };
        Limits::new(window_ms, shares, main, Confidence::High, evidence)
    }

    fn format_shares(window: &CauseWindow) -> Option<String> {
        window.summary().map(|summary| summary.shares_text())
    }

    #[test]
    fn overlapping_windows_are_counted_once() {
        let mut window = CauseWindow::new(30_000, LimitClass::Host);
        window.push(10_000, &make_window(10_000, LimitClass::Host));
        window.push(10_000, &make_window(10_000, LimitClass::Tensor));
        window.push(7_000, &make_window(2_000, LimitClass::Tensor));
        assert_eq!(format_shares(&window), None);
        window.push(30_000, &make_window(29_000, LimitClass::Tensor));
        assert_eq!(
            format_shares(&window).as_deref(),
            Some("tensor-bound 53 %, host-bound 27 %, idle 20 %")
        );
    }

    #[test]
    fn gap_or_earlier_clock_starts_again() {
        let host = make_window(10_000, LimitClass::Host);
        for (end_ms, starts_again) in [
            (150_000, false),
            (150_001, true),
            (80_000, false),
            (79_999, true),
        ] {
            let mut window = CauseWindow::new(20_000, LimitClass::Host);
            window.push(100_000, &host);
            window.push(110_000, &host);
            window.push(end_ms, &host);
            assert_eq!(window.summary().is_none(), starts_again, "{end_ms}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut window = CauseWindow::new(60_000, LimitClass::Host);
        for tenth in 1..=2000 {
            let main = if tenth % 4 == 0 {
                LimitClass::Tensor
            } else {
                LimitClass::Host
            };
            window.push(tenth * 100, &make_window(100, main));
        }
        assert!(window.times.len() <= 122, "{}", window.times.len());
        let summary = window.summary().unwrap();
        assert_eq!(
            summary.shares_text(),
            "host-bound 60 %, idle 20 %, tensor-bound 20 %"
        );
        assert_eq!(summary.windows_ms, 60_000);
    }

    #[test]
    fn evidence_is_from_newest_window_with_cause() {
        let mut window = CauseWindow::new(30_000, LimitClass::Host);
        window.push(20_000, &make_window(20_000, LimitClass::Host));
        window.push(21_000, &make_window(1_000, LimitClass::Host));
        window.push(30_000, &make_window(9_000, LimitClass::Tensor));
        let evidence = |window: &CauseWindow| window.summary().unwrap().evidence.cpu_percent;
        assert_eq!(evidence(&window), Some(1_000.0));
        let mut other = make_window(31_000, LimitClass::Host);
        other.main = LimitClass::Tensor;
        window.push(61_000, &other);
        assert_eq!(window.summary().unwrap().main(), Some(LimitClass::Host));
        assert_eq!(evidence(&window), None, "the evidence is too old");
    }
}
