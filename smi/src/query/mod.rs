//! The queries for selected fields, such as `--query-gpu`, which print comma-separated values.
//!
//! Each field is one entry in the table of its query: names, unit, description and the function
//! that reads its cell. The accepted names, the header, the rows and the help are all made from
//! these tables.

mod accounted;
mod cell;
mod common;
mod field;
mod format;
mod gpu;
mod processes;
mod retired;
mod row;
mod supported;
mod table;
#[cfg(test)]
mod tests;

use self::format::Format;
pub(crate) use self::format::modifiers;
use self::table::Table;
use crate::{Context, Refusal, release::Release};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryKind {
    Gpu,
    ComputeApps,
    /// Processes recorded by the driver's accounting.
    AccountedApps,
    /// Retired pages of the memory.
    RetiredPages,
    /// Rows that were replaced by spare rows.
    RemappedRows,
    /// Supported pairs of memory and graphics clocks.
    SupportedClocks,
}

impl QueryKind {
    /// All queries, in the order of nvidia-smi's help.
    pub(crate) const ALL: [Self; 6] = [
        Self::Gpu,
        Self::SupportedClocks,
        Self::ComputeApps,
        Self::AccountedApps,
        Self::RetiredPages,
        Self::RemappedRows,
    ];

    /// Returns the switch that makes this query.
    pub(crate) const fn switch(self) -> &'static str {
        match self {
            Self::Gpu => "--query-gpu",
            Self::ComputeApps => "--query-compute-apps",
            Self::AccountedApps => "--query-accounted-apps",
            Self::RetiredPages => "--query-retired-pages",
            Self::RemappedRows => "--query-remapped-rows",
            Self::SupportedClocks => "--query-supported-clocks",
        }
    }

    /// Returns the switch that prints the help of this query.
    pub(crate) const fn help_switch(self) -> &'static str {
        match self {
            Self::Gpu => "--help-query-gpu",
            Self::ComputeApps => "--help-query-compute-apps",
            Self::AccountedApps => "--help-query-accounted-apps",
            Self::RetiredPages => "--help-query-retired-pages",
            Self::RemappedRows => "--help-query-remapped-rows",
            Self::SupportedClocks => "--help-query-supported-clocks",
        }
    }

    fn table(self) -> &'static Table {
        match self {
            Self::Gpu => &gpu::TABLE,
            Self::ComputeApps => &processes::TABLE,
            Self::AccountedApps => &accounted::TABLE,
            Self::RetiredPages => &retired::TABLE,
            Self::RemappedRows => &gpu::REMAPPED_ROWS,
            Self::SupportedClocks => &supported::TABLE,
        }
    }
}

/// A parsed query, which can be answered any number of times.
pub(crate) struct Request {
    table: &'static Table,
    chosen: Vec<usize>,
    format: Format,
}

/// Parses the values of `--query-...=` and `--format=`. Without a format, the output is CSV with
/// header and units. Fields of all releases are accepted here, because the release is only known
/// once the driver is open, and errors are to be found before that.
pub(crate) fn parse(
    query: QueryKind,
    fields: &str,
    format: Option<&str>,
) -> Result<Request, Refusal> {
    let table = query.table();
    let chosen = table.choose(fields)?;
    let format = Format::parse(format.unwrap_or_default())?;
    Ok(Request {
        table,
        chosen,
        format,
    })
}

pub(crate) fn help(query: QueryKind, release: Release) -> String {
    query.table().render_help(query.switch(), release)
}

/// A field's names and description, for the help.
pub struct FieldHelp {
    /// The names of the field, the main name first.
    pub names: Vec<&'static str>,
    /// The description of the field.
    pub about: &'static str,
}

/// Returns all fields of a query in any release, in the order of the help.
pub(crate) fn fields(query: QueryKind) -> Vec<FieldHelp> {
    query.table().field_help()
}

impl Request {
    /// Returns an error for the first field that this release does not have.
    pub(crate) fn check(&self, release: Release) -> Result<(), Refusal> {
        self.table.check(&self.chosen, release)
    }

    /// Returns the header line with its line ending, which is printed once. `None` if `noheader` is
    /// set.
    pub(crate) fn header(&self) -> Option<String> {
        self.format
            .header
            .then(|| self.table.format_header(&self.chosen))
    }

    /// Returns the current rows of all selected GPUs, each with its line ending. There may be no
    /// rows.
    pub(crate) fn rows(&self, context: &Context<'_>) -> String {
        self.table.rows(&self.chosen, context, self.format.units)
    }
}
