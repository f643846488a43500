//! The XML output, with one element for each item. Each level is indented by a tab.

use std::fmt::Write as _;

use super::{
    cursor::Cursor,
    item::{Content, Item, Layout},
    text::remove_control_characters,
};

pub(super) fn write_item(out: &mut String, item: &Item, above: &Cursor<'_>, depth: usize) {
    let at = &above.with_added_numbers(item.about);
    if !item.is_shown(at) {
        return;
    }
    let tag = &*item.tag();
    match &item.content {
        Content::Each(rows, items) => {
            for row in rows(at).unwrap_or_default() {
                write_items(out, items, &at.with_added_numbers(&row), depth);
            }
        }
        _ if tag.is_empty() => {}
        Content::Declared(_) => {}
        Content::Value(source) => write_leaf(out, depth, tag, &source.read(at)),
        Content::Group(items) => write_branch(out, depth, tag, |out| {
            write_items(out, items, at, depth + 1);
        }),
        Content::GroupOr(word, items) => match word(at) {
            Some(word) => write_leaf(out, depth, tag, &word),
            None => write_branch(out, depth, tag, |out| {
                write_items(out, items, at, depth + 1);
            }),
        },
        Content::List(list) => match (list.rows)(at) {
            Err(word) => write_leaf(out, depth, tag, &word),
            Ok(rows) => write_branch(out, depth, tag, |out| {
                let inner = if matches!(list.layout, Layout::Headed) {
                    depth
                } else {
                    depth + 1
                };
                if rows.is_empty() && matches!(list.layout, Layout::Headed) {
                    let _ = writeln!(out, "{}None", indentation(depth + 1));
                }
                for row in rows {
                    let at = &at.with_added_numbers(&row);
                    write_branch(out, inner, list.tag, |out| {
                        write_items(out, list.items, at, inner + 1);
                    });
                }
            }),
        },
    }
}

pub(super) fn write_leaf(out: &mut String, depth: usize, tag: &str, value: &str) {
    let _ = writeln!(
        out,
        "{}<{tag}>{}</{tag}>",
        indentation(depth),
        escape(value)
    );
}

pub(super) fn write_branch(
    out: &mut String,
    depth: usize,
    tag: &str,
    inside: impl FnOnce(&mut String),
) {
    let _ = writeln!(out, "{}<{tag}>", indentation(depth));
    inside(out);
    let _ = writeln!(out, "{}</{tag}>", indentation(depth));
}

/// Escapes text for use in an element or a quoted attribute.
pub(super) fn escape(value: &str) -> String {
    remove_control_characters(value)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn write_items(out: &mut String, items: &[Item], at: &Cursor<'_>, depth: usize) {
    for item in items {
        write_item(out, item, at, depth);
    }
}

fn indentation(depth: usize) -> String {
    "\t".repeat(depth)
}
