//! The times at which this server tries to join another server.

use std::time::Duration;

use tokio::time::Instant;

/// The pause before the next attempt if there is no server. Such attempts cost almost nothing.
/// `REFUSED_PAUSE` applies if the server cannot be joined.
const ABSENT_PAUSE: Duration = Duration::from_secs(5);
const REFUSED_PAUSE: Duration = Duration::from_mins(1);

/// The shortest pause before joining again after a lost connection. The pause doubles with each
/// loss, up to `MAX_PAUSE`.
const MIN_PAUSE: Duration = Duration::from_secs(10);
const MAX_PAUSE: Duration = Duration::from_mins(5);

/// The time of the next attempt, and how it was chosen.
#[derive(Debug)]
pub(super) struct Attempts {
    due: Instant,
    /// The pause after the next loss of the connection.
    next: Duration,
    waits: Duration,
}

impl Attempts {
    /// Creates the state in which the first attempt is due immediately.
    pub(super) fn new() -> Self {
        Self {
            due: Instant::now(),
            next: MIN_PAUSE,
            waits: Duration::ZERO,
        }
    }

    pub(super) fn is_due(&self) -> bool {
        self.due <= Instant::now()
    }

    pub(super) fn due_time(&self) -> Instant {
        self.due
    }

    /// Returns the pause that began at the last failure.
    pub(super) fn current_pause(&self) -> Duration {
        self.waits
    }

    /// Schedules the next attempt. `is_absent` is whether there was no server, as opposed to one
    /// that cannot be joined.
    pub(super) fn record_failure(&mut self, is_absent: bool) {
        self.delay_next_attempt(if is_absent {
            ABSENT_PAUSE
        } else {
            REFUSED_PAUSE
        });
    }

    /// Schedules the next attempt after the connection was lost. `was_steady` is whether the
    /// connection had lasted long.
    pub(super) fn record_loss(&mut self, was_steady: bool) {
        let wait = if was_steady { MIN_PAUSE } else { self.next };
        self.next = (wait * 2).min(MAX_PAUSE);
        self.delay_next_attempt(wait);
    }

    fn delay_next_attempt(&mut self, wait: Duration) {
        (self.waits, self.due) = (wait, Instant::now() + wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unstable_server_is_joined_less_often() {
        let mut attempts = Attempts::new();
        assert!(attempts.is_due());
        let waits = [(); 7].map(|()| {
            attempts.record_loss(false);
            assert!(!attempts.is_due());
            attempts.current_pause().as_secs()
        });
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
        attempts.record_loss(true);
        assert_eq!(attempts.current_pause(), MIN_PAUSE);
        attempts.record_failure(true);
        assert_eq!(attempts.current_pause(), ABSENT_PAUSE);
        attempts.record_failure(false);
        assert_eq!(attempts.current_pause(), REFUSED_PAUSE);
    }
}
