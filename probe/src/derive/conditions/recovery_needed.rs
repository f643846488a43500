//! The driver asks for something before the GPU is used again.

use super::{
    hysteresis::Observation,
    rule::{Finding, PlainRule, Rule, View},
};
use crate::model::{ConditionKind, RecoveryAction, Severity};

pub(super) fn rule() -> impl Rule {
    PlainRule::new(0, 0, observe)
}

/// Whether the driver asks for anything; `None` where it is not known.
pub(super) fn is_needed(view: &View<'_>) -> Option<bool> {
    view.detail(|details| &details.recovery_action)
        .map(|action| *action != RecoveryAction::None)
}

fn observe(view: &View<'_>, _: bool) -> Observation<Finding> {
    let Some(&action) = view.detail(|details| &details.recovery_action) else {
        return Observation::Unknown;
    };
    let (severity, text) = match action {
        RecoveryAction::None => return Observation::Inactive,
        RecoveryAction::GpuReset => (
            Severity::Critical,
            "GPU reset required: stop its processes, then run `nvidia-smi --gpu-reset`.",
        ),
        RecoveryAction::NodeReboot => (
            Severity::Critical,
            "Reboot required before the GPU is used again.",
        ),
        RecoveryAction::DrainP2p => (
            Severity::Warning,
            "Peer-to-peer drain required: stop programs that use several GPUs together, and start none until they have ended.",
        ),
        RecoveryAction::DrainAndReset => (
            Severity::Critical,
            "Drain and reset required: let running programs end, start none, then reset the GPU.",
        ),
    };
    Observation::Active(Finding {
        severity,
        text: text.to_owned(),
        kind: ConditionKind::RecoveryNeeded { action },
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{TestTimeline, event};
    use super::*;
    use crate::model::Reading;

    #[test]
    fn it_lasts_while_the_driver_asks_for_something() {
        let asks = |action| {
            move |details: &mut crate::model::GpuDetails| {
                details.recovery_action = Reading::Now(action);
            }
        };
        let mut timeline = TestTimeline::new();
        timeline.show_details(1, asks(RecoveryAction::None));
        for action in [
            RecoveryAction::DrainP2p,
            RecoveryAction::GpuReset,
            RecoveryAction::NodeReboot,
        ] {
            timeline.show_details(1, asks(action));
            assert_eq!(
                timeline.only().kind,
                ConditionKind::RecoveryNeeded { action }
            );
        }
        assert_eq!(timeline.only().severity, Severity::Critical);
        timeline.show_details(1, asks(RecoveryAction::None));
        assert_eq!(
            timeline.take_events(),
            [event(2, "+recovery_needed"), event(5, "-recovery_needed")]
        );
    }
}
