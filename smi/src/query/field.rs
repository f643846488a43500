//! A field that can be queried, and the sections of the help that group the fields.

use std::ops::Range;

use gpumon_probe::vendor::nvml::query::{Answer, Query};

use super::cell::Cell;
use super::row::Row;
use crate::release::Release;

/// A field of a query.
pub(super) struct Field {
    /// The names and the unit of the values: `name [unit]` or `name or alias [unit]`; the unit is
    /// optional.
    spec: &'static str,
    /// The description in the help. It must not contain an empty line, because programs that read
    /// the help take quoted text after an empty line for a field's name.
    pub(super) about: &'static str,
    value: Source,
    since: Release,
    except: Range<Release>,
}

enum Source {
    /// The answer to one query, and the function that formats it.
    Answer(Query, fn(&Answer) -> Cell),
    /// A function of the row, which can make several queries.
    Computed(fn(&Row<'_>) -> Cell),
}

/// Creates a field that shows the answer to one query.
pub(super) const fn field(
    spec: &'static str,
    query: Query,
    format: fn(&Answer) -> Cell,
    about: &'static str,
) -> Field {
    Field::new(spec, Source::Answer(query, format), about)
}

/// Creates a field that needs more than one answer.
pub(super) const fn row_field(
    spec: &'static str,
    cell: fn(&Row<'_>) -> Cell,
    about: &'static str,
) -> Field {
    Field::new(spec, Source::Computed(cell), about)
}

impl Field {
    const fn new(spec: &'static str, value: Source, about: &'static str) -> Self {
        Self {
            spec,
            about,
            value,
            since: Release(0, 0),
            except: Release(0, 0)..Release(0, 0),
        }
    }

    /// Sets the first release that has the field.
    pub(super) const fn since(self, since: Release) -> Self {
        Self { since, ..self }
    }

    /// Sets the range of releases that lack the field.
    pub(super) const fn except(self, except: Range<Release>) -> Self {
        Self { except, ..self }
    }

    pub(super) fn is_in(&self, release: Release) -> bool {
        release >= self.since && !self.except.contains(&release)
    }

    fn unit(&self) -> Option<&'static str> {
        self.spec.split_once(" [")?.1.strip_suffix(']')
    }

    /// Returns the names that can be queried, the main name first. Names are case-sensitive.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.spec
            .split_once(" [")
            .map_or(self.spec, |(names, _)| names)
            .split(" or ")
    }

    /// Returns the text of the column's header: the name and the unit.
    pub(super) fn heading(&self) -> String {
        let unit = self.unit().map(|unit| format!(" [{unit}]"));
        self.names()
            .take(1)
            .map(str::to_owned)
            .chain(unit)
            .collect()
    }

    pub(super) fn text(&self, row: &Row<'_>, units: bool) -> String {
        let cell = match self.value {
            Source::Answer(query, format) => format(&row.ask(query)),
            Source::Computed(cell) => cell(row),
        };
        match (cell, self.unit()) {
            (Ok(value), Some(unit)) if units => format!("{value} {unit}"),
            (Ok(value), _) => value,
            (Err(absent), _) => absent.to_string(),
        }
    }
}

/// Consecutive fields of the help. `title` is `None` for fields without a title.
pub(super) struct Section {
    pub(super) title: Option<(&'static str, &'static str)>,
    /// The first release that prints the title.
    pub(super) since: Release,
    pub(super) fields: &'static [Field],
}

impl Section {
    pub(super) const fn since(self, since: Release) -> Self {
        Self { since, ..self }
    }
}

/// Creates a section with a title and a short description.
pub(super) const fn with_title(
    title: &'static str,
    about: &'static str,
    fields: &'static [Field],
) -> Section {
    Section {
        title: Some((title, about)),
        since: Release(0, 0),
        fields,
    }
}

pub(super) const fn fields(fields: &'static [Field]) -> Section {
    Section {
        title: None,
        since: Release(0, 0),
        fields,
    }
}
