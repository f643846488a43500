//! A field that can be asked for, and the sections of the help in which fields stand.

use std::ops::Range;

use gpumon_probe::vendor::nvml::query::{Answer, Query};

use super::cell::Cell;
use super::row::Row;
use crate::release::Release;

/// A field of a query.
pub(super) struct Field {
    /// `name`, `name or alias`, and behind that the unit in brackets, in which values are counted.
    spec: &'static str,
    /// What it means, for the help. It has no empty line: programs that read the help take what
    /// stands in quotation marks below an empty line for a name.
    pub(super) about: &'static str,
    value: Source,
    since: Release,
    except: Range<Release>,
}

enum Source {
    /// The answer to a query, in a form.
    Answer(Query, fn(&Answer) -> Cell),
    /// A function of a row, which asks for the answers that it needs.
    Computed(fn(&Row<'_>) -> Cell),
}

/// A field that shows the answer to a query.
pub(super) const fn field(
    spec: &'static str,
    query: Query,
    format: fn(&Answer) -> Cell,
    about: &'static str,
) -> Field {
    Field::new(spec, Source::Answer(query, format), about)
}

/// A field that takes more than one answer.
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

    /// The first release that has it.
    pub(super) const fn since(self, since: Release) -> Self {
        Self { since, ..self }
    }

    /// Releases in between that lack it.
    pub(super) const fn except(self, except: Range<Release>) -> Self {
        Self { except, ..self }
    }

    pub(super) fn is_in(&self, release: Release) -> bool {
        release >= self.since && !self.except.contains(&release)
    }

    fn unit(&self) -> Option<&'static str> {
        self.spec.split_once(" [")?.1.strip_suffix(']')
    }

    /// What it can be asked for by, its own name first. Case matters.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.spec
            .split_once(" [")
            .map_or(self.spec, |(names, _)| names)
            .split(" or ")
    }

    /// Its name in the header.
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

/// Fields that follow each other in the help; `None` for the title where they stand for themselves.
pub(super) struct Section {
    pub(super) title: Option<(&'static str, &'static str)>,
    /// The first release that has the title.
    pub(super) since: Release,
    pub(super) fields: &'static [Field],
}

impl Section {
    pub(super) const fn since(self, since: Release) -> Self {
        Self { since, ..self }
    }
}

/// What the fields are about, and a few sentences on it.
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
