//! Fields that drivers have had under two numbers: those from 251 on were given new ones by driver 580.82.
//!
//! The tables have the new numbers. An older driver has other fields under them, so that it must not be asked by these.

use gpumon_probe::vendor::nvml::query::SystemQuery;

use crate::Context;

/// The first driver with the new numbers.
const RENUMBERED: (u32, u32) = (580, 82);

/// Whether the driver has the old numbers.
pub(super) fn are_old(context: &Context<'_>) -> bool {
    let version = context.system(SystemQuery::DriverVersion);
    version.is_ok_and(|version| version.text().and_then(parse).is_some_and(|version| version < RENUMBERED))
}

/// The old number of a field; `None` where there was none.
pub(super) fn old(id: u32) -> Option<u32> {
    match id {
        ..251 => Some(id),
        // Power smoothing.
        251..=268 => Some(id + 5),
        // How long reasons have held the clocks back.
        269..=271 => Some(id - 18),
        _ => None,
    }
}

/// `580.159.04` as (580, 159).
fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(parse("580.159.04"), Some((580, 159)));
        assert!(parse("580.65.06").unwrap() < RENUMBERED && parse("575.57").unwrap() < RENUMBERED);
        assert!(parse("580.159.04").unwrap() >= RENUMBERED && parse("610.43").unwrap() >= RENUMBERED);
        assert_eq!(parse("of its own"), None);
    }

    #[test]
    fn no_two_fields_share_an_old_number() {
        let mut numbers: Vec<_> = (200..300).filter_map(old).collect();
        numbers.sort_unstable();
        let all = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
    }
}
