//! What is the matter and what happened, in words.

use gpumon_probe::model::{
    Absence, Condition, ConditionKind, Event, EventKind, GpuSample, Health, NvLinkRemote, PciPath, ProcessRef, Reading,
    RecoveryAction, Severity, ThrottleReason,
};

use super::text::{bytes, printable};
use crate::table::units::duration;

/// How much words matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    Quiet,
    /// Worth knowing.
    Notice,
    /// Somebody should act.
    Alarm,
}

/// A few words, and how much they matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) weight: Weight,
}

impl Words {
    fn new(weight: Weight, text: impl Into<String>) -> Self {
        Self { text: text.into(), weight }
    }
}

/// What is the matter with a GPU, in a few words each, the worst first.
pub(super) fn of_gpu(gpu: &GpuSample, now_ms: u64) -> Vec<Words> {
    let since = |since_ms: u64| duration(now_ms.saturating_sub(since_ms));
    let mut words: Vec<Words> = match &gpu.health {
        Health::Ok if gpu.power.draw_watts == Reading::Absent(Absence::NoAnswer) => {
            vec![Words::new(Weight::Notice, "the driver has not answered yet")]
        }
        Health::Ok => Vec::new(),
        Health::Asleep { .. } => vec![Words::new(Weight::Notice, "asleep to save power")],
        Health::Hung { since_ms } => {
            vec![Words::new(Weight::Alarm, format!("hung for {}: the driver does not answer", since(*since_ms)))]
        }
        Health::Lost { since_ms } => {
            vec![Words::new(Weight::Alarm, format!("lost for {}: reset or reboot", since(*since_ms)))]
        }
        Health::Failed { reason, .. } => vec![Words::new(Weight::Alarm, format!("cannot be opened: {reason}"))],
    };
    words.extend(gpu.conditions.iter().map(|condition| Words::new(weight(condition.severity), short(condition))));
    words.sort_by_key(|words| std::cmp::Reverse(words.weight));
    words
}

pub(super) fn weight(severity: Severity) -> Weight {
    match severity {
        Severity::Notice => Weight::Quiet,
        Severity::Warning => Weight::Notice,
        Severity::Critical => Weight::Alarm,
    }
}

/// A condition in a few words; its own text is a sentence.
fn short(condition: &Condition) -> String {
    match &condition.kind {
        ConditionKind::Xid { code, count: 1, .. } => format!("Xid {code}"),
        ConditionKind::Xid { code, count, .. } => format!("Xid {code}, {count} times"),
        ConditionKind::Throttled { reasons } => {
            reasons.iter().filter_map(|reason| throttled(*reason)).collect::<Vec<_>>().join(", ")
        }
        ConditionKind::HeldIdle { idle_ms, .. } => {
            format!("held but idle {}", duration(*idle_ms))
        }
        ConditionKind::HardlyUsed { sm_percent, .. } => format!("hardly used: SM {sm_percent:.0} %"),
        ConditionKind::MemoryNearlyFull { free_bytes, .. } => format!("{} left", bytes(*free_bytes as f64)),
        ConditionKind::EccUncorrected { count: 1 } => "1 memory error".to_owned(),
        ConditionKind::EccUncorrected { count } => format!("{count} memory errors"),
        ConditionKind::RowRemap { failed: true, .. } => "memory rows used up: replace the board".to_owned(),
        ConditionKind::RowRemap { .. } => "reset to repair memory rows".to_owned(),
        ConditionKind::PageRetirementPending => "reset to retire memory pages".to_owned(),
        ConditionKind::RecoveryNeeded { action } => recovery(*action).to_owned(),
        ConditionKind::NvLinkDown { links } => match links.as_slice() {
            [link] => format!("NVLink {link} down"),
            links => format!("{} NVLinks down", links.len()),
        },
        ConditionKind::PcieDegraded { width, max_width } => format!("PCIe x{width} of x{max_width}"),
    }
}

fn throttled(reason: ThrottleReason) -> Option<&'static str> {
    match reason {
        ThrottleReason::GpuIdle => None,
        ThrottleReason::ApplicationsClocksSetting => Some("clocks set by the user"),
        ThrottleReason::SwPowerCap => Some("power capped"),
        ThrottleReason::HwSlowdown => Some("slowed by the hardware"),
        ThrottleReason::SyncBoost => Some("held back by its boost group"),
        ThrottleReason::SwThermalSlowdown => Some("slowed by heat"),
        ThrottleReason::HwThermalSlowdown => Some("slowed hard by heat"),
        ThrottleReason::HwPowerBrakeSlowdown => Some("power brake"),
        ThrottleReason::DisplayClockSetting => Some("clocks held for a display"),
    }
}

