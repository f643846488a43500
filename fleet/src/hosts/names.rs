//! Comma-separated lists of names in Slurm's format, such as `node[01-64,70]` or
//! `rack[1-2]node[1-8]`.

use thiserror::Error;

/// The reasons why a list of names is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NamesError {
    /// A bracket is unmatched or nested.
    #[error("'{0}' has an unmatched or nested bracket; write ranges as node[01-64,70]")]
    Bracket(String),
    /// The text in brackets is not a valid range.
    #[error(
        "'{range}' in '{name}' is not a range; write two numbers, the lower one first, such as \
         [01-64,70]"
    )]
    Range {
        /// The text in brackets.
        range: String,
        /// The name that contains the brackets.
        name: String,
    },
    /// The list has too many names.
    #[error("the list has more than {0} names")]
    TooMany(usize),
}

/// Expands the bracketed ranges in a list and returns the names in order, at most `most` of them.
/// Brackets that contain a colon belong to an IPv6 address and are kept.
///
/// # Errors
/// Returns a [`NamesError`] if the list is invalid.
pub fn expand_names(list: &str, most: usize) -> Result<Vec<String>, NamesError> {
    let mut names = Vec::new();
    for word in split_words(list)? {
        let mut expanded = vec![String::new()];
        let mut rest = word;
        while let Some((before, range, after)) = split_at_brackets(rest) {
            let numbers = if range.contains(':') {
                vec![format!("[{range}]")]
            } else {
                expand_ranges(range, word, most)?
            };
            if expanded.len() * numbers.len() > most {
                return Err(NamesError::TooMany(most));
            }
            let append = |start: &String| {
                numbers
                    .iter()
                    .map(|number| format!("{start}{before}{number}"))
                    .collect::<Vec<_>>()
            };
            expanded = expanded.iter().flat_map(append).collect();
            rest = after;
        }
        names.extend(expanded.into_iter().map(|start| start + rest));
        if names.len() > most {
            return Err(NamesError::TooMany(most));
        }
    }
    Ok(names)
}

/// Splits a list at the commas and spaces outside brackets.
fn split_words(list: &str) -> Result<Vec<&str>, NamesError> {
    let mut is_inside = false;
    for character in list.chars() {
        match character {
            '[' if is_inside => return Err(NamesError::Bracket(list.to_owned())),
            ']' if !is_inside => return Err(NamesError::Bracket(list.to_owned())),
            '[' | ']' => is_inside = !is_inside,
            _ => {}
        }
    }
    if is_inside {
        return Err(NamesError::Bracket(list.to_owned()));
    }
    let separates = |character: char| {
        match character {
            '[' => is_inside = true,
            ']' => is_inside = false,
            _ => {}
        }
        !is_inside && (character == ',' || character.is_whitespace())
    };
    Ok(list
        .split(separates)
        .filter(|word| !word.is_empty())
        .collect())
}

/// Splits a word into the text before, inside, and after its first pair of brackets.
fn split_at_brackets(word: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = word.split_once('[')?;
    let (range, after) = rest.split_once(']')?;
    Some((before, range, after))
}

/// Returns the numbers in ranges such as `01-64,70`. Each number keeps the leading zeros of its
/// range's lower end.
fn expand_ranges(ranges: &str, name: &str, most: usize) -> Result<Vec<String>, NamesError> {
    let mut numbers = Vec::new();
    for range in ranges.split(',').map(str::trim) {
        let bad = || NamesError::Range {
            range: range.to_owned(),
            name: name.to_owned(),
        };
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number
                .then(|| text.parse::<u64>().ok())
                .flatten()
                .ok_or_else(bad)
        };
        let (first, last) = (number(low)?, number(high)?);
        if last < first {
            return Err(bad());
        }
        if last - first >= most as u64 || numbers.len() > most {
            return Err(NamesError::TooMany(most));
        }
        let width = low.len();
        numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand_list(list: &str) -> Vec<String> {
        expand_names(list, 100).unwrap()
    }

    #[test]
    fn ranges_expand_in_slurm_format() {
        assert_eq!(
            expand_list("node[08-11,70]"),
            ["node08", "node09", "node10", "node11", "node70"]
        );
        assert_eq!(
            expand_list("node[8-11]"),
            ["node8", "node9", "node10", "node11"]
        );
        assert_eq!(
            expand_list("node[098-101].example"),
            [98, 99, 100, 101].map(|it| format!("node{it:03}.example"))
        );
        assert_eq!(
            expand_list("r[1-2]n[01-02]"),
            ["r1n01", "r1n02", "r2n01", "r2n02"]
        );
        assert_eq!(expand_list("a, b\tc[1,3] ,"), ["a", "b", "c1", "c3"]);
        assert_eq!(
            expand_list("login,gpu[1-2],big"),
            ["login", "gpu1", "gpu2", "big"]
        );
        assert_eq!(expand_list("[1-3]"), ["1", "2", "3"]);
        assert_eq!(expand_list(" , ,"), Vec::<String>::new());
    }

    #[test]
    fn brackets_of_ipv6_address_are_kept() {
        assert_eq!(
            expand_list("root@[fe80::1]:22,[::1]"),
            ["root@[fe80::1]:22", "[::1]"]
        );
    }

    #[test]
    fn invalid_list_is_refused() {
        for list in ["node[1-2", "node1-2]", "node[1-[2]]", "]["] {
            assert!(
                matches!(expand_names(list, 9), Err(NamesError::Bracket(_))),
                "{list}"
            );
        }
        for list in [
            "n[]",
            "n[a]",
            "n[2-1]",
            "n[1-]",
            "n[-1]",
            "n[1,,2]",
            "n[+1-2]",
            "n[99999999999999999999]",
        ] {
            assert!(
                matches!(expand_names(list, 9), Err(NamesError::Range { .. })),
                "{list}"
            );
        }
    }

    #[test]
    fn huge_list_is_refused_before_expansion() {
        for list in [
            "n[1-9999999999]",
            "n[1-9]m[1-9]",
            "n[1-9],m",
            "n[1-9]m[1-9]o[1-9]p[1-9]q[1-9]r[1-9]s[1-9]",
        ] {
            assert_eq!(expand_names(list, 9), Err(NamesError::TooMany(9)), "{list}");
        }
        let many = format!("n[{}]", vec!["1-9"; 100_000].join(","));
        assert_eq!(expand_names(&many, 9), Err(NamesError::TooMany(9)));
        assert_eq!(expand_names("n[1-9]", 9).unwrap().len(), 9);
    }
}
