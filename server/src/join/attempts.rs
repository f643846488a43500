//! When it is tried to join a server.

use std::time::Duration;

use tokio::time::Instant;

/// Between attempts at a server that is not there, which cost next to nothing, and at one that
/// cannot be joined.
const ABSENT: Duration = Duration::from_secs(5);
const REFUSED: Duration = Duration::from_mins(1);

/// After a server was left, the time until it is joined again doubles from the shorter to the
/// longer.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_mins(5);

/// The next attempt.
#[derive(Debug)]
pub(super) struct Attempts {
    due: Instant,
    /// How long to wait after the next time that it is left.
    next: Duration,
    waits: Duration,
}

impl Attempts {
    /// The first is due.
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

    /// How long to wait after the last.
    pub(super) fn wait(&self) -> Duration {
        self.waits
    }

    /// There was no server, or none to join.
    pub(super) fn failed(&mut self, is_absent: bool) {
        self.wait_for(if is_absent { ABSENT } else { REFUSED });
    }

    /// The server was left, after it had been there for long or not.
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
