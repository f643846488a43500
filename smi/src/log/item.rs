//! Definitions of the log's items: their titles, elements and values.
//!
//! A definition does not depend on the output format. The text, the XML and the DTD are generated
//! from the same tables, so that a new line needs only one entry.

use std::{borrow::Cow, ops::Range};

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{cursor::Cursor, format::format_or_reason, sections::Section};
use crate::release::Release;

/// A placeholder for an element whose name is the title in lower case, with underscores.
pub(super) const SAME: &str = "=";

/// A line, a group or a list.
pub(super) struct Item {
    /// The title in the text; empty if only the XML has the item.
    pub(super) title: &'static str,
    tag: &'static str,
    pub(super) content: Content,
    /// The first release whose log has the item, and the first release whose log no longer has it.
    releases: (Release, Release),
    /// Releases in between whose log lacks the item.
    except: Range<Release>,
    /// The condition for showing the item; `None` if it is always shown.
    pub(super) when: Option<fn(&Cursor<'_>) -> bool>,
    /// Whether the text indents the item one step more than its neighbors. The XML does not.
    pub(super) deeper: bool,
    /// Numbers that are added to [`Cursor::nth`] for the item's values. Groups that differ only in
    /// a number can share a table.
    pub(super) about: &'static [i128],
    /// The section of `-d` that shows the item.
    pub(super) section: Option<Section>,
    /// Whether the text shows the item without `-d`.
    pub(super) full: bool,
    /// Slow queries, which are asked while other items are written.
    pub(super) ahead: &'static [Q],
}

pub(super) enum Content {
    Value(Source),
    Group(&'static [Item]),
    /// A group of items, or a single word instead.
    GroupOr(fn(&Cursor<'_>) -> Option<String>, &'static [Item]),
    /// A list with items for each row.
    List(&'static List),
    /// Items for each row, without a heading or an element of their own.
    Each(Rows, &'static [Item]),
    /// An element that is declared in the DTD but never written.
    Declared(&'static [Item]),
}

pub(super) enum Source {
    Computed(fn(&Cursor<'_>) -> String),
    /// A formatted number of an answer.
    Number(Q, usize, fn(i128) -> String),
    /// A formatted number of an answer about the MIG device whose index is the row's first number.
    PartNumber(Q, usize, fn(i128) -> String),
    /// A formatted field, by its number and scope.
    Field(u32, u32, fn(i128) -> String),
    /// A formatted field that may have a fraction.
    RealField(u32, u32, fn(f64) -> String),
    /// The text of an answer.
    Text(Q),
}

impl Source {
    pub(super) fn read(&self, at: &Cursor<'_>) -> String {
        match *self {
            Self::Computed(make) => make(at),
            Self::Number(query, place, format) => at.format(query, place, format),
            Self::PartNumber(query, place, format) => at.format_of_part(query, place, format),
            Self::Field(id, scope, format) => at.format_field(id, scope, format),
            Self::RealField(id, scope, format) => {
                format_or_reason(at.real_field(id, scope), format)
            }
            Self::Text(query) => at.text(query),
        }
    }
}

/// A function that returns the numbers of each row, or the reason why there are no rows.
pub(super) type Rows = fn(&Cursor<'_>) -> Result<Vec<Vec<i128>>, String>;

/// A list with any number of rows.
pub(super) struct List {
    pub(super) rows: Rows,
    pub(super) tag: &'static str,
    pub(super) items: &'static [Item],
    pub(super) layout: Layout,
}

pub(super) enum Layout {
    /// A single heading above all rows. The text aligns values in this column, and shows `None` if
    /// there are no rows; the XML leaves the element empty.
    Under(usize),
    /// A heading for each row, and no heading without rows. The XML writes rows at the depth of
    /// their list, and `None` if there are no rows.
    Headed,
}

impl Item {
    const fn new(title: &'static str, tag: &'static str, content: Content) -> Self {
        let releases = (Release(0, 0), Release(u32::MAX, 0));
        Self {
            title,
            tag,
            content,
            releases,
            except: Release(0, 0)..Release(0, 0),
            when: None,
            deeper: false,
            about: &[],
            section: None,
            full: true,
            ahead: &[],
        }
    }

    /// Returns the name of the element; empty if the XML leaves the item out.
    pub(super) fn tag(&self) -> Cow<'static, str> {
        if self.tag == SAME {
            Cow::Owned(self.title.trim().to_lowercase().replace([' ', '-'], "_"))
        } else {
            Cow::Borrowed(self.tag)
        }
    }

    /// Returns `true` if the log of this release has the item.
    pub(super) fn is_of(&self, release: Release) -> bool {
        self.releases.0 <= release && release < self.releases.1 && !self.except.contains(&release)
    }

    /// Returns `true` if the item is shown at this position.
    pub(super) fn is_shown(&self, at: &Cursor<'_>) -> bool {
        self.is_of(at.device.release()) && self.when.is_none_or(|holds| holds(at))
    }

    /// Returns the item, shown from this release on.
    pub(super) const fn since(mut self, release: Release) -> Self {
        self.releases.0 = release;
        self
    }

    /// Returns the item, shown only before this release.
    pub(super) const fn until(mut self, release: Release) -> Self {
        self.releases.1 = release;
        self
    }

    /// Returns the item, not shown in these releases.
    pub(super) const fn except(mut self, except: Range<Release>) -> Self {
        self.except = except;
        self
    }

    /// Returns the item, shown only if the condition is met.
    pub(super) const fn when(mut self, when: fn(&Cursor<'_>) -> bool) -> Self {
        self.when = Some(when);
        self
    }

    /// Returns the item, indented one step more in the text.
    pub(super) const fn deeper(mut self) -> Self {
        self.deeper = true;
        self
    }

    /// Returns the item with numbers for its values.
    pub(super) const fn about(mut self, about: &'static [i128]) -> Self {
        self.about = about;
        self
    }

    /// Returns the item, also shown by this section.
    pub(super) const fn of(mut self, section: Section) -> Self {
        self.section = Some(section);
        self
    }

    /// Returns the item, which the text shows only with this section.
    pub(super) const fn only_of(mut self, section: Section) -> Self {
        self.section = Some(section);
        self.full = false;
        self
    }

    pub(super) const fn holds(mut self, items: &'static [Self]) -> Self {
        self.content = match self.content {
            Content::GroupOr(word, _) => Content::GroupOr(word, items),
            _ => Content::Group(items),
        };
        self
    }

    /// Returns the item with its slow queries.
    pub(super) const fn ahead(mut self, ahead: &'static [Q]) -> Self {
        self.ahead = ahead;
        self
    }
}

pub(super) const fn value(
    title: &'static str,
    tag: &'static str,
    make: fn(&Cursor<'_>) -> String,
) -> Item {
    Item::new(title, tag, Content::Value(Source::Computed(make)))
}

pub(super) const fn number(
    title: &'static str,
    tag: &'static str,
    query: Q,
    place: usize,
    format: fn(i128) -> String,
) -> Item {
    Item::new(
        title,
        tag,
        Content::Value(Source::Number(query, place, format)),
    )
}

/// Defines a line with a number of an answer about a MIG device.
pub(super) const fn of_part(
    title: &'static str,
    tag: &'static str,
    query: Q,
    place: usize,
    format: fn(i128) -> String,
) -> Item {
    Item::new(
        title,
        tag,
        Content::Value(Source::PartNumber(query, place, format)),
    )
}

pub(super) const fn field(
    title: &'static str,
    tag: &'static str,
    id: u32,
    format: fn(i128) -> String,
) -> Item {
    scoped_field(title, tag, (id, 0), format)
}

pub(super) const fn scoped_field(
    title: &'static str,
    tag: &'static str,
    (id, scope): (u32, u32),
    format: fn(i128) -> String,
) -> Item {
    Item::new(title, tag, Content::Value(Source::Field(id, scope, format)))
}

pub(super) const fn real_field(
    title: &'static str,
    tag: &'static str,
    (id, scope): (u32, u32),
    format: fn(f64) -> String,
) -> Item {
    Item::new(
        title,
        tag,
        Content::Value(Source::RealField(id, scope, format)),
    )
}

pub(super) const fn text(title: &'static str, tag: &'static str, query: Q) -> Item {
    Item::new(title, tag, Content::Value(Source::Text(query)))
}

/// Defines a group. [`Item::holds`] adds its items.
pub(super) const fn group(title: &'static str, tag: &'static str) -> Item {
    Item::new(title, tag, Content::Group(&[]))
}

/// Defines a group that is replaced by a line if `word` returns a text. [`Item::holds`] adds its
/// items.
pub(super) const fn unless(
    title: &'static str,
    tag: &'static str,
    word: fn(&Cursor<'_>) -> Option<String>,
) -> Item {
    Item::new(title, tag, Content::GroupOr(word, &[]))
}

pub(super) const fn list(title: &'static str, tag: &'static str, list: &'static List) -> Item {
    Item::new(title, tag, Content::List(list))
}

pub(super) const fn each(rows: Rows, items: &'static [Item]) -> Item {
    Item::new("", "", Content::Each(rows, items))
}

/// Defines an element that is declared in the DTD but never written.
pub(super) const fn declared(tag: &'static str, items: &'static [Item]) -> Item {
    Item::new("", tag, Content::Declared(items))
}
