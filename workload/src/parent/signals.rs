//! The signals that end the worker process, and how long each has to take effect.

use std::time::{Duration, Instant};

use rustix::process::Signal;

/// Why a process is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The run was canceled by a user.
    Canceled,
    /// The time limit was reached.
    TimeLimit,
    /// The parent process ends.
    ParentEnds,
}

type Step = (Signal, Duration);

const PATIENCE: Duration = Duration::from_secs(5);
/// The usual signals. After the first one, the process releases its memory and reports its results.
const USUAL: &[Step] = &[
    (Signal::INT, PATIENCE),
    (Signal::TERM, PATIENCE),
    (Signal::KILL, PATIENCE),
];
/// The signals if the parent ends, which waits no longer than a second.
const HURRIED: &[Step] = &[
    (Signal::INT, Duration::from_millis(600)),
    (Signal::KILL, PATIENCE),
];

impl StopReason {
    /// Returns `true` if this reason replaces one for which the process is already being stopped.
    pub(super) fn overrides(self, before: Self) -> bool {
        self == Self::ParentEnds && before != Self::ParentEnds
    }
}

/// The next action to end a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Wait, because the last signal still has time to take effect.
    Nothing,
    /// Send this signal to the process.
    Signal(Signal),
    /// The last signal had no effect.
    GiveUp,
}

/// The signals that remain to be sent.
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

    /// Returns the action that is due now. Each signal is returned once.
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
