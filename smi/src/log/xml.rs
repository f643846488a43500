//! The XML output: an element for each item, and a tab per level.

use std::fmt::Write as _;

use super::{
    cursor::Cursor,
    item::{Content, Item, Layout},
    text::plain,
};

pub(super) fn write(out: &mut String, item: &Item, above: &Cursor<'_>, depth: usize) {
    let at = &above.below(item.about);
    if !item.is_shown(at) {
        return;
    }
    let tag = &*item.tag();
    match &item.content {
        Content::Each(rows, items) => {
            for row in rows(at).unwrap_or_default() {
                write_all(out, items, &at.below(&row), depth);
            }
        }
        _ if tag.is_empty() => {}
        Content::Declared(_) => {}
        Content::Value(source) => leaf(out, depth, tag, &source.read(at)),
        Content::Group(items) => branch(out, depth, tag, |out| {
            write_all(out, items, at, depth + 1);
        }),
        Content::GroupOr(word, items) => match word(at) {
            Some(word) => leaf(out, depth, tag, &word),
            None => branch(out, depth, tag, |out| {
                write_all(out, items, at, depth + 1);
            }),
        },
        Content::List(list) => match (list.rows)(at) {
            Err(word) => leaf(out, depth, tag, &word),
            Ok(rows) => branch(out, depth, tag, |out| {
                let inner = if matches!(list.layout, Layout::Headed) {
                    depth
                } else {
                    depth + 1
                };
                if rows.is_empty() && matches!(list.layout, Layout::Headed) {
                    let _ = writeln!(out, "{}None", tabs(depth + 1));
                }
                for row in rows {
                    let at = &at.below(&row);
                    branch(out, inner, list.tag, |out| {
                        write_all(out, list.items, at, inner + 1);
                    });
                }
            }),
        },
    }
}

pub(super) fn leaf(out: &mut String, depth: usize, tag: &str, value: &str) {
    let _ = writeln!(out, "{}<{tag}>{}</{tag}>", tabs(depth), escape(value));
}

pub(super) fn branch(out: &mut String, depth: usize, tag: &str, inside: impl FnOnce(&mut String)) {
    let _ = writeln!(out, "{}<{tag}>", tabs(depth));
    inside(out);
    let _ = writeln!(out, "{}</{tag}>", tabs(depth));
}

/// Escapes a text for an element or a quoted attribute.
pub(super) fn escape(value: &str) -> String {
    plain(value)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn write_all(out: &mut String, items: &[Item], at: &Cursor<'_>, depth: usize) {
    for item in items {
        write(out, item, at, depth);
    }
}

fn tabs(depth: usize) -> String {
    "\t".repeat(depth)
}
