//! Fields whose IDs depend on the driver: driver 580.82 changed the IDs from 251 on.
//!
//! The tables use the new IDs. In an older driver, these IDs belong to other fields, so they must
//! be converted to the old IDs.

use crate::release::Release;

/// The first release with the new field IDs.
pub(super) const RENUMBERED: Release = Release(580, 82);

/// Converts a field's ID to the old ID, or returns `None` if the field did not exist.
pub(super) fn find_old_number(id: u32) -> Option<u32> {
    match id {
        ..251 => Some(id),
        // These are the fields of power smoothing.
        251..=268 => Some(id + 5),
        // These fields count the time for which each reason has reduced the clocks.
        269..=271 => Some(id - 18),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_field_numbers_are_unique() {
        let mut numbers: Vec<_> = (200..300).filter_map(find_old_number).collect();
        numbers.sort_unstable();
        let all = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
    }
}
