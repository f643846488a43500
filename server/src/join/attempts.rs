//! Times of the attempts to join a server.

use std::time::Duration;

use tokio::time::Instant;

/// The time between attempts at a server that does not exist, which cost almost nothing, and at one
/// that cannot be joined.
const ABSENT: Duration = Duration::from_secs(5);
const REFUSED: Duration = Duration::from_mins(1);

/// The limits of the time until a server is joined again, which doubles each time the connection is
/// lost.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_mins(5);

/// The time of the next attempt.
#[derive(Debug)]
pub(super) struct Attempts {
    due: Instant,
    /// The time to wait after the next loss of the connection.
    next: Duration,
    waits: Duration,
}

impl Attempts {
    /// Returns a state in which the first attempt is due.
    pub(super) fn new() -> Self {
        Self {
            due: Instant::now(),
            next: SHORTEST,
            waits: Duration::ZERO,
        }
    }

    pub(super) fn is_due(&self) -> bool {
        self.due <= Instant::now()
    }

    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Returns the time to wait since the last failure.
    pub(super) fn wait(&self) -> Duration {
        self.waits
    }

    /// Sets the next attempt after there was no server, or one that cannot be joined.
    pub(super) fn failed(&mut self, is_absent: bool) {
        self.wait_for(if is_absent { ABSENT } else { REFUSED });
    }

    /// Sets the next attempt after the connection was lost. `was_steady` is whether it had lasted
    /// long.
    pub(super) fn lost(&mut self, was_steady: bool) {
        let wait = if was_steady { SHORTEST } else { self.next };
        self.next = (wait * 2).min(LONGEST);
        self.wait_for(wait);
    }

    fn wait_for(&mut self, wait: Duration) {
        (self.waits, self.due) = (wait, Instant::now() + wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_comes_and_goes_is_joined_less_and_less_often() {
        let mut attempts = Attempts::new();
        assert!(attempts.is_due());
        let waits = [(); 7].map(|()| {
            attempts.lost(false);
            assert!(!attempts.is_due());
            attempts.wait().as_secs()
        });
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
        attempts.lost(true);
        assert_eq!(attempts.wait(), SHORTEST);
        attempts.failed(true);
        assert_eq!(attempts.wait(), ABSENT);
        attempts.failed(false);
        assert_eq!(attempts.wait(), REFUSED);
    }
}
