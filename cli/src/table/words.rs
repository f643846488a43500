//! What is the matter with a GPU, in words.

use gpumon_probe::model::{Absence, Condition, ConditionKind, GpuSample, Health, Reading, Severity, ThrottleReason};

use super::{
    Layout, View,
    forecast::full_in_ms,
    line::printable,
    style::{ALARM, DIM, NOTICE, PLAIN},
    units::{clock, gib_in_column, long, rough},
};

/// Something to be said about a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) level: Level,
}

/// How much it matters, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Somebody should act.
    Act,
    /// Worth a look.
    Warn,
    /// Worth knowing.
    Note,
    /// As it should be.
    Quiet,
}

impl Level {
    pub(super) fn style(self) -> anstyle::Style {
        match self {
            Self::Act => ALARM,
            Self::Warn => NOTICE,
            Self::Note => PLAIN,
            Self::Quiet => DIM,
        }
    }
}

/// The same bounds as those of the conditions that last: less than 3 % and less than 2 GiB are nearly nothing.
const NEARLY_FULL_SHARE: f64 = 0.03;
const NEARLY_FULL_BYTES: u64 = 2 << 30;
/// Nobody can do much in less time.
const URGENT_MS: u64 = 60_000;

/// All that is to be said of a GPU, what matters most first.
pub(super) fn words(gpu: &GpuSample, view: &View<'_>, layout: Layout) -> Vec<Words> {
    let now_ms = view.sample.at_ms;
    let mut words: Vec<Words> = health(gpu, now_ms).into_iter().collect();
    words.extend(gpu.conditions.iter().map(|condition| of_condition(condition, now_ms)));
    if gpu.health == Health::Ok {
        // A single look knows no conditions, which take time to begin; what it sees is told at once.
        if view.is_single_look {
            words.extend(throttled(gpu.throttle_reasons.value().map_or(&[], Vec::as_slice)));
            words.extend(nearly_full(gpu));
        }
        words.extend(full_soon(gpu, view));
        words.extend(rests(gpu.throttle_reasons.value().map_or(&[], Vec::as_slice)));
    }
    words.sort_by_key(|words| words.level);
    for said in &mut words {
        said.text = printable(&said.text, layout);
    }
    words
}

fn say(level: Level, text: impl Into<String>) -> Words {
    Words { text: text.into(), level }
}

fn health(gpu: &GpuSample, now_ms: u64) -> Option<Words> {
    // What was found out just now has no history worth telling.
    let since = |since_ms: u64| {
        if now_ms.saturating_sub(since_ms) < 5_000 {
            String::new()
        } else {
            format!(" since {}", clock(since_ms, now_ms))
        }
    };
    Some(match &gpu.health {
        Health::Ok if gpu.power.draw_watts == Reading::Absent(Absence::NoAnswer) => {
            say(Level::Warn, "the driver has not answered yet")
        }
        Health::Ok => return None,
        Health::Asleep { since_ms } => say(Level::Quiet, format!("asleep{} to save power", since(*since_ms))),
        Health::Hung { since_ms } => {
            say(Level::Act, format!("hung{}: the driver does not answer, values are the last known", since(*since_ms)))
        }
        Health::Lost { since_ms } => {
            say(Level::Act, format!("GPU lost{}: reset it or reboot the machine", since(*since_ms)))
        }
        Health::Failed { since_ms, reason } => {
            say(Level::Act, format!("cannot be opened{}: {reason}; see gpumon doctor", since(*since_ms)))
        }
    })
}

fn of_condition(condition: &Condition, now_ms: u64) -> Words {
    let level = match condition.severity {
        Severity::Notice => Level::Note,
        Severity::Warning => Level::Warn,
        Severity::Critical => Level::Act,
    };
    let sentence = || condition.text.trim_end_matches('.').to_owned();
    match &condition.kind {
        ConditionKind::Throttled { reasons } => {
            let causes: Vec<String> = throttled(reasons).into_iter().map(|words| words.text).collect();
            say(level, causes.join(", "))
        }
        ConditionKind::HeldIdle { idle_ms, .. } => say(level, format!("held but idle {}", long(*idle_ms))),
        ConditionKind::HardlyUsed { sm_percent, .. } => {
            say(level, format!("busy, but only {sm_percent:.0} % of its SMs"))
        }
        ConditionKind::MemoryNearlyFull { free_bytes, .. } => say(level, left(*free_bytes)),
        ConditionKind::Xid { count, last_ms, .. } if *count > 1 => {
            say(level, format!("{} ({count} times, last at {})", sentence(), clock(*last_ms, now_ms)))
        }
        ConditionKind::Xid { last_ms, .. } => say(level, format!("{} ({})", sentence(), clock(*last_ms, now_ms))),
        ConditionKind::PcieDegraded { width, max_width } => {
            say(level, format!("PCIe x{width} instead of x{max_width}"))
        }
        _ => say(level, sentence()),
    }
}

/// What holds the clocks down.
fn throttled(reasons: &[ThrottleReason]) -> Vec<Words> {
    let says_more = [ThrottleReason::HwThermalSlowdown, ThrottleReason::HwPowerBrakeSlowdown];
    let is_told_better = reasons.iter().any(|reason| says_more.contains(reason));
    let of_reason = |reason: &ThrottleReason| {
        Some(match reason {
            ThrottleReason::HwThermalSlowdown => say(Level::Act, "thermal slowdown by the hardware: check the cooling"),
            ThrottleReason::HwPowerBrakeSlowdown => say(Level::Warn, "power brake: the supply asks for less"),
            ThrottleReason::HwSlowdown if is_told_better => return None,
            ThrottleReason::HwSlowdown => say(Level::Warn, "slowed down by the hardware"),
            ThrottleReason::SwThermalSlowdown => say(Level::Warn, "thermal slowdown"),
            ThrottleReason::SwPowerCap => say(Level::Note, "power capped"),
            ThrottleReason::SyncBoost => say(Level::Note, "held back by its boost group"),
            ThrottleReason::GpuIdle
            | ThrottleReason::ApplicationsClocksSetting
            | ThrottleReason::DisplayClockSetting => return None,
        })
    };
    reasons.iter().filter_map(of_reason).collect()
}

/// What holds the clocks where they are and is no concern.
fn rests(reasons: &[ThrottleReason]) -> Option<Words> {
    let known = [
        (ThrottleReason::ApplicationsClocksSetting, "clocks set by the user"),
        (ThrottleReason::DisplayClockSetting, "clocks held for a display"),
    ];
    let (_, text) = known.into_iter().find(|(reason, _)| reasons.contains(reason))?;
    Some(say(Level::Quiet, text))
}

fn nearly_full(gpu: &GpuSample) -> Option<Words> {
    let (free, total) = (*gpu.memory.free_bytes.value()?, *gpu.memory.total_bytes.value()?);
    let is_nearly_full = free < NEARLY_FULL_BYTES && (free as f64) < NEARLY_FULL_SHARE * total as f64;
    is_nearly_full.then(|| say(Level::Warn, left(free)))
}

fn left(free_bytes: u64) -> String {
    format!("memory nearly full: {} GiB left", gib_in_column(free_bytes))
}

fn full_soon(gpu: &GpuSample, view: &View<'_>) -> Option<Words> {
    let in_ms = full_in_ms(gpu, &view.past.of_gpu(gpu)?.memory)?;
    let level = if in_ms < URGENT_MS { Level::Act } else { Level::Warn };
    Some(say(level, format!("memory full in about {}", rough(in_ms))))
}
