//! What holds the clocks down.

use gpumon_probe::model::ThrottleReason;

use super::phrase::{Level, Phrase};

/// One phrase for each reason that somebody may mind.
pub(super) fn phrases(reasons: &[ThrottleReason]) -> Vec<Phrase> {
    let says_more = [
        ThrottleReason::HwThermalSlowdown,
        ThrottleReason::HwPowerBrakeSlowdown,
    ];
    let is_told_better = reasons.iter().any(|reason| says_more.contains(reason));
    let of_reason = |reason: &ThrottleReason| {
        Some(match reason {
            ThrottleReason::HwThermalSlowdown => Phrase::new(
                Level::Act,
                "thermal slowdown (HW)",
                "hardware thermal slowdown: check the cooling",
            ),
            ThrottleReason::HwPowerBrakeSlowdown => Phrase::new(
                Level::Warn,
                "power brake",
                "power brake by the power supply",
            ),
            ThrottleReason::HwSlowdown if is_told_better => return None,
            ThrottleReason::HwSlowdown => Phrase::plain(Level::Warn, "hardware slowdown"),
            ThrottleReason::SwThermalSlowdown => Phrase::plain(Level::Warn, "thermal slowdown"),
            ThrottleReason::SwPowerCap => Phrase::plain(Level::Note, "power-capped"),
            ThrottleReason::SyncBoost => Phrase::plain(Level::Note, "sync boost limit"),
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
        (
            ThrottleReason::ApplicationsClocksSetting,
            "application clocks set",
        ),
        (ThrottleReason::DisplayClockSetting, "display clock set"),
    ];
    let (_, text) = known
        .into_iter()
        .find(|(reason, _)| reasons.contains(reason))?;
    Some(Phrase::plain(Level::Quiet, text))
}
