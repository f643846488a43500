//! Text in so many columns, and numbers as people read them.

use gpumon_probe::{
    local_time::time_zone,
    model::{Process, Reading},
    units::decimal_size,
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(super) use crate::table::units::ABSENT;
use crate::{
    moment::zoned,
    table::{Layout, line, process_label::ProcessLabel},
};

/// Whoever draws cuts to its own room.
const ANY_ROOM: Layout = Layout {
    width: None,
    height: None,
    unicode: true,
};

/// Text from a stranger, without what drives a terminal or hides other text.
pub(super) fn printable(text: &str) -> String {
    line::printable(text, ANY_ROOM)
}

/// Returns a short description of a process: its program or notebook, and what it runs in.
pub(super) fn what(process: &Process, notebook: Option<&str>) -> Option<String> {
    ProcessLabel::of(process, notebook, ANY_ROOM).map(|what| what.whole())
}

pub(super) fn fitted_what(
    process: &Process,
    notebook: Option<&str>,
    columns: usize,
) -> Option<String> {
    ProcessLabel::of(process, notebook, ANY_ROOM).map(|what| what.fitted(columns, ANY_ROOM))
}

/// Cuts to so many columns, and says that something is missing.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    line::cut(text, columns, ANY_ROOM)
}

/// Pieces of one line, as much of them as has room.
pub(super) fn fitted(pieces: &[&str], columns: usize) -> Vec<String> {
    line::fitted(pieces, columns, ANY_ROOM)
}

pub(super) fn left(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let missing = columns.saturating_sub(text.width());
    text + &" ".repeat(missing)
}

/// The same, aligned on the right.
pub(super) fn right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    " ".repeat(columns.saturating_sub(text.width())) + &text
}

/// Breaks text between words into lines of so many columns; a word that is longer is broken anywhere.
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

/// `1.24 GB/s`, in decimal units as links are sold.
pub(super) fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", decimal_size(bytes_per_second))
}

/// A reading in words: its value, or why there is none.
pub(super) fn format_reading<T>(reading: &Reading<T>, format: impl FnOnce(&T) -> String) -> String {
    match (reading.value(), reading.absence()) {
        (Some(value), _) => format(value),
        (None, Some(reason)) => reason.to_string(),
        (None, None) => ABSENT.to_owned(),
    }
}

/// A reading's value, or a dash.
pub(super) fn shown<T>(reading: &Reading<T>, format: impl FnOnce(&T) -> String) -> String {
    reading.value().map_or_else(|| ABSENT.to_owned(), format)
}

/// `64 %`, or a dash.
pub(super) fn percent(reading: &Reading<f64>) -> String {
    shown(reading, |percent| format!("{percent:.0} %"))
}

/// `10:42:07` by this machine's clock and zone.
pub(super) fn clock(at_ms: u64) -> String {
    local(at_ms, "%H:%M:%S")
}

/// `10:42`.
pub(super) fn hour_and_minute(at_ms: u64) -> String {
    local(at_ms, "%H:%M")
}

/// `Mar 01 10:42`.
pub(super) fn day_and_minute(at_ms: u64) -> String {
    local(at_ms, "%b %d %H:%M")
}

/// How far back charts reach: `2 min`, `6 h`, `30 d`.
pub(super) fn range(span_ms: u64) -> String {
    match span_ms / 1000 {
        seconds if seconds % (24 * 3600) == 0 => format!("{} d", seconds / (24 * 3600)),
        seconds if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds => format!("{} min", seconds / 60),
    }
}

/// `2026-03-01 10:42:07`.
pub(super) fn date_and_clock(at_ms: u64) -> String {
    local(at_ms, "%Y-%m-%d %H:%M:%S")
}

fn local(at_ms: u64, format: &str) -> String {
    zoned(at_ms, &time_zone()).map_or_else(
        || ABSENT.to_owned(),
        |moment| moment.strftime(format).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so_and_fills_its_columns() {
        assert_eq!(cut("memory", 6), "memory");
        assert_eq!(cut("memory", 4), "mem…");
        assert_eq!(cut("memory", 0), "");
        for columns in 0..12 {
            for text in ["", "abc", "日本語テキスト", "a b c d e f g"] {
                assert_eq!(
                    left(text, columns).width(),
                    columns,
                    "{text:?} in {columns}"
                );
                assert_eq!(
                    right(text, columns).width(),
                    columns,
                    "{text:?} in {columns}"
                );
            }
        }
    }

    #[test]
    fn lines_are_broken_between_words_where_they_can_be() {
        assert_eq!(wrap("the quick fox", 9), ["the quick", "fox"]);
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn rates_keep_three_digits() {
        assert_eq!(
            [rate(12.0), rate(1_240_000.0), rate(64.2e9)],
            ["12 B/s", "1.24 MB/s", "64.2 GB/s"]
        );
    }
}
