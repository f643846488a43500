//! Definitions of the log's items: their titles, XML elements, and values.
//!
//! Definitions do not depend on the output format. Text, XML, and DTD are generated from the same
//! tables, so a new line needs only one entry.

use std::{borrow::Cow, ops::Range};

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{cursor::Cursor, format::format_or_reason, sections::Section};
use crate::release::Release;

/// A placeholder for an XML element whose name is the title in lower case with underscores.
pub(super) const TITLE_AS_TAG: &str = "=";

/// An item of the log, which is a line, a group, or a list.
pub(super) struct Item {
    /// The item's title in text output. It is empty if only the XML output contains the item.
    pub(super) title: &'static str,
    tag: &'static str,
    pub(super) content: Content,
    /// The first release whose log contains the item, and the first later release whose log does
    /// not.
    releases: (Release, Release),
    /// A range of releases whose log does not contain the item, as an exception.
    except: Range<Release>,
    /// The condition under which the item is shown, or `None` if it is always shown.
    pub(super) when: Option<fn(&Cursor<'_>) -> bool>,
    /// Whether the item is indented one step more than its neighbors. This affects only text
    /// output.
    pub(super) deeper: bool,
    /// Numbers that are added to the position at which the item's values are read. They allow
    /// groups that differ only in a number to share a table.
    pub(super) about: &'static [i128],
    /// The section of `-d` that contains the item.
    pub(super) section: Option<Section>,
    /// Whether text output includes the item without `-d`.
    pub(super) full: bool,
    /// Slow queries that run in the background while other items are written.
    pub(super) ahead: &'static [Q],
}

pub(super) enum Content {
    Value(Source),
    Group(&'static [Item]),
    /// A group of items, or a single word that replaces the group.
    GroupOr(fn(&Cursor<'_>) -> Option<String>, &'static [Item]),
    /// A list whose rows contain items.
    List(&'static List),
    /// Items that are repeated for each row, without a heading or an XML element for the row.
    Each(Rows, &'static [Item]),
    /// An XML element that is declared in the DTD but never written.
    Declared(&'static [Item]),
}

pub(super) enum Source {
    Computed(fn(&Cursor<'_>) -> String),
    /// A formatted number from the answer to a query.
    Number(Q, usize, fn(i128) -> String),
    /// A formatted number from the answer to a query about a MIG device, whose index is the row's
    /// first number.
    PartNumber(Q, usize, fn(i128) -> String),
    /// A formatted field, given by its ID and scope.
    Field(u32, u32, fn(i128) -> String),
    /// A formatted field whose value may have a fractional part.
    RealField(u32, u32, fn(f64) -> String),
    /// The text in the answer to a query.
    Text(Q),
}

impl Source {
    pub(super) fn read(&self, at: &Cursor<'_>) -> String {
        match *self {
            Self::Computed(make) => make(at),
            Self::Number(query, place, format) => at.read_formatted(query, place, format),
            Self::PartNumber(query, place, format) => at.read_formatted_part(query, place, format),
            Self::Field(id, scope, format) => at.read_formatted_field(id, scope, format),
            Self::RealField(id, scope, format) => {
                format_or_reason(at.read_real_field(id, scope), format)
            }
            Self::Text(query) => at.read_text(query),
        }
    }
}

/// A function that returns the numbers for each row, or the reason why there are no rows.
pub(super) type Rows = fn(&Cursor<'_>) -> Result<Vec<Vec<i128>>, String>;

/// A list with any number of rows.
pub(super) struct List {
    pub(super) rows: Rows,
    pub(super) tag: &'static str,
    pub(super) items: &'static [Item],
    pub(super) layout: Layout,
}

pub(super) enum Layout {
    /// A single heading above all rows. In text output, values are aligned in the given column, and
    /// a list without rows is shown as `None`. In XML output, a list without rows is an empty
    /// element.
    Under(usize),
    /// A heading for each row. In XML output, rows are written at the same depth as their list, and
    /// a list without rows is written as `None`.
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

    /// Returns the name of the XML element. It is empty if the XML output does not contain the
    /// item.
    pub(super) fn tag(&self) -> Cow<'static, str> {
        if self.tag == TITLE_AS_TAG {
            Cow::Owned(self.title.trim().to_lowercase().replace([' ', '-'], "_"))
        } else {
            Cow::Borrowed(self.tag)
        }
    }

    /// Returns `true` if the log of `release` contains the item.
    pub(super) fn is_in_release(&self, release: Release) -> bool {
        self.releases.0 <= release && release < self.releases.1 && !self.except.contains(&release)
    }

    /// Returns `true` if the item is shown at the given position.
    pub(super) fn is_shown(&self, at: &Cursor<'_>) -> bool {
        self.is_in_release(at.device.release()) && self.when.is_none_or(|holds| holds(at))
    }

    /// Limits the item to `release` and later releases.
    pub(super) const fn show_since_release(mut self, release: Release) -> Self {
        self.releases.0 = release;
        self
    }

    /// Limits the item to releases before `release`.
    pub(super) const fn show_before_release(mut self, release: Release) -> Self {
        self.releases.1 = release;
        self
    }

    /// Excludes the item from a range of releases.
    pub(super) const fn hide_in_releases(mut self, except: Range<Release>) -> Self {
        self.except = except;
        self
    }

    /// Shows the item only if the condition is met.
    pub(super) const fn show_when(mut self, when: fn(&Cursor<'_>) -> bool) -> Self {
        self.when = Some(when);
        self
    }

    /// Indents the item one step more in text output.
    pub(super) const fn indent_deeper(mut self) -> Self {
        self.deeper = true;
        self
    }

    /// Adds numbers that determine the item's values.
    pub(super) const fn with_numbers(mut self, about: &'static [i128]) -> Self {
        self.about = about;
        self
    }

    /// Includes the item in a section of `-d`.
    pub(super) const fn show_in_section(mut self, section: Section) -> Self {
        self.section = Some(section);
        self
    }

    /// Shows the item in text output only with the given section of `-d`.
    pub(super) const fn show_only_in_section(mut self, section: Section) -> Self {
        self.section = Some(section);
        self.full = false;
        self
    }

    pub(super) const fn with_items(mut self, items: &'static [Self]) -> Self {
        self.content = match self.content {
            Content::GroupOr(word, _) => Content::GroupOr(word, items),
            _ => Content::Group(items),
        };
        self
    }

    /// Sets the slow queries that the item needs.
    pub(super) const fn with_slow_queries(mut self, ahead: &'static [Q]) -> Self {
        self.ahead = ahead;
        self
    }
}

pub(super) const fn computed_item(
    title: &'static str,
    tag: &'static str,
    make: fn(&Cursor<'_>) -> String,
) -> Item {
    Item::new(title, tag, Content::Value(Source::Computed(make)))
}

pub(super) const fn number_item(
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

/// Defines a line with a number from the answer to a query about a MIG device.
pub(super) const fn part_item(
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

pub(super) const fn field_item(
    title: &'static str,
    tag: &'static str,
    id: u32,
    format: fn(i128) -> String,
) -> Item {
    scoped_field_item(title, tag, (id, 0), format)
}

pub(super) const fn scoped_field_item(
    title: &'static str,
    tag: &'static str,
    (id, scope): (u32, u32),
    format: fn(i128) -> String,
) -> Item {
    Item::new(title, tag, Content::Value(Source::Field(id, scope, format)))
}

pub(super) const fn real_field_item(
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

pub(super) const fn text_item(title: &'static str, tag: &'static str, query: Q) -> Item {
    Item::new(title, tag, Content::Value(Source::Text(query)))
}

/// Defines a group without items, which are added afterwards.
pub(super) const fn group_item(title: &'static str, tag: &'static str) -> Item {
    Item::new(title, tag, Content::Group(&[]))
}

/// Defines a group that a line replaces if `word` returns text. The group's items are added
/// afterwards.
pub(super) const fn replaceable_group_item(
    title: &'static str,
    tag: &'static str,
    word: fn(&Cursor<'_>) -> Option<String>,
) -> Item {
    Item::new(title, tag, Content::GroupOr(word, &[]))
}

pub(super) const fn list_item(title: &'static str, tag: &'static str, list: &'static List) -> Item {
    Item::new(title, tag, Content::List(list))
}

pub(super) const fn row_items(rows: Rows, items: &'static [Item]) -> Item {
    Item::new("", "", Content::Each(rows, items))
}

/// Defines an XML element that is declared in the DTD but never written.
pub(super) const fn declared_item(tag: &'static str, items: &'static [Item]) -> Item {
    Item::new("", tag, Content::Declared(items))
}
