//! Phrases about a condition. Its own text is longer, for views with room for sentences.

use gpumon_probe::{
    model::{
        Absence, Condition, ConditionKind, GpuSample, Health, REASONS, Reading, Severity,
        ThrottleCause, ThrottleReason, with_advice,
    },
    units::duration,
    vendor::describe_error,
};

use crate::terminal::units::clock;

/// Returns one phrase, but for reduced clocks, which have one for each reason.
pub(super) fn phrases(condition: &Condition, gpu: &GpuSample) -> Vec<Phrase> {
    let level = Level::from(condition.severity);
    vec![match &condition.kind {
        ConditionKind::Throttled { reasons, .. } => return reason_phrases(reasons),
        ConditionKind::Xid { code, count, .. } => xid_phrase(level, *code, *count),
        ConditionKind::MemoryNearlyFull {
            free_bytes,
            total_bytes,
        } => {
            // The reading of this sample may be newer than the condition's.
            let free_bytes = *gpu.memory.free_bytes.value().unwrap_or(free_bytes);
            nearly_full_phrase(level, free_bytes, *total_bytes)
        }
        kind => Phrase::new(level, kind.short(), kind.long()),
    }]
}

pub(super) fn nearly_full_phrase(level: Level, free_bytes: u64, total_bytes: u64) -> Phrase {
    let kind = ConditionKind::MemoryNearlyFull {
        free_bytes,
        total_bytes,
    };
    Phrase::new(level, kind.short(), kind.long())
}

/// Returns a phrase for each reason that is of concern.
pub(super) fn reason_phrases(reasons: &[ThrottleReason]) -> Vec<Phrase> {
    let own = reasons
        .iter()
        .filter(|reason| !reason.is_explained(reasons));
    own.filter_map(|reason| {
        let info = reason.info();
        let level = Level::from(info.severity?);
        Some(Phrase::new(level, info.short, info.long))
    })
    .collect()
}

/// Returns a phrase for the setting that reduces the clocks as somebody wants.
pub(super) fn setting_phrase(reasons: &[ThrottleReason]) -> Option<Phrase> {
    let setting = REASONS
        .iter()
        .find(|info| info.cause == ThrottleCause::Setting && reasons.contains(&info.reason))?;
    Some(Phrase::new(Level::Quiet, setting.short, setting.short))
}

fn xid_phrase(level: Level, code: u32, count: u32) -> Phrase {
    let times = match count {
        0 | 1 => String::new(),
        _ => format!(" ({count} times)"),
    };
    let info = describe_error(code);
    let title = info.title(code);
    // A name is enough.
    let short = if info.name.is_empty() {
        format!("{title}: {}", info.short())
    } else {
        title.clone()
    };
    Phrase::new(level, short, format!("{title}: {}{times}", info.long()))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// At most [`Phrase::SHORT`] columns.
    pub(crate) short: String,
    /// With what to do about it, where that can be said.
    pub(crate) long: String,
    pub(crate) level: Level,
}

impl Phrase {
    /// The columns that views keep free for the first phrase of a GPU.
    pub(crate) const SHORT: usize = 24;

    pub(super) fn new(level: Level, short: impl Into<String>, long: impl Into<String>) -> Self {
        Self {
            short: short.into(),
            long: long.into(),
            level,
        }
    }
}

/// How much it matters, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Somebody should act.
    Act,
    /// Worth a look.
    Warn,
    /// Worth knowing.
    Note,
    /// As it should be.
    Quiet,
}

impl From<Severity> for Level {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Notice => Self::Note,
            Severity::Warning => Self::Warn,
            Severity::Critical => Self::Act,
        }
    }
}

/// What was found out less than this ago has no history worth telling, in milliseconds.
const JUST_NOW_MS: u64 = 5_000;

pub(super) fn phrase(gpu: &GpuSample, now_ms: u64) -> Option<Phrase> {
    let history = |since_ms: u64, text: &dyn Fn() -> String| {
        if now_ms.saturating_sub(since_ms) < JUST_NOW_MS {
            String::new()
        } else {
            text()
        }
    };
    let lasting = |since_ms: u64| {
        history(since_ms, &|| {
            format!(" for {}", duration(now_ms - since_ms))
        })
    };
    let since =
        |since_ms: u64| history(since_ms, &|| format!(" since {}", clock(since_ms, now_ms)));
    Some(match &gpu.health {
        Health::Ok if gpu.power.draw_watts == Reading::Absent(Absence::NoAnswer) => Phrase::new(
            Level::Warn,
            "not read yet",
            "not read yet: waiting for the driver",
        ),
        Health::Ok => return None,
        Health::Asleep { since_ms } => Phrase::new(
            Level::Quiet,
            format!("asleep{}", lasting(*since_ms)),
            format!("asleep{} to save power", since(*since_ms)),
        ),
        Health::Hung { since_ms } => Phrase::new(
            Level::Act,
            Some(lasting(*since_ms))
                .filter(|lasting| !lasting.is_empty())
                .map_or_else(
                    || "not responding".to_owned(),
                    |lasting| format!("hung{lasting}"),
                ),
            format!(
                "not responding{} (driver hang){}",
                since(*since_ms),
                if gpu.uuid.is_some() {
                    ", showing the last values"
                } else {
                    ": see gpumon doctor"
                }
            ),
        ),
        Health::Lost { since_ms } => Phrase::new(
            Level::Act,
            format!("GPU lost{}", lasting(*since_ms)),
            format!("GPU lost{}: see gpumon doctor", since(*since_ms)),
        ),
        Health::Failed {
            since_ms,
            reason,
            meaning,
            advice,
        } => {
            let explained = with_advice(meaning, advice);
            let why = if explained.is_empty() {
                format!("{reason}; see gpumon doctor")
            } else {
                explained
            };
            Phrase::new(
                Level::Act,
                "cannot be read",
                format!("cannot be read{}: {why}", since(*since_ms)),
            )
        }
    })
}

/// Since when a GPU gives no readings, and why, as a list of states with their times has it.
pub(crate) fn without_readings(gpu: &GpuSample) -> Option<(u64, Phrase)> {
    let (Health::Asleep { since_ms }
    | Health::Hung { since_ms }
    | Health::Lost { since_ms }
    | Health::Failed { since_ms, .. }) = gpu.health
    else {
        return None;
    };
    Some((since_ms, phrase(gpu, since_ms)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_short_words() {
        for code in 1..=999 {
            let phrase = xid_phrase(Level::Act, code, 3);
            assert!(
                phrase.short.chars().count() <= Phrase::SHORT,
                "{}",
                phrase.short
            );
            assert!(
                phrase.long.starts_with(&format!("Xid {code}: "))
                    && phrase.long.ends_with(" (3 times)")
            );
        }
    }

    #[test]
    fn a_well_known_code_says_what_to_do() {
        let phrase = xid_phrase(Level::Act, 79, 1);
        assert_eq!(phrase.short, "Xid 79: fell off the bus");
        assert_eq!(
            phrase.long,
            "Xid 79: GPU has fallen off the bus – reboot the machine"
        );
    }

    #[test]
    fn the_others_say_what_the_catalogue_knows() {
        assert_eq!(xid_phrase(Level::Act, 46, 1).short, "Xid 46: needs a reset");
        assert_eq!(
            xid_phrase(Level::Act, 46, 1).long,
            "Xid 46: the GPU stopped working"
        );
        assert_eq!(
            xid_phrase(Level::Warn, 69, 1).short,
            "Xid 69: program failed"
        );
        assert_eq!(xid_phrase(Level::Warn, 999, 1).short, "Xid 999: see events");
    }
}
