//! Text of a limited width.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Layout, glyphs::Glyphs, line, screen::speaks_utf8};

/// A layout without limits, for text that the caller cuts itself.
pub(crate) const ANY_ROOM: Layout = Layout {
    width: None,
    height: None,
    glyphs: Glyphs::Braille,
};

/// Makes untrusted text safe to print: replaces characters that control a terminal or hide other
/// text.
pub(crate) fn printable(text: &str) -> String {
    line::printable(text, ANY_ROOM)
}

/// Cuts text to this many columns. A cut text ends with `…`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    line::cut(text, columns, ANY_ROOM)
}

/// Returns as much of the pieces of a line as fits.
pub(crate) fn fit_pieces(pieces: &[&str], columns: usize) -> Vec<String> {
    line::fit_pieces(pieces, columns, ANY_ROOM)
}

/// Fits text into this many columns, left-aligned.
pub(crate) fn align_left(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let missing = columns.saturating_sub(text.width());
    text + &" ".repeat(missing)
}

/// Fits text into this many columns, right-aligned.
pub(crate) fn align_right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    " ".repeat(columns.saturating_sub(text.width())) + &text
}

/// Returns the ASCII replacement for one of gpumon's symbols on terminals without UTF-8, and `?`
/// for any other character.
pub(crate) fn in_ascii(symbol: &str) -> &'static str {
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

/// Replaces gpumon's own symbols that the locale cannot show.
pub(crate) fn for_locale(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || speaks_utf8() {
        return text.into();
    }
    let mut buffer = [0; 4];
    let shown = text
        .chars()
        .map(|letter| match in_ascii(letter.encode_utf8(&mut buffer)) {
            _ if letter.is_ascii() => letter.to_string(),
            "?" => letter.to_string(),
            ascii => ascii.to_owned(),
        });
    shown.collect::<String>().into()
}

/// Wraps text into lines of this many columns. Longer words are broken.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let taken = lines.last().map_or(0, |line| line.width());
        if taken > 0 && taken + 1 + word.width() > columns {
            lines.push(String::new());
        } else if taken > 0 {
            push(&mut lines, ' ');
        }
        for character in word.chars() {
            let width = lines.last().map_or(0, |line| line.width());
            if width + character.width().unwrap_or(0) > columns {
                lines.push(String::new());
            }
            push(&mut lines, character);
        }
    }
    lines
}

fn push(lines: &mut [String], character: char) {
    if let Some(line) = lines.last_mut() {
        line.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_text_has_its_width_and_sign() {
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
