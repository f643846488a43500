//! The deadline of a tick that waits for GPUs.

use std::time::{Duration, Instant};

/// The time within which all GPUs that the driver keeps open have been read.
const KEPT_OPEN: Duration = Duration::from_millis(300);

/// The minimum time to wait after a first reading, because GPUs that are read at the same time wait
/// for the same locks of the driver.
const QUIET: Duration = Duration::from_millis(150);

/// The maximum time to wait for a thread that is ready but has no CPU, followed by the interval of
/// checks.
const STARVED: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(50);

/// The time that the driver needs to open a GPU. Without persistence mode, it opens a GPU at its
/// first use.
pub const OPENING: Duration = Duration::from_secs(2);

/// The maximum time to wait in a one-shot command if no GPU answers, because the command has
/// nothing else to show.
pub const OPENING_ONCE: Duration = Duration::from_secs(10);

/// The time until which a tick waits, which is adjusted to the answers so far.
pub(super) struct Deadline {
    begun: Instant,
    latest: Instant,
    at: Instant,
    first_read: Option<Duration>,
    opens_slowly: bool,
}

impl Deadline {
    pub(super) fn after(patience: Duration) -> Self {
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

    pub(super) fn at(&self) -> Instant {
        self.at
    }

    /// Extends the deadline for threads that are ready but have no CPU. Returns `false` if the
    /// maximum time is over.
    pub(super) fn extend(&mut self, now: Instant) -> bool {
        let is_extended = now < (self.begun + STARVED).min(self.latest);
        if is_extended {
            self.at = (now + STEP).min(self.latest);
        }
        is_extended
    }

    /// Adjusts the deadline after the first reading of a GPU. Other GPUs are expected to take as
    /// long to open, unless they hang.
    pub(super) fn on_first_read(&mut self, stays_open: bool, now: Instant) {
        let first_read = *self.first_read.get_or_insert(now - self.begun);
        self.opens_slowly |= !stays_open;
        let quiet = if self.opens_slowly {
            OPENING
        } else {
            first_read.max(QUIET)
        };
        self.at = (now + quiet).max(self.begun + KEPT_OPEN).min(self.latest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the deadline in milliseconds, given the times of GPUs' first readings.
    fn until(reads: &[u64], stays_open: bool) -> u128 {
        let mut deadline = Deadline::after(Duration::from_secs(10));
        for at_ms in reads {
            deadline.on_first_read(stays_open, deadline.begun + Duration::from_millis(*at_ms));
        }
        (deadline.at() - deadline.begun).as_millis()
    }

    #[test]
    fn the_first_gpus_that_are_read_tell_how_long_others_may_take() {
        assert_eq!(until(&[], true), 10_000, "nothing is known yet");
        assert_eq!(until(&[20, 40], true), 300);
        assert_eq!(until(&[20, 200], true), 350, "a driver that is busy");
        assert_eq!(
            until(&[1_500], true),
            3_000,
            "all of them are opened slowly"
        );
        assert_eq!(until(&[1_500, 2_900], true), 4_400);
        assert_eq!(
            until(&[20], false),
            2_020,
            "one is in use, and the driver opens the rest now"
        );
        assert_eq!(until(&[9_000], true), 10_000);
    }

    #[test]
    fn threads_without_cpu_get_two_seconds() {
        let mut deadline = Deadline::after(Duration::from_secs(10));
        let begun = deadline.begun;
        deadline.on_first_read(true, begun);
        let mut seconds = [0.3, 1.9, 2.0].map(|seconds| begun + Duration::from_secs_f64(seconds));
        assert_eq!(seconds.map(|now| deadline.extend(now)), [true, true, false]);
        seconds[1] += STEP;
        assert_eq!(deadline.at(), seconds[1]);
    }
}
