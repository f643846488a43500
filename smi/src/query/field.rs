//! The fields that can be queried, and the sections of the help into which they are grouped.

use std::ops::Range;

use gpumon_probe::vendor::nvml::query::{Answer, Query};

use super::cell::Cell;
use super::row::Row;
use crate::release::Release;

/// A field of a query.
pub(super) struct Field {
    /// The field's names and unit, as `name [unit]` or `name or alias [unit]`. The unit is
    /// optional.
    spec: &'static str,
    /// The field's description in the help. It must not contain an empty line, because programs
    /// that parse the help treat quoted text after an empty line as a field name.
    pub(super) about: &'static str,
    value: ValueSource,
    since: Release,
    except: Range<Release>,
}

enum ValueSource {
    /// The query whose answer the field shows, and the function that formats the answer.
    Answer(Query, fn(&Answer) -> Cell),
    /// A function that calculates the cell. It can run several queries.
    Computed(fn(&Row<'_>) -> Cell),
}

/// Creates a field that shows the answer to one query.
pub(super) const fn field(
    spec: &'static str,
    query: Query,
    format: fn(&Answer) -> Cell,
    about: &'static str,
) -> Field {
    Field::new(spec, ValueSource::Answer(query, format), about)
}

/// Creates a field whose value requires more than one answer.
pub(super) const fn row_field(
    spec: &'static str,
    cell: fn(&Row<'_>) -> Cell,
    about: &'static str,
) -> Field {
    Field::new(spec, ValueSource::Computed(cell), about)
}

impl Field {
    const fn new(spec: &'static str, value: ValueSource, about: &'static str) -> Self {
        Self {
            spec,
            about,
            value,
            since: Release(0, 0),
            except: Release(0, 0)..Release(0, 0),
        }
    }

    /// Sets the first release that supports the field.
    pub(super) const fn since(self, since: Release) -> Self {
        Self { since, ..self }
    }

    /// Sets the range of releases that do not support the field.
    pub(super) const fn except(self, except: Range<Release>) -> Self {
        Self { except, ..self }
    }

    pub(super) fn is_in(&self, release: Release) -> bool {
        release >= self.since && !self.except.contains(&release)
    }

    fn unit(&self) -> Option<&'static str> {
        self.spec.split_once(" [")?.1.strip_suffix(']')
    }

    /// Returns the field's names, starting with the main name. Names are case-sensitive.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.spec
            .split_once(" [")
            .map_or(self.spec, |(names, _)| names)
            .split(" or ")
    }

    /// Returns the heading of the field's column, which consists of the name and the unit.
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
            ValueSource::Answer(query, format) => format(&row.run_query(query)),
            ValueSource::Computed(cell) => cell(row),
        };
        match (cell, self.unit()) {
            (Ok(value), Some(unit)) if units => format!("{value} {unit}"),
            (Ok(value), _) => value,
            (Err(absent), _) => absent.to_string(),
        }
    }
}

/// Consecutive fields in the help. `title` is `None` if the fields have no title.
pub(super) struct Section {
    pub(super) title: Option<(&'static str, &'static str)>,
    /// The first release whose help shows the title.
    pub(super) since: Release,
    pub(super) fields: &'static [Field],
}

impl Section {
    pub(super) const fn since(self, since: Release) -> Self {
        Self { since, ..self }
    }
}

/// Creates a section that has a title and a short description.
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
