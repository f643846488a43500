//! Phrases for conditions. The text of a condition itself is longer, for views with room for
//! sentences.

use gpumon_probe::{
    model::{Condition, ConditionKind, GpuSample, REASONS, ThrottleCause, ThrottleReason},
    vendor::describe_error,
};

use super::phrase::{Level, Phrase};

/// Returns the phrase of a condition, or for reduced clocks, one phrase per reason.
pub(super) fn phrases(condition: &Condition, gpu: &GpuSample) -> Vec<Phrase> {
    let level = Level::from(condition.severity);
    vec![match &condition.kind {
        ConditionKind::Throttled { reasons, .. } => return reason_phrases(reasons),
        ConditionKind::Xid { code, count, .. } => xid_phrase(level, *code, *count),
        ConditionKind::MemoryNearlyFull {
            free_bytes,
            total_bytes,
        } => {
            // The sample's reading may be newer than that of the condition.
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

/// Returns a phrase for each reason that is a concern.
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

/// Returns a phrase for a setting that reduces the clocks on purpose.
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
    // If the error has a name, the name is short enough.
    let short = if info.name.is_empty() {
        format!("{title}: {}", info.short())
    } else {
        title.clone()
    };
    Phrase::new(level, short, format!("{title}: {}{times}", info.long()))
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
