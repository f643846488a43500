//! A condition in a few words. Its own text is all that can be said, which views with room for sentences show.

use gpumon_probe::model::{Condition, ConditionKind, GpuSample, RecoveryAction};

use super::{
    memory::size,
    phrase::{Level, Phrase},
    throttle, xid,
};
use crate::table::units::{long, rough};

/// One phrase, but for throttling, which has one for each reason.
pub(super) fn phrases(condition: &Condition, gpu: &GpuSample) -> Vec<Phrase> {
    let level = Level::from(condition.severity);
    let say = |short: String, long: String| Phrase::new(level, short, long);
    vec![match &condition.kind {
        ConditionKind::Throttled { reasons } => return throttle::phrases(reasons),
        ConditionKind::Xid { code, count, .. } => xid::phrase(level, *code, *count),
        ConditionKind::HeldIdle { idle_ms, .. } => {
            say(format!("held idle {}", long(*idle_ms)), format!("held but idle {}", long(*idle_ms)))
        }
        ConditionKind::HardlyUsed { sm_percent, .. } => say(
            format!("hardly used: SM {sm_percent:.0} %"),
            format!("hardly used: only {sm_percent:.0} % of its multiprocessors work"),
        ),
        // What is read now is true whatever the condition remembers.
        ConditionKind::MemoryNearlyFull { free_bytes, .. } => {
            memory_left(level, gpu.memory.free_bytes.value().copied().unwrap_or(*free_bytes))
        }
        ConditionKind::MemoryFilling { left_ms, bytes_per_second, .. } => {
            let (soon, rate) = (rough(*left_ms), size(*bytes_per_second));
            say(format!("full in {soon}"), format!("memory full in about {soon}: grows {rate}/s"))
        }
        ConditionKind::EccUncorrected { count: 1 } => say("1 memory error".to_owned(), headline(condition)),
        ConditionKind::EccUncorrected { count } => say(format!("{count} memory errors"), headline(condition)),
        ConditionKind::RowRemap { failed: true, .. } => say("no spare memory rows".to_owned(), headline(condition)),
        ConditionKind::RowRemap { .. } => say("reset to repair memory".to_owned(), headline(condition)),
        ConditionKind::PageRetirementPending => say("reset to retire pages".to_owned(), headline(condition)),
        ConditionKind::RecoveryNeeded { action } => say(recovery(*action).to_owned(), headline(condition)),
        ConditionKind::NvLinkDown { links } => match links.as_slice() {
            [link] => say(format!("NVLink {link} down"), headline(condition)),
            links => say(format!("{} NVLinks down", links.len()), headline(condition)),
        },
        ConditionKind::PcieDegraded { width, max_width } => {
            say(format!("PCIe x{width} of x{max_width}"), format!("PCIe x{width} instead of x{max_width}"))
        }
    }]
}

pub(super) fn memory_left(level: Level, free_bytes: u64) -> Phrase {
    let left = size(free_bytes as f64);
    Phrase::new(level, format!("memory: {left} left"), format!("memory nearly full: {left} left"))
}

/// The sentence up to where advice begins.
fn headline(condition: &Condition) -> String {
    let ends = ["; ", ". "].into_iter().filter_map(|mark| condition.text.find(mark));
    let end = ends.min().unwrap_or(condition.text.len());
    condition.text[..end].trim_end_matches('.').to_owned()
}

fn recovery(action: RecoveryAction) -> &'static str {
    match action {
        RecoveryAction::None => "nothing to recover",
        RecoveryAction::GpuReset => "needs a reset",
        RecoveryAction::NodeReboot => "needs a reboot",
        RecoveryAction::DrainP2p => "end peer-to-peer work",
        RecoveryAction::DrainAndReset => "drain it, then reset",
    }
}
