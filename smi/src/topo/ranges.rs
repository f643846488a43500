//! Formatting and parsing of sets of CPUs or NUMA nodes as ranges, such as `0-3,8`.

/// Returns the indices of all bits that are set in `words`. The first word contains the lowest
/// bits.
pub(super) fn list_set_bits(words: &[u64]) -> Vec<u32> {
    let bits = words.iter().zip(0u32..).flat_map(|(word, place)| {
        (0..u64::BITS)
            .filter(move |bit| word >> bit & 1 == 1)
            .map(move |bit| place * u64::BITS + bit)
    });
    bits.collect()
}

/// Formats the indices of all bits that are set in `words` as ranges.
pub(super) fn format_words(words: &[u64]) -> String {
    format_numbers(&list_set_bits(words))
}

/// Formats numbers, which must be in ascending order, as ranges.
pub(super) fn format_numbers(numbers: &[u32]) -> String {
    numbers
        .chunk_by(|before, after| before + 1 == *after)
        .map(|range| match range {
            [only] => only.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// Parses ranges in the kernel's format and returns the numbers that they contain.
pub(super) fn parse_ranges(text: &str) -> Vec<u32> {
    text.trim()
        .split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse().ok()?..=last.parse().ok()?)
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_survive_a_round_trip() {
        assert_eq!(format_words(&[0xFFFF_FFFF]), "0-31");
        assert_eq!(format_words(&[1 << 6 | 1 << 14, 1]), "6,14,64");
        assert_eq!(format_words(&[0]), "");
        assert_eq!(parse_ranges("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(
            format_numbers(&parse_ranges("0-55,112-167")),
            "0-55,112-167"
        );
    }
}
