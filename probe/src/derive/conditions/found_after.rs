//! How long it takes until a condition is found that lasts already, as a collector does that has just been started.

use super::{
    ConditionSettings, baseline, driver_errors, hardly_used, held_by_nobody, memory_filling,
    memory_nearly_full, nvlink_down, slower_than_itself, suspected_hang, throttled,
};
use crate::model::ConditionKind;

/// Details are read every ten seconds, and nothing is known before the first of them.
const FIRST_DETAILS_MS: u64 = 15_000;

/// Milliseconds of a GPU that answers after which this condition (its tag in JSON, or any for `None`) is found at the
/// latest. A driver error is not found again, and counts until it would be over.
pub fn found_after_ms(tag: Option<&str>, settings: &ConditionSettings) -> u64 {
    let longest = ConditionKind::TAGS
        .iter()
        .filter(|known| tag.is_none_or(|tag| tag == **known));
    longest
        .filter_map(|tag| begins_after_ms(tag, settings))
        .max()
        .unwrap_or(0)
        .saturating_add(FIRST_DETAILS_MS)
}

fn begins_after_ms(tag: &str, settings: &ConditionSettings) -> Option<u64> {
    Some(match tag {
        "xid" => driver_errors::OTHER_ERROR_MS,
        "throttled" => throttled::BEGIN_AFTER_MS,
        "held_idle" => settings.held_idle_after_ms,
        "hardly_used" => hardly_used::WINDOW_MS,
        "suspected_hang" => suspected_hang::BEGIN_BESIDE_WORK_AFTER_MS,
        "held_by_nobody" => held_by_nobody::BEGIN_AFTER_MS,
        "slower_than_itself" => ((baseline::EVIDENCE_S * 1000.0) as u64)
            .saturating_add(slower_than_itself::BEGIN_ALONE_AFTER_MS),
        "memory_nearly_full" => memory_nearly_full::BEGIN_AFTER_MS,
        "memory_filling" => memory_filling::TREND_MS,
        "nv_link_down" => nvlink_down::BEGIN_AFTER_MS,
        "pcie_degraded" => super::PCIE_DEGRADED_AFTER_MS,
        // They stand in the details, or in a file that is read at the start.
        "below_baseline"
        | "ecc_uncorrected"
        | "row_remap"
        | "page_retirement_pending"
        | "recovery_needed" => 0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_has_its_time() {
        let settings = ConditionSettings {
            held_idle_after_ms: 7_000_000,
        };
        for tag in ConditionKind::TAGS {
            assert!(begins_after_ms(tag, &settings).is_some(), "{tag}");
        }
        assert_eq!(found_after_ms(Some("held_idle"), &settings), 7_015_000);
        assert_eq!(found_after_ms(None, &settings), 7_015_000);
        assert_eq!(found_after_ms(Some("row_remap"), &settings), 15_000);
    }
}
