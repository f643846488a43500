//! The driver asks for something before the GPU is used again.

use super::{
    rule::{Matter, PlainRule, Rule, View},
    spell::Sight,
};
use crate::model::{ConditionKind, RecoveryAction, Severity};

pub(super) fn rule() -> impl Rule {
    PlainRule::new(0, 0, look)
}

/// Whether the driver asks for anything; `None` where it is not known.
pub(super) fn is_needed(view: &View<'_>) -> Option<bool> {
    view.detail(|details| &details.recovery_action).map(|action| *action != RecoveryAction::None)
}

fn look(view: &View<'_>, _: bool) -> Sight<Matter> {
    let Some(&action) = view.detail(|details| &details.recovery_action) else { return Sight::Unknown };
    let (severity, text) = match action {
        RecoveryAction::None => return Sight::Clear,
        RecoveryAction::GpuReset => {
            (Severity::Critical, "GPU reset required: stop its processes, then run `nvidia-smi --gpu-reset`.")
        }
        RecoveryAction::NodeReboot => (Severity::Critical, "Reboot required before the GPU is used again."),
        RecoveryAction::DrainP2p => (
            Severity::Warning,
            "Peer-to-peer drain required: stop programs that use several GPUs together, and start none until they have ended.",
        ),
        RecoveryAction::DrainAndReset => {
            (Severity::Critical, "Drain and reset required: let running programs end, start none, then reset the GPU.")
        }
    };
    Sight::Seen(Matter { severity, text: text.to_owned(), kind: ConditionKind::RecoveryNeeded { action } })
}

#[cfg(test)]
mod tests {
    use super::super::stage::{Stage, told};
    use super::*;
    use crate::model::Reading;

    #[test]
    fn it_lasts_while_the_driver_asks_for_something() {
        let asks =
            |action| move |details: &mut crate::model::GpuDetails| details.recovery_action = Reading::Now(action);
        let mut stage = Stage::new();
        stage.show_details(1, asks(RecoveryAction::None));
        for action in [RecoveryAction::DrainP2p, RecoveryAction::GpuReset, RecoveryAction::NodeReboot] {
            stage.show_details(1, asks(action));
            assert_eq!(stage.only().kind, ConditionKind::RecoveryNeeded { action });
        }
        assert_eq!(stage.only().severity, Severity::Critical);
        stage.show_details(1, asks(RecoveryAction::None));
        assert_eq!(stage.news(), [told(2, "+recovery_needed"), told(5, "-recovery_needed")]);
    }
}
