//! The amount of data read at a tick: everything while somebody watches, otherwise only the
//! expensive readings that the history needs.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::{model::now_ms, vendor::ReadDepth};

/// The length of the history's steps.
const HISTORY_STEP_MS: u64 = 10_000;

/// The interval of the host's readings while nobody watches. They are less expensive, so that there
/// are two per step.
pub(super) const HOST_STEP_MS: u64 = 5_000;

/// Whether somebody watches, shared by the sampler and the code that knows.
#[derive(Debug)]
pub struct Watched(AtomicBool);

impl Watched {
    /// Sets whether somebody watches, starting with the next sample.
    pub fn set(&self, is_watched: bool) {
        self.0.store(is_watched, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Watched {
    /// Returns a state in which somebody watches.
    fn default() -> Self {
        Self(AtomicBool::new(true))
    }
}

/// A division of time into steps, which finds the last sample of each step. Averages read with that
/// sample cover exactly one step.
#[derive(Debug)]
pub(super) struct Steps {
    length_ms: u64,
    /// The number of the step after the one that was closed last.
    next: u64,
}

impl Steps {
    /// Returns the steps of the history.
    pub(super) fn of_history() -> Self {
        Self::new(HISTORY_STEP_MS)
    }

    pub(super) fn new(length_ms: u64) -> Self {
        Self { length_ms, next: 0 }
    }

    /// Returns `true` if the current sample closes a step. The first sample does, and so does a
    /// sample that is probably the last one, because ticks can be slightly late.
    pub(super) fn close(&mut self, interval: Duration) -> bool {
        self.close_at(now_ms(), interval)
    }

    fn close_at(&mut self, now_ms: u64, interval: Duration) -> bool {
        let next = (now_ms + interval.as_millis() as u64 * 5 / 4) / self.length_ms;
        std::mem::replace(&mut self.next, next) != next
    }

    /// Returns the depth of the current reading: `depth`, or less if nobody watches.
    pub(super) fn depth(
        &mut self,
        depth: ReadDepth,
        watched: &Watched,
        interval: Duration,
    ) -> ReadDepth {
        if depth == ReadDepth::Full && !watched.get() {
            ReadDepth::Unwatched {
                closes_step: self.close(interval),
            }
        } else {
            depth
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the seconds of the ticks that close a step. There is a tick every second, starting
    /// at `first_ms` and up to 3 ms late.
    fn closing(first_ms: u64) -> Vec<u64> {
        let mut steps = Steps::of_history();
        let ticks = (0..60).filter(|tick| {
            steps.close_at(first_ms + tick * 1000 + tick % 4, Duration::from_secs(1))
        });
        ticks
            .map(|tick| (first_ms + tick * 1000 + tick % 4) / 1000)
            .collect()
    }

    #[test]
    fn one_sample_of_each_step_closes_it_whenever_ticks_come() {
        for phase_ms in [0, 1, 300, 740, 748, 750, 900, 997, 998, 999] {
            let closing = closing(100_000 + phase_ms);
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
    fn nothing_is_left_out_at_slower_intervals_than_steps() {
        let mut steps = Steps::new(HOST_STEP_MS);
        assert!((0..9).all(|tick| steps.close_at(tick * 60_000, Duration::from_mins(1))));
    }

    #[test]
    fn who_watches_gets_everything_at_the_next_sample() {
        let (watched, second) = (Watched::default(), Duration::from_secs(1));
        let mut steps = Steps::of_history();
        assert_eq!(
            steps.depth(ReadDepth::Full, &watched, second),
            ReadDepth::Full
        );
        watched.set(false);
        assert_eq!(
            steps.depth(ReadDepth::Full, &watched, second),
            ReadDepth::Unwatched { closes_step: true }
        );
        assert_eq!(
            steps.depth(ReadDepth::Metered, &watched, second),
            ReadDepth::Metered
        );
        watched.set(true);
        assert_eq!(
            steps.depth(ReadDepth::Full, &watched, second),
            ReadDepth::Full
        );
    }
}
