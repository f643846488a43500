//! What holds the clocks down.

use gpumon_probe::model::ThrottleReason;

use super::phrase::{Level, Phrase};

/// One phrase for each reason that somebody may mind.
pub(super) fn phrases(reasons: &[ThrottleReason]) -> Vec<Phrase> {
    let says_more = [ThrottleReason::HwThermalSlowdown, ThrottleReason::HwPowerBrakeSlowdown];
    let is_told_better = reasons.iter().any(|reason| says_more.contains(reason));
    let of_reason = |reason: &ThrottleReason| {
        Some(match reason {
            ThrottleReason::HwThermalSlowdown => {
                Phrase::new(Level::Act, "slowed hard by heat", "slowed hard by heat: check the cooling")
            }
            ThrottleReason::HwPowerBrakeSlowdown => {
                Phrase::new(Level::Warn, "power brake", "power brake: the supply asks for less")
            }
            ThrottleReason::HwSlowdown if is_told_better => return None,
            ThrottleReason::HwSlowdown => Phrase::plain(Level::Warn, "slowed by the hardware"),
            ThrottleReason::SwThermalSlowdown => Phrase::plain(Level::Warn, "slowed by heat"),
            ThrottleReason::SwPowerCap => Phrase::plain(Level::Note, "power capped"),
            ThrottleReason::SyncBoost => Phrase::plain(Level::Note, "held by its boost group"),
            ThrottleReason::GpuIdle
            | ThrottleReason::ApplicationsClocksSetting
            | ThrottleReason::DisplayClockSetting => return None,
        })
    };
    reasons.iter().filter_map(of_reason).collect()
}

/// What holds the clocks where they are and is no concern.
pub(super) fn as_it_should_be(reasons: &[ThrottleReason]) -> Option<Phrase> {
    let known = [
        (ThrottleReason::ApplicationsClocksSetting, "clocks set by the user"),
        (ThrottleReason::DisplayClockSetting, "clocks held for display"),
    ];
    let (_, text) = known.into_iter().find(|(reason, _)| reasons.contains(reason))?;
    Some(Phrase::plain(Level::Quiet, text))
}
