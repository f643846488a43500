//! The definitions: what stands in the log, under which title and in which element.
//!
//! A definition does not depend on the output format. The text, the XML and the DTD are three
//! readings of the same tables, so that a new line is one entry in one of them.

use std::{borrow::Cow, ops::Range};

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{cursor::Cursor, format::format_or_reason, sections::Section};
use crate::release::Release;

/// In place of an element: it is named as the title, in small letters with underscores.
pub(super) const SAME: &str = "=";

/// One line, group or list.
pub(super) struct Item {
    /// What the text calls it; empty where the text leaves it out.
    pub(super) title: &'static str,
    tag: &'static str,
    pub(super) content: Content,
    /// The first release of the driver whose log has it, and the first one that has it no longer.
    releases: (Release, Release),
    /// Releases in between whose log lacks it.
    except: Range<Release>,
    /// Whether it is there; `None` where it always is.
    pub(super) when: Option<fn(&Cursor<'_>) -> bool>,
    /// The text sets it one step to the right of its neighbors. The XML does not.
    pub(super) deeper: bool,
    /// Numbers that its values are about, added to [`Cursor::nth`]: the definitions of two groups
    /// that differ in a number are the same table.
    pub(super) about: &'static [i128],
    /// The section of `-d` that shows it.
    pub(super) section: Option<Section>,
    /// Whether the text shows it without `-d`.
    pub(super) full: bool,
    /// Queries that wait for something, which are asked while the other items are written.
    pub(super) ahead: &'static [Q],
}

pub(super) enum Content {
    Value(Source),
    Group(&'static [Item]),
    /// Items below it, or one word in their place.
    GroupOr(fn(&Cursor<'_>) -> Option<String>, &'static [Item]),
    /// Items for each of its rows.
    List(&'static List),
    /// For each row these items, without a heading or an element of their own.
    Each(Rows, &'static [Item]),
    /// Nothing that is ever written, yet known to the DTD.
    Declared(&'static [Item]),
}

pub(super) enum Source {
    /// Whatever it takes.
    Computed(fn(&Cursor<'_>) -> String),
    /// A number of an answer, in words.
    Number(Q, usize, fn(i128) -> String),
    /// The same of the MIG device whose index is the first number of the row.
    PartNumber(Q, usize, fn(i128) -> String),
    /// A field of this number and scope, in words.
    Field(u32, u32, fn(i128) -> String),
    /// The same of a field that may have a fraction.
    RealField(u32, u32, fn(f64) -> String),
    /// An answer that is a text.
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

/// The numbers of each row, or why there are none.
pub(super) type Rows = fn(&Cursor<'_>) -> Result<Vec<Vec<i128>>, String>;

/// Something of which there are none, one or many.
pub(super) struct List {
    pub(super) rows: Rows,
    pub(super) tag: &'static str,
    pub(super) items: &'static [Item],
    pub(super) layout: Layout,
}

pub(super) enum Layout {
    /// A heading, and all rows below it. The text sets the values into this column, and writes
    /// `None` where there is no row; the XML leaves the element empty.
    Under(usize),
    /// A heading for each row, and none without. The XML writes the rows at the depth of their
    /// list, and `None` where there is none.
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

    /// Its element; empty where the XML leaves it out.
    pub(super) fn tag(&self) -> Cow<'static, str> {
        if self.tag == SAME {
            Cow::Owned(self.title.trim().to_lowercase().replace([' ', '-'], "_"))
        } else {
            Cow::Borrowed(self.tag)
        }
    }

    /// Whether the log of this release can have it.
    pub(super) fn is_of(&self, release: Release) -> bool {
        self.releases.0 <= release && release < self.releases.1 && !self.except.contains(&release)
    }

    /// Whether it stands here.
    pub(super) fn is_shown(&self, at: &Cursor<'_>) -> bool {
        self.is_of(at.device.release()) && self.when.is_none_or(|holds| holds(at))
    }

    /// Shown from this release on.
    pub(super) const fn since(mut self, release: Release) -> Self {
        self.releases.0 = release;
        self
    }

    /// Shown before this release.
    pub(super) const fn until(mut self, release: Release) -> Self {
        self.releases.1 = release;
        self
    }

    /// Not shown in these releases.
    pub(super) const fn except(mut self, except: Range<Release>) -> Self {
        self.except = except;
        self
    }

    /// Shown where this holds.
    pub(super) const fn when(mut self, when: fn(&Cursor<'_>) -> bool) -> Self {
        self.when = Some(when);
        self
    }

    /// Set one step to the right in the text.
    pub(super) const fn deeper(mut self) -> Self {
        self.deeper = true;
        self
    }

    /// The same about these numbers.
    pub(super) const fn about(mut self, about: &'static [i128]) -> Self {
        self.about = about;
        self
    }

    /// Shown by this section, too.
    pub(super) const fn of(mut self, section: Section) -> Self {
        self.section = Some(section);
        self
    }

    /// Shown in the text by this section alone.
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

    /// Waits for these.
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

/// The same of a MIG device.
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

/// A heading, and what it [holds](Item::holds).
pub(super) const fn group(title: &'static str, tag: &'static str) -> Item {
    Item::new(title, tag, Content::Group(&[]))
}

/// A heading and what it [holds](Item::holds), or a line with what the function gives.
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

/// An element that the DTD knows and nobody writes.
pub(super) const fn declared(tag: &'static str, items: &'static [Item]) -> Item {
    Item::new("", tag, Content::Declared(items))
}
