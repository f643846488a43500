//! Functions that shorten untrusted text and make it printable.
//!
//! An escape sequence in a name would control the terminal, a line break would forge a line of
//! `/metrics`, and a name of several megabytes would make a sample larger than clients accept.

use crate::untrusted::is_invisible;

/// The maximum length in bytes of a program, user, kernel or unit name.
const MAX_NAME_BYTES: usize = 128;

/// The maximum length in bytes of a kernel or job ID.
const MAX_ID_BYTES: usize = 128;

/// The maximum length in bytes of a command line or path. These texts are part of every sample.
const MAX_LINE_BYTES: usize = 1024;

pub fn clean_name(text: &str) -> String {
    clean_text(text, MAX_NAME_BYTES)
}

pub(super) fn clean_id(text: &str) -> String {
    clean_text(text, MAX_ID_BYTES)
}

pub fn clean_line(text: &str) -> String {
    clean_text(text, MAX_LINE_BYTES)
}

/// Shortens `text` and makes it printable. Shortened text ends with `…`.
fn clean_text(text: &str, longest: usize) -> String {
    let kept = &text[..text.floor_char_boundary(longest)];
    let mut clean: String = kept.chars().map(make_printable).collect();
    // The text is truncated again, because the replacement for a character can be longer than the
    // character.
    clean.truncate(clean.floor_char_boundary(longest));
    if kept.len() < text.len() || clean.chars().count() < kept.chars().count() {
        clean.push('…');
    }
    clean
}

fn make_printable(character: char) -> char {
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
    fn text_is_cut_between_characters() {
        assert_eq!(clean_line("python train.py"), "python train.py");
        let cut = clean_line(&"ä".repeat(MAX_LINE_BYTES));
        assert_eq!(cut.chars().count(), MAX_LINE_BYTES / 2 + 1);
        assert!(cut.ends_with("ä…"));
        assert_eq!(
            clean_name(&"x".repeat(131_072)).len(),
            MAX_NAME_BYTES + '…'.len_utf8()
        );
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(
            clean_name("a\u{1b}[31mb\u{7}\u{9b}c"),
            "a\u{fffd}[31mb\u{fffd}\u{fffd}c"
        );
        assert_eq!(
            clean_name("a\nb\tc\u{2028}\u{202e}d\u{2066}"),
            "a b c\u{fffd}\u{fffd}d\u{fffd}"
        );
        let long = clean_name(&"\u{1}".repeat(MAX_NAME_BYTES));
        assert!(
            long.len() <= MAX_NAME_BYTES + '…'.len_utf8() && long.ends_with('…'),
            "{long}"
        );
    }
}
