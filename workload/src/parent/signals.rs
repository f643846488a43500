//! Which signals end the process that works, and how long each has to take effect.

use std::time::{Duration, Instant};

use rustix::process::Signal;

/// Why a process is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Somebody does not want it any more.
    Canceled,
    /// It takes longer than it may.
    TimeLimit,
    /// The process that started it ends.
    ParentEnds,
}

type Step = (Signal, Duration);

const PATIENCE: Duration = Duration::from_secs(5);
/// It gives memory back and reports what it has.
const USUAL: &[Step] = &[
    (Signal::INT, PATIENCE),
    (Signal::TERM, PATIENCE),
    (Signal::KILL, PATIENCE),
];
/// A parent that ends waits for nobody for longer than a second.
const HURRIED: &[Step] = &[
    (Signal::INT, Duration::from_millis(600)),
    (Signal::KILL, PATIENCE),
];

impl StopReason {
    /// Whether this replaces a reason for which it is being stopped already.
    pub(super) fn overrides(self, before: Self) -> bool {
        self == Self::ParentEnds && before != Self::ParentEnds
    }
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The last signal has still time to take effect.
    Nothing,
    /// This signal is to be sent.
    Signal(Signal),
    /// The last signal had no effect.
    GiveUp,
}

/// The signals that are still to be sent.
pub(super) struct Signals {
    steps: std::slice::Iter<'static, Step>,
    next_at: Instant,
}

impl Signals {
    pub(super) fn new(reason: StopReason) -> Self {
        let steps = if reason == StopReason::ParentEnds {
            HURRIED
        } else {
            USUAL
        };
        Self {
            steps: steps.iter(),
            next_at: Instant::now(),
        }
    }

    /// What is due now; each signal once.
    pub(super) fn due(&mut self) -> Due {
        if Instant::now() < self.next_at {
            return Due::Nothing;
        }
        let step = self.steps.next();
        self.next_at = Instant::now() + step.map_or(PATIENCE, |(_, patience)| *patience);
        step.map_or(Due::GiveUp, |(signal, _)| Due::Signal(*signal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_is_due_once_and_after_the_last_nothing_is_left() {
        let mut signals = Signals::new(StopReason::ParentEnds);
        assert_eq!(
            (signals.due(), signals.due()),
            (Due::Signal(Signal::INT), Due::Nothing)
        );
        signals.next_at = Instant::now();
        assert_eq!(signals.due(), Due::Signal(Signal::KILL));
        signals.next_at = Instant::now();
        assert_eq!(signals.due(), Due::GiveUp);
        assert!(StopReason::ParentEnds.overrides(StopReason::Canceled));
        assert!(!StopReason::Canceled.overrides(StopReason::TimeLimit));
    }
}
