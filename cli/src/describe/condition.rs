//! Short phrases for conditions. The text of a condition itself is longer, for views with room for
//! sentences.

use gpumon_probe::{
    model::{Condition, ConditionKind, GpuSample, REASONS, ThrottleCause, ThrottleReason},
    vendor::describe_error,
};

use super::phrase::{Level, Phrase};

/// Returns the phrases of a condition: one per throttle reason for reduced clocks, otherwise a
/// single phrase.
pub(super) fn list_condition_phrases(condition: &Condition, gpu: &GpuSample) -> Vec<Phrase> {
    let level = Level::from(condition.severity);
    vec![match &condition.kind {
        ConditionKind::Throttled { reasons, .. } => return list_reason_phrases(reasons),
        ConditionKind::Xid { code, count, .. } => make_xid_phrase(level, *code, *count),
        ConditionKind::MemoryNearlyFull {
            free_bytes,
            total_bytes,
        } => {
            // The free memory in the sample may be newer than in the condition.
            let free_bytes = *gpu.memory.free_bytes.value().unwrap_or(free_bytes);
            make_nearly_full_phrase(level, free_bytes, *total_bytes)
        }
        kind => Phrase::new(level, kind.short_text(), kind.long_text()),
    }]
}

pub(super) fn make_nearly_full_phrase(level: Level, free_bytes: u64, total_bytes: u64) -> Phrase {
    let kind = ConditionKind::MemoryNearlyFull {
        free_bytes,
        total_bytes,
    };
    Phrase::new(level, kind.short_text(), kind.long_text())
}

/// Returns a phrase for each throttle reason with a severity. Reasons that other reasons explain
/// are left out.
pub(super) fn list_reason_phrases(reasons: &[ThrottleReason]) -> Vec<Phrase> {
    let own = reasons
        .iter()
        .filter(|reason| !reason.is_explained_by(reasons));
    own.filter_map(|reason| {
        let info = reason.info();
        let level = Level::from(info.severity?);
        Some(Phrase::new(level, info.short, info.long))
    })
    .collect()
}

/// Returns a phrase if a setting deliberately reduces the clocks.
pub(super) fn find_setting_phrase(reasons: &[ThrottleReason]) -> Option<Phrase> {
    let setting = REASONS
        .iter()
        .find(|info| info.cause == ThrottleCause::Setting && reasons.contains(&info.reason))?;
    Some(Phrase::new(Level::Quiet, setting.short, setting.short))
}

fn make_xid_phrase(level: Level, code: u32, count: u32) -> Phrase {
    let times = match count {
        0 | 1 => String::new(),
        _ => format!(" ({count} times)"),
    };
    let info = describe_error(code);
    let title = info.title(code);
    // An error without a name also needs its description.
    let short = if info.name.is_empty() {
        format!("{title}: {}", info.short_text())
    } else {
        title.clone()
    };
    Phrase::new(
        level,
        short,
        format!("{title}: {}{times}", info.long_text()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_xid_has_short_phrase() {
        for code in 1..=999 {
            let phrase = make_xid_phrase(Level::Act, code, 3);
            assert!(
                phrase.short.chars().count() <= Phrase::MAX_SHORT_WIDTH,
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
    fn fell_off_bus_xid_includes_remedy() {
        let phrase = make_xid_phrase(Level::Act, 79, 1);
        assert_eq!(phrase.short, "Xid 79: fell off the bus");
        assert_eq!(
            phrase.long,
            "Xid 79: GPU has fallen off the bus – reboot the machine"
        );
    }

    #[test]
    fn xids_without_special_text_use_catalog() {
        assert_eq!(
            make_xid_phrase(Level::Act, 46, 1).short,
            "Xid 46: needs a reset"
        );
        assert_eq!(
            make_xid_phrase(Level::Act, 46, 1).long,
            "Xid 46: the GPU stopped working"
        );
        assert_eq!(
            make_xid_phrase(Level::Warn, 69, 1).short,
            "Xid 69: program failed"
        );
        assert_eq!(
            make_xid_phrase(Level::Warn, 999, 1).short,
            "Xid 999: see events"
        );
    }
}
