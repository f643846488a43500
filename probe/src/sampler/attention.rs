//! Decides how much is read at a tick: everything while somebody watches; otherwise, expensive
//! readings only as often as the history needs them.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::{model::now_ms, vendor::ReadDepth};

/// The length of the history's time steps.
const HISTORY_STEP_MS: u64 = 10_000;

/// The interval between readings of the host while nobody watches. The host is cheaper to read, so
/// it is read twice per history step.
pub(super) const HOST_STEP_MS: u64 = 5_000;

/// Whether somebody watches. The flag is shared with the sampler by the code that sets it.
#[derive(Debug)]
pub struct WatchFlag(AtomicBool);

impl WatchFlag {
    /// Sets whether somebody watches, starting with the next sample.
    pub fn set(&self, is_watched: bool) {
        self.0.store(is_watched, Ordering::Relaxed);
    }

    pub(super) fn is_watched(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for WatchFlag {
    /// Returns a flag that is set: somebody watches.
    fn default() -> Self {
        Self(AtomicBool::new(true))
    }
}

/// Divides time into steps and detects the last sample of each step. Averages read with that sample
/// cover exactly one step.
#[derive(Debug)]
pub(super) struct Steps {
    length_ms: u64,
    /// The number of the step after the last closed step.
    next: u64,
}

impl Steps {
    /// Returns steps with the length used by the history.
    pub(super) fn new_for_history() -> Self {
        Self::new(HISTORY_STEP_MS)
    }

    pub(super) fn new(length_ms: u64) -> Self {
        Self { length_ms, next: 0 }
    }

    /// Returns `true` if the current sample closes a step. The first sample always does. So does a
    /// sample that is probably the last of its step, because ticks can be slightly late.
    pub(super) fn closes_step(&mut self, interval: Duration) -> bool {
        self.closes_step_at(now_ms(), interval)
    }

    fn closes_step_at(&mut self, now_ms: u64, interval: Duration) -> bool {
        let next = (now_ms + interval.as_millis() as u64 * 5 / 4) / self.length_ms;
        std::mem::replace(&mut self.next, next) != next
    }

    /// Returns how much to read now: `depth`, or less if nobody watches.
    pub(super) fn choose_depth(
        &mut self,
        depth: ReadDepth,
        watched: &WatchFlag,
        interval: Duration,
    ) -> ReadDepth {
        if depth == ReadDepth::Full && !watched.is_watched() {
            ReadDepth::Unwatched {
                closes_step: self.closes_step(interval),
            }
        } else {
            depth
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the seconds of the ticks that close a step. Ticks are one second apart, start at
    /// `first_ms` and are up to 3 ms late.
    fn closing_seconds(first_ms: u64) -> Vec<u64> {
        let mut steps = Steps::new_for_history();
        let ticks = (0..60).filter(|tick| {
            steps.closes_step_at(first_ms + tick * 1000 + tick % 4, Duration::from_secs(1))
        });
        ticks
            .map(|tick| (first_ms + tick * 1000 + tick % 4) / 1000)
            .collect()
    }

    #[test]
    fn exactly_one_sample_closes_each_step() {
        for phase_ms in [0, 1, 300, 740, 748, 750, 900, 997, 998, 999] {
            let closing = closing_seconds(100_000 + phase_ms);
            let steps: Vec<_> = closing.iter().skip(1).map(|second| second / 10).collect();
            assert_eq!(
                steps,
                (10..16).collect::<Vec<_>>()[..steps.len()],
                "{phase_ms}: {closing:?}"
            );
            assert!(
                closing.iter().skip(1).all(|second| second % 10 >= 8),
                "{phase_ms}: {closing:?}"
            );
            assert!(steps.len() >= 5, "{phase_ms}: {closing:?}");
        }
    }

    #[test]
    fn slow_interval_closes_every_step() {
        let mut steps = Steps::new(HOST_STEP_MS);
        assert!((0..9).all(|tick| steps.closes_step_at(tick * 60_000, Duration::from_mins(1))));
    }

    #[test]
    fn watching_restores_full_depth() {
        let (watched, second) = (WatchFlag::default(), Duration::from_secs(1));
        let mut steps = Steps::new_for_history();
        assert_eq!(
            steps.choose_depth(ReadDepth::Full, &watched, second),
            ReadDepth::Full
        );
        watched.set(false);
        assert_eq!(
            steps.choose_depth(ReadDepth::Full, &watched, second),
            ReadDepth::Unwatched { closes_step: true }
        );
        assert_eq!(
            steps.choose_depth(ReadDepth::Metered, &watched, second),
            ReadDepth::Metered
        );
        watched.set(true);
        assert_eq!(
            steps.choose_depth(ReadDepth::Full, &watched, second),
            ReadDepth::Full
        );
    }
}
