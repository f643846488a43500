//! The signals that end the worker process, and the time within which each must take effect.

use std::time::{Duration, Instant};

use rustix::process::Signal;

/// The reason why a process is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The run was canceled by a user.
    Canceled,
    /// The time limit of the job was reached.
    TimeLimit,
    /// The parent process is exiting.
    ParentEnds,
}

type SignalStep = (Signal, Duration);

const SIGNAL_TIMEOUT: Duration = Duration::from_secs(5);
/// The signals in most cases. After the first signal, the process releases its memory and reports
/// its results.
const USUAL_STEPS: &[SignalStep] = &[
    (Signal::INT, SIGNAL_TIMEOUT),
    (Signal::TERM, SIGNAL_TIMEOUT),
    (Signal::KILL, SIGNAL_TIMEOUT),
];
/// The signals if the parent is exiting. The parent waits for at most a second.
const PARENT_END_STEPS: &[SignalStep] = &[
    (Signal::INT, Duration::from_millis(600)),
    (Signal::KILL, SIGNAL_TIMEOUT),
];

impl StopReason {
    /// Returns `true` if this reason takes precedence over `before`, the reason for which the
    /// process is already being stopped.
    pub(super) fn overrides(self, before: Self) -> bool {
        self == Self::ParentEnds && before != Self::ParentEnds
    }
}

/// The next action for ending a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextAction {
    /// Nothing has to be done, because the last signal still has time to take effect.
    Nothing,
    /// This signal has to be sent to the process.
    Signal(Signal),
    /// All signals were sent without effect.
    GiveUp,
}

/// The signals that have not been sent yet.
pub(super) struct SignalSequence {
    steps: std::slice::Iter<'static, SignalStep>,
    next_at: Instant,
}

impl SignalSequence {
    pub(super) fn new(reason: StopReason) -> Self {
        let steps = if reason == StopReason::ParentEnds {
            PARENT_END_STEPS
        } else {
            USUAL_STEPS
        };
        Self {
            steps: steps.iter(),
            next_at: Instant::now(),
        }
    }

    /// Returns the action that is currently due. Each signal is returned only once.
    pub(super) fn next_action(&mut self) -> NextAction {
        if Instant::now() < self.next_at {
            return NextAction::Nothing;
        }
        let step = self.steps.next();
        self.next_at = Instant::now() + step.map_or(SIGNAL_TIMEOUT, |(_, patience)| *patience);
        step.map_or(NextAction::GiveUp, |(signal, _)| {
            NextAction::Signal(*signal)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_is_due_once_until_giving_up() {
        let mut signals = SignalSequence::new(StopReason::ParentEnds);
        assert_eq!(
            (signals.next_action(), signals.next_action()),
            (NextAction::Signal(Signal::INT), NextAction::Nothing)
        );
        signals.next_at = Instant::now();
        assert_eq!(signals.next_action(), NextAction::Signal(Signal::KILL));
        signals.next_at = Instant::now();
        assert_eq!(signals.next_action(), NextAction::GiveUp);
        assert!(StopReason::ParentEnds.overrides(StopReason::Canceled));
        assert!(!StopReason::Canceled.overrides(StopReason::TimeLimit));
    }
}
