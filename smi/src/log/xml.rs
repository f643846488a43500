//! The XML output, with one element for each item, and its DTD. Each level is indented by a tab.

use std::fmt::Write as _;

use super::{
    item::{Content, Item, Layout, List},
    text::remove_control_characters,
    value::Cursor,
};
use crate::release::Release;

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

/// The maximum line width of the DTD. Longer declarations are wrapped.
const MAX_DTD_LINE_WIDTH: usize = 100;

/// The DTD of the XML output, generated from the same definitions: the declared elements and their
/// content models, without duplicates.
pub(crate) struct Dtd {
    release: Release,
    elements: Vec<(String, String)>,
}

impl Dtd {
    pub(super) fn new(release: Release) -> Self {
        Self {
            release,
            elements: Vec::new(),
        }
    }

    /// Declares an element that contains `children` in the given order.
    pub(super) fn add_sequence(&mut self, tag: &str, children: &[String]) {
        self.add_element(tag, format!("({})", children.join(", ")));
    }

    pub(super) fn add_leaf(&mut self, tag: &str) {
        self.add_element(tag, "(#PCDATA)".to_owned());
    }

    pub(super) fn add_item(&mut self, item: &'static Item) {
        let tag = &*item.tag();
        match &item.content {
            _ if !item.is_in_release(self.release) => {}
            Content::Each(_, items) => self.add_items(items),
            _ if tag.is_empty() => {}
            Content::Value(_) => self.add_leaf(tag),
            Content::Group(items) | Content::Declared(items) => {
                if items.is_empty() {
                    self.add_leaf(tag);
                } else {
                    self.add_sequence(tag, &self.list_children(items));
                }
                self.add_items(items);
            }
            Content::GroupOr(_, items) => {
                let names: Vec<_> = self
                    .list_children(items)
                    .iter()
                    .map(|child| strip_occurrence(child).to_owned())
                    .collect();
                self.add_mixed(tag, &names);
                self.add_items(items);
            }
            Content::List(List {
                tag: row, items, ..
            }) => {
                self.add_mixed(tag, &[(*row).to_owned()]);
                self.add_sequence(row, &self.list_children(items));
                self.add_items(items);
            }
        }
    }

    /// Returns all declarations. Only the element `with_id` has an `id` attribute, which is
    /// declared directly after the element.
    pub(super) fn render(&self, name: &str, with_id: &str) -> String {
        let mut out = format!("<!-- {name} -->\n");
        for (tag, model) in &self.elements {
            out.push_str(&wrap_declaration(&format!("<!ELEMENT {tag} "), model));
            if tag == with_id {
                let _ = writeln!(out, "<!ATTLIST {tag} id CDATA #REQUIRED>");
            }
        }
        out.push('\n');
        out
    }

    /// Returns the declared elements with their content models.
    #[cfg(test)]
    pub(super) fn elements(&self) -> &[(String, String)] {
        &self.elements
    }

    /// Returns the names of `items` as they appear in the parent element's content model.
    pub(super) fn list_children(&self, items: &[Item]) -> Vec<String> {
        items
            .iter()
            .filter(|item| item.is_in_release(self.release))
            .flat_map(|item| match &item.content {
                Content::Each(_, items) => self
                    .list_children(items)
                    .iter()
                    .map(|child| format!("{}*", strip_occurrence(child)))
                    .collect(),
                _ if item.tag().is_empty() => Vec::new(),
                Content::Declared(_) => vec![format!("{}?", item.tag())],
                _ if item.when.is_some() => vec![format!("{}?", item.tag())],
                _ => vec![item.tag().into_owned()],
            })
            .collect()
    }

    fn add_items(&mut self, items: &'static [Item]) {
        for item in items {
            self.add_item(item);
        }
    }

    fn add_mixed(&mut self, tag: &str, names: &[String]) {
        self.add_element(tag, format!("(#PCDATA | {})*", names.join(" | ")));
    }

    fn add_element(&mut self, tag: &str, model: String) {
        let element = (tag.to_owned(), model);
        if !self.elements.contains(&element) {
            self.elements.push(element);
        }
    }
}

/// Removes the occurrence indicator (such as `*` or `?`) from a child's name.
fn strip_occurrence(child: &str) -> &str {
    child.trim_end_matches(['?', '*'])
}

fn wrap_declaration(head: &str, model: &str) -> String {
    let mut out = head.to_owned();
    let mut length = head.len();
    for piece in model.split_inclusive(' ') {
        if length + piece.len() > MAX_DTD_LINE_WIDTH {
            out.truncate(out.trim_end().len());
            let _ = write!(out, "\n{:indent$}", "", indent = head.len());
            length = head.len();
        }
        out.push_str(piece);
        length += piece.len();
    }
    out.push_str(">\n");
    out
}