fn recovery(action: RecoveryAction) -> &'static str {
    match action {
        RecoveryAction::None => "nothing to recover",
        RecoveryAction::GpuReset => "needs a reset",
        RecoveryAction::NodeReboot => "needs a reboot",
        RecoveryAction::DrainP2p => "end programs that use peer-to-peer",
        RecoveryAction::DrainAndReset => "let programs end, then reset",
    }
}

/// An event in a sentence.
pub(super) fn of_event(event: &Event) -> Words {
    match &event.what {
        EventKind::GpuLost => {
            Words::new(Weight::Alarm, "The GPU is lost: the driver says that it has fallen off the bus.")
        }
        EventKind::GpuHung => Words::new(Weight::Alarm, "The driver does not answer for this GPU."),
        EventKind::GpuFailed => Words::new(Weight::Alarm, "The driver refuses to open this GPU."),
        EventKind::GpuAsleep => Words::new(Weight::Quiet, "The system has switched the GPU off to save power."),
        EventKind::GpuBack => Words::new(Weight::Quiet, "The GPU answers again."),
        EventKind::Xid(xid) => {
            let process = xid.pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
            Words::new(Weight::Notice, format!("Xid {}{process}: {} {}", xid.code, xid.meaning, xid.advice))
        }
        EventKind::EccErrors { corrected, uncorrected: 0 } => {
            Words::new(Weight::Quiet, format!("Memory errors corrected by the hardware: {corrected}."))
        }
        EventKind::EccErrors { uncorrected, .. } => Words::new(
            Weight::Alarm,
            format!("Memory errors not corrected: {uncorrected}. What was computed with them is wrong: run it again."),
        ),
        EventKind::ConditionBegan(condition) => Words::new(weight(condition.severity), &*condition.text),
        EventKind::ConditionEnded(condition) => Words::new(Weight::Quiet, format!("Over: {}", condition.text)),
        EventKind::ProcessStarted(process) => Words::new(Weight::Quiet, format!("{} started.", of_process(process))),
        EventKind::ProcessEnded(process) => Words::new(Weight::Quiet, format!("{} ended.", of_process(process))),
        EventKind::MigChanged => Words::new(Weight::Quiet, "MIG was switched on or off, or its instances changed."),
        EventKind::PowerSourceChanged => Words::new(Weight::Quiet, "The board's power supply changed."),
    }
}

/// `train.py (ana, 4711)`.
fn of_process(process: &ProcessRef) -> String {
    let name = process.name.value().map_or_else(|| "A process".to_owned(), |name| printable(name));
    match process.user.value() {
        Some(user) => format!("{name} ({}, {})", printable(user), process.pid),
        None => format!("{name} ({})", process.pid),
    }
}

/// What `nvidia-smi topo -m` writes.
pub(super) fn of_path(path: PciPath) -> &'static str {
    match path {
        PciPath::Internal => "INT",
        PciPath::Single => "PIX",
        PciPath::Multiple => "PXB",
        PciPath::HostBridge => "PHB",
        PciPath::Node => "NODE",
        PciPath::System => "SYS",
    }
}

pub(super) fn of_remote(remote: NvLinkRemote) -> &'static str {
    match remote {
        NvLinkRemote::Gpu => "GPU",
        NvLinkRemote::Npu => "NPU",
        NvLinkRemote::Switch => "NVSwitch",
        NvLinkRemote::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::testing;

    fn condition(severity: Severity, kind: ConditionKind) -> Condition {
        Condition { since_ms: 0, severity, text: "A sentence.".to_owned(), kind }
    }

    #[test]
    fn the_worst_comes_first_and_idle_clocks_are_no_matter() {
        let mut gpu = testing::sample(1).gpus.remove(0);
        gpu.conditions = vec![
            condition(Severity::Warning, ConditionKind::Throttled { reasons: vec![ThrottleReason::SwPowerCap] }),
            condition(Severity::Critical, ConditionKind::Xid { code: 79, count: 2, last_ms: 0 }),
        ];
        let words: Vec<_> = of_gpu(&gpu, 0).into_iter().map(|words| words.text).collect();
        assert_eq!(words, ["Xid 79, 2 times", "power capped"]);
        gpu.health = Health::Hung { since_ms: 1000 };
        assert_eq!(of_gpu(&gpu, 61_000)[0].text, "hung for 1m: the driver does not answer");
    }

    #[test]
    fn names_of_processes_cannot_drive_the_terminal() {
        let process = ProcessRef {
            pid: 7,
            name: Reading::Now("a\u{1b}[2J".to_owned()),
            user: Reading::Absent(Absence::Hidden),
            started_ms: Reading::Now(0),
        };
        let event = Event { at_ms: 0, gpu: None, what: EventKind::ProcessStarted(process) };
        assert_eq!(of_event(&event).text, "a [2J (7) started.");
    }
}
