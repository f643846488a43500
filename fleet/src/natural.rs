//! Natural sort order for names.

use std::cmp::Ordering;

/// Compares two names in natural order, in which numbers are compared by value: `node2` comes
/// before `node10`. Names that differ only in case are sorted next to each other.
pub fn compare_names(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (mine, theirs) = (split_part(left), split_part(right));
        let letters = |text: &str| text.to_lowercase();
        let order = letters(mine.text)
            .cmp(&letters(theirs.text))
            .then(mine.digits.len().cmp(&theirs.digits.len()))
            .then(mine.digits.cmp(theirs.digits));
        if order != Ordering::Equal {
            return order;
        }
        if mine.rest.is_empty() || theirs.rest.is_empty() {
            return mine.rest.len().cmp(&theirs.rest.len()).then(a.cmp(b));
        }
        (left, right) = (mine.rest, theirs.rest);
    }
}

/// The first part of a name: its non-digits, and the digits that follow without leading zeros.
struct Part<'a> {
    text: &'a str,
    digits: &'a str,
    rest: &'a str,
}

fn split_part(text: &str) -> Part<'_> {
    let number = text
        .find(|it: char| it.is_ascii_digit())
        .unwrap_or(text.len());
    let (before, behind) = text.split_at(number);
    let end = behind
        .find(|it: char| !it.is_ascii_digit())
        .unwrap_or(behind.len());
    let (digits, rest) = behind.split_at(end);
    Part {
        text: before,
        digits: digits.trim_start_matches('0'),
        rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_by_numbers() {
        let mut names = [
            "n10", "n2", "n1-b", "N3", "n1", "n02", "m3", "n1-a10", "n1-a9",
        ];
        names.sort_by(|a, b| compare_names(a, b));
        assert_eq!(
            names,
            [
                "m3", "n1", "n1-a9", "n1-a10", "n1-b", "n02", "n2", "N3", "n10"
            ]
        );
    }
}
