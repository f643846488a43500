//! The text output: titles on the left, values in a column, and four spaces per level.

use std::fmt::Write as _;

use super::{
    cursor::Cursor,
    item::{Content, Item, Layout},
};

pub(super) const COLUMN: usize = 55;
pub(super) const PROCESS_COLUMN: usize = 42;
const STEP: usize = 4;

pub(super) fn write(out: &mut String, item: &Item, at: &Cursor<'_>) {
    Writer {
        out,
        column: COLUMN,
    }
    .item(item, at, STEP);
}

pub(super) fn line(out: &mut String, indent: usize, column: usize, title: &str, value: &str) {
    let width = column.saturating_sub(indent);
    let _ = writeln!(out, "{:indent$}{title:<width$}: {}", "", plain(value));
}

struct Writer<'a> {
    out: &'a mut String,
    column: usize,
}

impl Writer<'_> {
    fn item(&mut self, item: &Item, above: &Cursor<'_>, indent: usize) {
        let at = &above.below(item.about);
        if !item.is_shown(at) {
            return;
        }
        let indent = if item.deeper { indent + STEP } else { indent };
        match &item.content {
            Content::Each(rows, items) => {
                for row in rows(at).unwrap_or_default() {
                    self.items(items, &at.below(&row), indent);
                }
            }
            _ if item.title.is_empty() => {}
            Content::Declared(_) => {}
            Content::Value(source) => self.line(item.title, &source.read(at), indent),
            Content::Group(items) => self.group(item.title, items, at, indent),
            Content::GroupOr(word, items) => match word(at) {
                Some(word) => self.line(item.title, &word, indent),
                None => self.group(item.title, items, at, indent),
            },
            Content::List(list) => match ((list.rows)(at), &list.layout) {
                (Err(word), _) => self.line(item.title, &word, indent),
                (Ok(rows), Layout::Under(_)) if rows.is_empty() => {
                    self.line(item.title, "None", indent);
                }
                (Ok(rows), Layout::Under(column)) => {
                    self.heading(item.title, indent);
                    let mut below = Writer {
                        out: self.out,
                        column: *column,
                    };
                    for row in rows {
                        below.items(list.items, &at.below(&row), indent + STEP);
                    }
                }
                (Ok(rows), Layout::Headed) => {
                    for row in rows {
                        self.group(item.title, list.items, &at.below(&row), indent);
                    }
                }
            },
        }
    }

    fn group(&mut self, title: &str, items: &[Item], at: &Cursor<'_>, indent: usize) {
        self.heading(title, indent);
        self.items(items, at, indent + STEP);
    }

    fn items(&mut self, items: &[Item], at: &Cursor<'_>, indent: usize) {
        for item in items {
            self.item(item, at, indent);
        }
    }

    fn heading(&mut self, title: &str, indent: usize) {
        let _ = writeln!(self.out, "{:indent$}{title}", "");
    }

    fn line(&mut self, title: &str, value: &str, indent: usize) {
        line(self.out, indent, self.column, title, value);
    }
}

/// Removes control characters, because a process chooses its own name.
pub(super) fn plain(value: &str) -> String {
    value
        .chars()
        .filter(|character| !character.is_control())
        .collect()
}
