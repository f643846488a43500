//! Cleaning of untrusted text: shortening it and making it printable.
//!
//! An escape sequence in a name would control the terminal, a line break would forge a line of
//! `/metrics`, and a name of megabytes would make a sample larger than clients accept.

use crate::untrusted::is_invisible;

/// The maximum length of a name, in bytes: of a program, a user, a kernel or a unit.
const LONGEST_NAME: usize = 128;

/// The maximum length of an ID, in bytes: of a kernel or a job.
const LONGEST_ID: usize = 128;

/// The maximum length of a command line or a path, in bytes. Every sample contains these texts.
const LONGEST_LINE: usize = 1024;

/// Cleans a name.
pub fn name(text: &str) -> String {
    clean(text, LONGEST_NAME)
}

pub(super) fn id(text: &str) -> String {
    clean(text, LONGEST_ID)
}

/// Cleans a line of text.
pub fn line(text: &str) -> String {
    clean(text, LONGEST_LINE)
}

/// Cleans a text, and marks a cut by `…`.
fn clean(text: &str, longest: usize) -> String {
    let kept = &text[..text.floor_char_boundary(longest)];
    let mut clean: String = kept.chars().map(printable).collect();
    // The text is cut again, because the replacement of a character can be longer than the
    // character.
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
