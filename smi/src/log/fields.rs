//! Fields with different numbers in different drivers: driver 580.82 changed the numbers from 251
//! on.
//!
//! The tables use the new numbers. In an older driver the same numbers mean other fields, so the
//! old numbers must be used.

use crate::release::Release;

/// The first release with the new numbers.
pub(super) const RENUMBERED: Release = Release(580, 82);

/// Returns the old number of a field; `None` if the field did not exist.
pub(super) fn old(id: u32) -> Option<u32> {
    match id {
        ..251 => Some(id),
        // These are the fields of power smoothing.
        251..=268 => Some(id + 5),
        // These fields count the time for which a reason reduced the clocks.
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
