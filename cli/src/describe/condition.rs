//! A condition in a few words. Its own text is all that can be said, which views with room for sentences show.

use gpumon_probe::{
    derive::memory_forecast,
    model::{Condition, ConditionKind, GpuProcess, GpuSample, RecoveryAction},
    units::{approximate_duration, byte_size, duration},
};

use super::{
    phrase::{Level, Phrase},
    throttle, xid,
};

/// One phrase, but for throttling, which has one for each reason.
pub(super) fn phrases(condition: &Condition, gpu: &GpuSample) -> Vec<Phrase> {
    let level = Level::from(condition.severity);
    let say = |short: String, long: String| Phrase::new(level, short, long);
    vec![match &condition.kind {
        ConditionKind::Throttled { reasons, .. } => return throttle::phrases(reasons),
        ConditionKind::Xid { code, count, .. } => xid::phrase(level, *code, *count),
        ConditionKind::HeldIdle { idle_ms, .. } => say(
            format!("idle {}", duration(*idle_ms)),
            format!("idle, holding memory for {}", duration(*idle_ms)),
        ),
        ConditionKind::HardlyUsed { sm_percent, .. } => say(
            format!("low SM use: {sm_percent:.0} %"),
            format!("low SM activity: {sm_percent:.0} %"),
        ),
        ConditionKind::SuspectedHang { differing, .. } => match differing.as_slice() {
            [GpuProcess { gpu, pid }] => say(
                "suspected hang".to_owned(),
                format!("suspected hang: GPU {gpu} (PID {pid}) does not wait"),
            ),
            _ => say(
                "suspected hang".to_owned(),
                "suspected hang: kernels run, and nothing moves".to_owned(),
            ),
        },
        ConditionKind::HeldByNobody { bytes } => {
            let held = byte_size(*bytes as f64);
            say(
                format!("{held}, no process"),
                format!("{held} in use that no listed process holds"),
            )
        }
        ConditionKind::SlowerThanItself {
            sm_mhz,
            usual_sm_mhz,
            ..
        } => say(
            format!("slow: {sm_mhz:.0} MHz"),
            format!("slower than itself: {sm_mhz:.0} MHz, usually {usual_sm_mhz:.0} MHz"),
        ),
        ConditionKind::BelowBaseline {
            workload,
            median_us,
            baseline_us,
            ..
        } => {
            let ratio = baseline_us / median_us;
            say(
                format!("bench {ratio:.2}x"),
                format!("below its baseline: {workload} {ratio:.2}x"),
            )
        }
        // What is read now is true whatever the condition remembers.
        ConditionKind::MemoryNearlyFull { free_bytes, .. } => memory_left(
            level,
            gpu.memory
                .free_bytes
                .value()
                .copied()
                .unwrap_or(*free_bytes),
        ),
        ConditionKind::MemoryFilling {
            left_ms,
            bytes_per_second,
            ..
        } => {
            let short = format!("full in {}", approximate_duration(*left_ms));
            say(
                short,
                format!("memory {}", memory_forecast(*left_ms, *bytes_per_second)),
            )
        }
        ConditionKind::EccUncorrected { count: 1 } => say(
            "1 memory error".to_owned(),
            "1 uncorrectable memory error".to_owned(),
        ),
        ConditionKind::EccUncorrected { count } => say(
            format!("{count} memory errors"),
            format!("{count} uncorrectable memory errors"),
        ),
        ConditionKind::RowRemap { failed: true, .. } => say(
            "no spare memory rows".to_owned(),
            "row remapping failed: no spare rows".to_owned(),
        ),
        ConditionKind::RowRemap { .. } => say(
            "row remap pending".to_owned(),
            "row remapping pending: reset the GPU".to_owned(),
        ),
        ConditionKind::PageRetirementPending => say(
            "page retire pending".to_owned(),
            "page retirement pending: reset the GPU".to_owned(),
        ),
        ConditionKind::RecoveryNeeded { action } => {
            let (short, long) = recovery(*action);
            say(short.to_owned(), long.to_owned())
        }
        ConditionKind::NvLinkDown { links } => match links.as_slice() {
            [link] => Phrase::plain(level, &format!("NVLink {link} down")),
            links => Phrase::plain(level, &format!("{} NVLinks down", links.len())),
        },
        ConditionKind::PcieDegraded { width, max_width } => say(
            format!("PCIe x{width} of x{max_width}"),
            format!("PCIe x{width} instead of x{max_width}"),
        ),
    }]
}

pub(super) fn memory_left(level: Level, free_bytes: u64) -> Phrase {
    let left = byte_size(free_bytes as f64);
    Phrase::new(
        level,
        format!("memory: {left} left"),
        format!("memory nearly full: {left} left"),
    )
}

fn recovery(action: RecoveryAction) -> (&'static str, &'static str) {
    match action {
        RecoveryAction::None => ("nothing to recover", "nothing to recover"),
        RecoveryAction::GpuReset => ("reset required", "GPU reset required"),
        RecoveryAction::NodeReboot => ("reboot required", "reboot required"),
        RecoveryAction::DrainP2p => ("peer-to-peer drain", "peer-to-peer drain required"),
        RecoveryAction::DrainAndReset => ("drain, then reset", "drain and reset required"),
    }
}
