//! Functions for text of limited width.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{
    Layout, line,
    screen::{Glyphs, is_utf8_locale},
};

/// A layout without limits, used if the caller cuts the text itself.
pub(crate) const UNLIMITED_LAYOUT: Layout = Layout {
    width: None,
    height: None,
    glyphs: Glyphs::Braille,
};

/// Makes untrusted text safe to print by replacing characters that control a terminal or hide other
/// text.
pub(crate) fn make_printable(text: &str) -> String {
    line::make_printable(text, UNLIMITED_LAYOUT)
}

/// Cuts text to `columns` columns. Text that was cut ends with `…`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    line::cut(text, columns, UNLIMITED_LAYOUT)
}

/// Returns as many pieces of a line as fit into `columns` columns. The last piece may be cut.
pub(crate) fn fit_pieces(pieces: &[&str], columns: usize) -> Vec<String> {
    line::fit_pieces(pieces, columns, UNLIMITED_LAYOUT)
}

/// Fits text into `columns` columns, left-aligned.
pub(crate) fn align_left(text: &str, columns: usize) -> String {
    line::pad_end(&cut(text, columns), columns)
}

/// Fits text into `columns` columns, right-aligned.
pub(crate) fn align_right(text: &str, columns: usize) -> String {
    line::pad_start(&cut(text, columns), columns)
}

/// Returns the ASCII replacement for one of gpumon's symbols, or `?` for any other character.
pub(crate) fn to_ascii(symbol: &str) -> &'static str {
    match symbol {
        "…" | "±" => "~",
        "─" | "━" | "·" | "–" => "-",
        "│" => "|",
        "┌" | "┐" | "└" | "┘" | "├" | "┤" | "╭" | "╮" | "╰" | "╯" => "+",
        "▲" | "↑" => "^",
        "▼" | "↓" => "v",
        "←" | "◂" => "<",
        "→" | "▸" | "≥" => ">",
        "●" => "*",
        _ => "?",
    }
}

/// Replaces those of gpumon's own symbols that the locale does not support.
pub(crate) fn replace_unsupported_symbols(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_utf8_locale() {
        return text.into();
    }
    let mut buffer = [0; 4];
    let shown = text
        .chars()
        .map(|letter| match to_ascii(letter.encode_utf8(&mut buffer)) {
            _ if letter.is_ascii() => letter.to_string(),
            "?" => letter.to_string(),
            ascii => ascii.to_owned(),
        });
    shown.collect::<String>().into()
}

/// Wraps text into lines of at most `columns` columns. Words longer than a line are broken.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let taken = lines.last().map_or(0, |line| line.width());
        if taken > 0 && taken + 1 + word.width() > columns {
            lines.push(String::new());
        } else if taken > 0 {
            push_to_last_line(&mut lines, ' ');
        }
        for character in word.chars() {
            let width = lines.last().map_or(0, |line| line.width());
            if width + character.width().unwrap_or(0) > columns {
                lines.push(String::new());
            }
            push_to_last_line(&mut lines, character);
        }
    }
    lines
}

fn push_to_last_line(lines: &mut [String], character: char) {
    if let Some(line) = lines.last_mut() {
        line.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_text_has_requested_width_and_ellipsis() {
        assert_eq!(cut("memory", 6), "memory");
        assert_eq!(cut("memory", 4), "mem…");
        assert_eq!(cut("memory", 0), "");
        for columns in 0..12 {
            for text in ["", "abc", "日本語テキスト", "a b c d e f g"] {
                assert_eq!(
                    align_left(text, columns).width(),
                    columns,
                    "{text:?} in {columns}"
                );
                assert_eq!(
                    align_right(text, columns).width(),
                    columns,
                    "{text:?} in {columns}"
                );
            }
        }
    }

    #[test]
    fn lines_are_broken_between_words_if_possible() {
        assert_eq!(wrap("the quick fox", 9), ["the quick", "fox"]);
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
