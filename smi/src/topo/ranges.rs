//! Sets of CPUs and NUMA nodes as ranges, such as `0-3,8`.

/// Returns the indices of the bits that are set. The first word has the lowest bits.
pub(super) fn numbers(words: &[u64]) -> Vec<u32> {
    let bits = words.iter().zip(0u32..).flat_map(|(word, place)| {
        (0..u64::BITS)
            .filter(move |bit| word >> bit & 1 == 1)
            .map(move |bit| place * u64::BITS + bit)
    });
    bits.collect()
}

/// Formats the indices of the bits that are set as ranges.
pub(super) fn of_words(words: &[u64]) -> String {
    of_numbers(&numbers(words))
}

/// Formats numbers in ascending order as ranges.
pub(super) fn of_numbers(numbers: &[u32]) -> String {
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

/// Parses ranges in the kernel's format into numbers.
pub(super) fn parse(text: &str) -> Vec<u32> {
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
    fn ranges_are_what_they_were_made_of() {
        assert_eq!(of_words(&[0xFFFF_FFFF]), "0-31");
        assert_eq!(of_words(&[1 << 6 | 1 << 14, 1]), "6,14,64");
        assert_eq!(of_words(&[0]), "");
        assert_eq!(parse("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(of_numbers(&parse("0-55,112-167")), "0-55,112-167");
    }
}
