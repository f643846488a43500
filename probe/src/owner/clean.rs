//! Texts that strangers choose, made short and printable before they go anywhere.
//!
//! A name with an escape sequence would be obeyed by a terminal, one with a line break would forge
//! a line of `/metrics`, and one of megabytes would make a sample larger than clients accept.

use crate::untrusted::is_invisible;

/// Bytes of a name: a program's, a user's, a kernel's, a unit's.
const LONGEST_NAME: usize = 128;

/// Bytes of an id: a kernel's, a job's.
const LONGEST_ID: usize = 128;

/// Bytes of a command line or a path; this much tells what it is, and travels with every sample.
const LONGEST_LINE: usize = 1024;

/// A name.
pub fn name(text: &str) -> String {
    clean(text, LONGEST_NAME)
}

pub(super) fn id(text: &str) -> String {
    clean(text, LONGEST_ID)
}

/// A line of text.
pub fn line(text: &str) -> String {
    clean(text, LONGEST_LINE)
}

/// What is cut ends in `…`.
fn clean(text: &str, longest: usize) -> String {
    let kept = &text[..text.floor_char_boundary(longest)];
    let mut clean: String = kept.chars().map(printable).collect();
    // What replaces a character can be longer than it.
    clean.truncate(clean.floor_char_boundary(longest));
    if kept.len() < text.len() || clean.chars().count() < kept.chars().count() {
        clean.push('…');
    }
    clean
}

fn printable(character: char) -> char {
    match character {
        '\n' | '\r' | '\t' => ' ',
        character if character.is_control() || is_invisible(character) => {
            char::REPLACEMENT_CHARACTER
        }
        character => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_length_is_cut_between_two_characters() {
        assert_eq!(line("python train.py"), "python train.py");
        let cut = line(&"ä".repeat(LONGEST_LINE));
        assert_eq!(cut.chars().count(), LONGEST_LINE / 2 + 1);
        assert!(cut.ends_with("ä…"));
        assert_eq!(
            name(&"x".repeat(131_072)).len(),
            LONGEST_NAME + '…'.len_utf8()
        );
    }

    #[test]
    fn nothing_is_left_that_a_terminal_obeys_or_a_file_takes_for_a_line() {
        assert_eq!(
            name("a\u{1b}[31mb\u{7}\u{9b}c"),
            "a\u{fffd}[31mb\u{fffd}\u{fffd}c"
        );
        assert_eq!(
            name("a\nb\tc\u{2028}\u{202e}d\u{2066}"),
            "a b c\u{fffd}\u{fffd}d\u{fffd}"
        );
        let long = name(&"\u{1}".repeat(LONGEST_NAME));
        assert!(
            long.len() <= LONGEST_NAME + '…'.len_utf8() && long.ends_with('…'),
            "{long}"
        );
    }
}
