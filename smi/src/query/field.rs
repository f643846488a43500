//! A field that can be asked for, and the sections of the help in which fields stand.

use super::cell::Cell;
use super::row::Row;

/// A field of a query whose rows are about a `T` each.
pub(super) struct Field<T: 'static> {
    pub(super) name: &'static str,
    pub(super) alias: Option<&'static str>,
    /// What values are counted in, which stands in the header and behind each value.
    pub(super) unit: Option<&'static str>,
    /// What it means, for the help. It has no empty line: programs that read the help take what stands in quotation
    /// marks below an empty line for a name.
    pub(super) about: &'static str,
    /// Asks what it needs, and nothing else.
    pub(super) cell: fn(&Row<'_, T>) -> Cell,
}

/// A field without unit and alias.
pub(super) const fn field<T>(name: &'static str, cell: fn(&Row<'_, T>) -> Cell) -> Field<T> {
    Field { name, alias: None, unit: None, about: "", cell }
}

impl<T> Field<T> {
    /// The same, with what it means.
    pub(super) const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// The same, with another name to ask for it.
    pub(super) const fn or(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    /// The same, counted in something.
    pub(super) const fn unit(self, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..self }
    }

    /// Whether it can be asked for by this name. Case matters.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.alias == Some(name)
    }

    pub(super) fn heading(&self) -> String {
        match self.unit {
            Some(unit) => format!("{} [{unit}]", self.name),
            None => self.name.to_owned(),
        }
    }

    pub(super) fn text(&self, row: &Row<'_, T>, units: bool) -> String {
        match ((self.cell)(row), self.unit) {
            (Ok(value), Some(unit)) if units => format!("{value} {unit}"),
            (Ok(value), _) => value,
            (Err(absent), _) => absent.to_string(),
        }
    }
}

pub(super) struct Section<T: 'static> {
    /// What they are about, and a few sentences on it; `None` where they stand for themselves.
    pub(super) title: Option<(&'static str, &'static str)>,
    pub(super) fields: &'static [Field<T>],
}
