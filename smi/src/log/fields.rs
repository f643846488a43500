//! Fields that drivers have had under two numbers: those from 251 on were given new ones by driver
//! 580.82.
//!
//! The tables have the new numbers. An older driver has other fields under them, so that it must
//! not be asked by these.

use crate::release::Release;

/// The first driver with the new numbers.
pub(super) const RENUMBERED: Release = Release(580, 82);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_fields_share_an_old_number() {
        let mut numbers: Vec<_> = (200..300).filter_map(old).collect();
        numbers.sort_unstable();
        let all = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
    }
}
