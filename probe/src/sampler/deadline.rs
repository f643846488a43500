//! Until when a tick waits for the GPUs that it asked.

use std::time::{Duration, Instant};

/// A GPU that the driver keeps open has been read by then.
const KEPT_OPEN: Duration = Duration::from_millis(300);

/// Many GPUs that are read at the same time wait for the same locks of the driver.
const QUIET: Duration = Duration::from_millis(150);

/// How long a tick waits for a thread that could run but has no CPU, and how often it looks.
const STARVED: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(50);

/// How long the driver takes to open a GPU that it does not keep open, which it does at its first
/// use.
pub const OPENING: Duration = Duration::from_secs(2);

/// How long a one-shot command waits where no GPU answers, since it has nothing else to show.
pub const OPENING_ONCE: Duration = Duration::from_secs(10);

/// Until when to wait.
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

    /// Waits longer for threads that have no CPU to run on. Returns `false` if it has done so for
    /// as long as it may.
    pub(super) fn extend(&mut self, now: Instant) -> bool {
        let is_extended = now < (self.begun + STARVED).min(self.latest);
        if is_extended {
            self.at = (now + STEP).min(self.latest);
        }
        is_extended
    }

    /// A GPU was read for the first time. Others are opened as slowly as it was, unless they hang.
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

    /// Milliseconds until the deadline, after GPUs were read for the first time at these.
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
