//! A field that can be asked for, and the sections of the help in which fields stand.

use super::cell::Cell;
use super::row::Row;

/// A field of a query whose rows are about a `T` each.
pub(super) struct Field<T: 'static> {
    /// `name`, `name or alias`, and behind that the unit in brackets, in which values are counted.
    spec: &'static str,
    /// What it means, for the help. It has no empty line: programs that read the help take what stands in quotation
    /// marks below an empty line for a name.
    pub(super) about: &'static str,
    /// Asks what it needs, and nothing else.
    cell: fn(&Row<'_, T>) -> Cell,
}

pub(super) const fn field<T>(spec: &'static str, cell: fn(&Row<'_, T>) -> Cell) -> Field<T> {
    Field { spec, about: "", cell }
}

impl<T> Field<T> {
    pub(super) const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    fn unit(&self) -> Option<&'static str> {
        self.spec.split_once(" [")?.1.strip_suffix(']')
    }

    /// What it can be asked for by, its own name first. Case matters.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + use<T> {
        self.spec.split_once(" [").map_or(self.spec, |(names, _)| names).split(" or ")
    }

    /// Its name in the header.
    pub(super) fn heading(&self) -> String {
        let unit = self.unit().map(|unit| format!(" [{unit}]"));
        self.names().take(1).map(str::to_owned).chain(unit).collect()
    }

    pub(super) fn text(&self, row: &Row<'_, T>, units: bool) -> String {
        match ((self.cell)(row), self.unit()) {
            (Ok(value), Some(unit)) if units => format!("{value} {unit}"),
            (Ok(value), _) => value,
            (Err(absent), _) => absent.to_string(),
        }
    }
}

/// Fields that follow each other in the help; `None` for the title where they stand for themselves.
pub(super) struct Section<T: 'static> {
    pub(super) title: Option<(&'static str, &'static str)>,
    pub(super) fields: &'static [Field<T>],
}

/// What the fields are about, and a few sentences on it.
pub(super) const fn titled<T>(title: &'static str, about: &'static str, fields: &'static [Field<T>]) -> Section<T> {
    Section { title: Some((title, about)), fields }
}

pub(super) const fn untitled<T>(fields: &'static [Field<T>]) -> Section<T> {
    Section { title: None, fields }
}
