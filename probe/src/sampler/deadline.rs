//! The deadline of a tick that waits for the GPUs' responses.

use std::time::{Duration, Instant};

/// The time within which all GPUs that the driver keeps open can be read.
const KEPT_OPEN_TIME: Duration = Duration::from_millis(300);

/// The minimum time to wait after a GPU's first reading. GPUs that are read at the same time wait
/// for the same driver locks.
const MIN_QUIET_TIME: Duration = Duration::from_millis(150);

/// The maximum total time to wait for threads that are ready to run but get no CPU.
pub(super) const MAX_STARVED_TIME: Duration = Duration::from_secs(2);
const STARVED_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The time that the driver needs to open a GPU. Without persistence mode, a GPU is opened at its
/// first use.
pub const OPENING_TIME: Duration = Duration::from_secs(2);

/// The maximum time that a one-shot command waits if no GPU responds, because it has nothing else
/// to show.
pub const ONE_SHOT_OPENING_TIME: Duration = Duration::from_secs(10);

/// The time at which a tick stops waiting, adjusted according to the responses so far.
pub(super) struct Deadline {
    begun: Instant,
    latest: Instant,
    at: Instant,
    first_read: Option<Duration>,
    opens_slowly: bool,
}

impl Deadline {
    pub(super) fn with_patience(patience: Duration) -> Self {
        let begun = Instant::now();
        let latest = begun + patience;
        Self {
            begun,
            latest,
            at: latest,
            first_read: None,
            opens_slowly: false,
        }
    }

    pub(super) fn instant(&self) -> Instant {
        self.at
    }

    /// Extends the deadline for threads that are ready to run but get no CPU. Returns `false` if
    /// the maximum time is over.
    pub(super) fn extend(&mut self, now: Instant) -> bool {
        let is_extended = now < (self.begun + MAX_STARVED_TIME).min(self.latest);
        if is_extended {
            self.at = (now + STARVED_CHECK_INTERVAL).min(self.latest);
        }
        is_extended
    }

    /// Adjusts the deadline after a GPU's first reading. Other GPUs are expected to open within the
    /// same time, unless they hang.
    pub(super) fn on_first_read(&mut self, stays_open: bool, now: Instant) {
        let first_read = *self.first_read.get_or_insert(now - self.begun);
        self.opens_slowly |= !stays_open;
        let quiet = if self.opens_slowly {
            OPENING_TIME
        } else {
            first_read.max(MIN_QUIET_TIME)
        };
        self.at = (now + quiet)
            .max(self.begun + KEPT_OPEN_TIME)
            .min(self.latest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the deadline in milliseconds, given the times of the GPUs' first readings.
    fn deadline_ms(reads: &[u64], stays_open: bool) -> u128 {
        let mut deadline = Deadline::with_patience(Duration::from_secs(10));
        for at_ms in reads {
            deadline.on_first_read(stays_open, deadline.begun + Duration::from_millis(*at_ms));
        }
        (deadline.instant() - deadline.begun).as_millis()
    }

    #[test]
    fn first_reads_determine_deadline() {
        assert_eq!(deadline_ms(&[], true), 10_000, "nothing is known yet");
        assert_eq!(deadline_ms(&[20, 40], true), 300);
        assert_eq!(deadline_ms(&[20, 200], true), 350, "a driver that is busy");
        assert_eq!(
            deadline_ms(&[1_500], true),
            3_000,
            "all of them are opened slowly"
        );
        assert_eq!(deadline_ms(&[1_500, 2_900], true), 4_400);
        assert_eq!(
            deadline_ms(&[20], false),
            2_020,
            "one is in use, and the driver opens the rest now"
        );
        assert_eq!(deadline_ms(&[9_000], true), 10_000);
    }

    #[test]
    fn threads_without_cpu_get_two_seconds() {
        let mut deadline = Deadline::with_patience(Duration::from_secs(10));
        let begun = deadline.begun;
        deadline.on_first_read(true, begun);
        let mut seconds = [0.3, 1.9, 2.0].map(|seconds| begun + Duration::from_secs_f64(seconds));
        assert_eq!(seconds.map(|now| deadline.extend(now)), [true, true, false]);
        seconds[1] += STARVED_CHECK_INTERVAL;
        assert_eq!(deadline.instant(), seconds[1]);
    }
}
