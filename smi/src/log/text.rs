//! The text output, with titles on the left and values in a column. Each level is indented by four
//! spaces.

use std::fmt::Write as _;

use super::{
    item::{Content, Item, Layout},
    value::Cursor,
};

pub(super) const VALUE_COLUMN: usize = 55;
pub(super) const PROCESS_COLUMN: usize = 42;
const INDENT_STEP: usize = 4;

pub(super) fn write_item(out: &mut String, item: &Item, at: &Cursor<'_>) {
    Writer {
        out,
        column: VALUE_COLUMN,
    }
    .write_item(item, at, INDENT_STEP);
}

pub(super) fn write_line(out: &mut String, indent: usize, column: usize, title: &str, value: &str) {
    let width = column.saturating_sub(indent);
    let _ = writeln!(
        out,
        "{:indent$}{title:<width$}: {}",
        "",
        remove_control_characters(value)
    );
}

struct Writer<'a> {
    out: &'a mut String,
    column: usize,
}

impl Writer<'_> {
    fn write_item(&mut self, item: &Item, above: &Cursor<'_>, indent: usize) {
        let at = &above.with_added_numbers(item.about);
        if !item.is_shown(at) {
            return;
        }
        let indent = if item.deeper {
            indent + INDENT_STEP
        } else {
            indent
        };
        match &item.content {
            Content::Each(rows, items) => {
                for row in rows(at).unwrap_or_default() {
                    self.write_items(items, &at.with_added_numbers(&row), indent);
                }
            }
            _ if item.title.is_empty() => {}
            Content::Declared(_) => {}
            Content::Value(source) => self.write_line(item.title, &source.read(at), indent),
            Content::Group(items) => self.write_group(item.title, items, at, indent),
            Content::GroupOr(word, items) => match word(at) {
                Some(word) => self.write_line(item.title, &word, indent),
                None => self.write_group(item.title, items, at, indent),
            },
            Content::List(list) => match ((list.rows)(at), &list.layout) {
                (Err(word), _) => self.write_line(item.title, &word, indent),
                (Ok(rows), Layout::Under(_)) if rows.is_empty() => {
                    self.write_line(item.title, "None", indent);
                }
                (Ok(rows), Layout::Under(column)) => {
                    self.write_heading(item.title, indent);
                    let mut below = Writer {
                        out: self.out,
                        column: *column,
                    };
                    for row in rows {
                        below.write_items(
                            list.items,
                            &at.with_added_numbers(&row),
                            indent + INDENT_STEP,
                        );
                    }
                }
                (Ok(rows), Layout::Headed) => {
                    for row in rows {
                        self.write_group(
                            item.title,
                            list.items,
                            &at.with_added_numbers(&row),
                            indent,
                        );
                    }
                }
            },
        }
    }

    fn write_group(&mut self, title: &str, items: &[Item], at: &Cursor<'_>, indent: usize) {
        self.write_heading(title, indent);
        self.write_items(items, at, indent + INDENT_STEP);
    }

    fn write_items(&mut self, items: &[Item], at: &Cursor<'_>, indent: usize) {
        for item in items {
            self.write_item(item, at, indent);
        }
    }

    fn write_heading(&mut self, title: &str, indent: usize) {
        let _ = writeln!(self.out, "{:indent$}{title}", "");
    }

    fn write_line(&mut self, title: &str, value: &str, indent: usize) {
        write_line(self.out, indent, self.column, title, value);
    }
}

/// Removes control characters, which the name of a process may contain because processes choose
/// their own names.
pub(super) fn remove_control_characters(value: &str) -> String {
    value
        .chars()
        .filter(|character| !character.is_control())
        .collect()
}
