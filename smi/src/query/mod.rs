//! The selective queries, `--query-gpu` and its siblings: chosen fields as comma-separated values.
//!
//! A field is one entry in the table of its subject: its names, its unit, what it means and how its
//! cell is read. What can be asked, the header, the rows and the help all come from these tables.

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
    /// Processes of which the driver kept accounts.
    AccountedApps,
    /// Pages that were taken out of use.
    RetiredPages,
    /// Rows that were replaced by spare ones.
    RemappedRows,
    /// Pairs of clocks that can be set.
    SupportedClocks,
}

impl QueryKind {
    /// Every one, in the order of nvidia-smi's help.
    pub(crate) const ALL: [Self; 6] = [
        Self::Gpu,
        Self::SupportedClocks,
        Self::ComputeApps,
        Self::AccountedApps,
        Self::RetiredPages,
        Self::RemappedRows,
    ];

    /// The switch that asks it.
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

    /// The switch for its help.
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

/// A query that can be answered as often as one likes.
pub(crate) struct Request {
    table: &'static Table,
    chosen: Vec<usize>,
    format: Format,
}

/// Reads what stands behind `--query-...=` and `--format=`. Without a format it is CSV, with
/// everything. Fields of all releases are known here: which one runs is told by the driver, which
/// is not opened for what is wrong anyway.
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

/// A field of a query as it can be asked for: its names, its own first, and what it means.
pub struct FieldHelp {
    /// Its names, its own first.
    pub names: Vec<&'static str>,
    /// What it means.
    pub about: &'static str,
}

/// Every field of a query in any release, in the order of its help.
pub(crate) fn fields(query: QueryKind) -> Vec<FieldHelp> {
    query.table().field_help()
}

impl Request {
    /// Fails with the first field that this release does not have.
    pub(crate) fn check(&self, release: Release) -> Result<(), Refusal> {
        self.table.check(&self.chosen, release)
    }

    /// The line above the rows, to be printed once, with its end of line; `None` where `noheader`
    /// was asked for.
    pub(crate) fn header(&self) -> Option<String> {
        self.format
            .header
            .then(|| self.table.format_header(&self.chosen))
    }

    /// The rows of all selected GPUs as they are now, each with its end of line. There may be none.
    pub(crate) fn rows(&self, context: &Context<'_>) -> String {
        self.table.rows(&self.chosen, context, self.format.units)
    }
}
