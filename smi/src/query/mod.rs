//! The options that query selected fields, such as `--query-gpu`. They print comma-separated
//! values.
//!
//! Each field is an entry in the table of its query, with its names, unit, description, and the
//! function that formats its cells. The accepted names, the header, the rows, and the help are all
//! generated from these tables.

mod cell;
mod gpu;
mod lists;
mod table;

use self::table::Table;
use crate::{Context, Refusal, release::Release};

pub(crate) use self::table::FieldHelp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryKind {
    Gpu,
    ComputeApps,
    /// The processes in the driver's accounting.
    AccountedApps,
    /// The memory pages that have been retired.
    RetiredPages,
    /// The memory rows that have been replaced by spare rows.
    RemappedRows,
    /// The supported combinations of memory and graphics clocks.
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

    /// Returns the command-line option for this query.
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

    /// Returns the command-line option that prints this query's help.
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
            Self::Gpu => &gpu::GPUS,
            Self::ComputeApps => &lists::COMPUTE_PROCESSES,
            Self::AccountedApps => &lists::ACCOUNTED_PROCESSES,
            Self::RetiredPages => &lists::RETIRED_PAGES,
            Self::RemappedRows => &gpu::REMAPPED_ROWS,
            Self::SupportedClocks => &lists::SUPPORTED_CLOCKS,
        }
    }
}

/// A parsed query, which can be executed any number of times.
pub(crate) struct Request {
    table: &'static Table,
    chosen: Vec<usize>,
    format: Format,
}

/// Parses the values of `--query-...=` and `--format=`. Without a format, the output is CSV with a
/// header and units. Fields of every release are accepted, because the driver's release is not yet
/// known: the arguments are checked before the driver is opened.
pub(crate) fn parse_request(
    query: QueryKind,
    fields: &str,
    format: Option<&str>,
) -> Result<Request, Refusal> {
    let table = query.table();
    let chosen = table.find_fields(fields)?;
    let format = Format::parse(format.unwrap_or_default())?;
    Ok(Request {
        table,
        chosen,
        format,
    })
}

pub(crate) fn render_help(query: QueryKind, release: Release) -> String {
    query.table().render_help(query.switch(), release)
}

/// Returns all fields of a query, regardless of the release, in the order of the help.
pub(crate) fn list_fields(query: QueryKind) -> Vec<FieldHelp> {
    query.table().list_field_help()
}

impl Request {
    /// Returns an error if the query contains a field that `release` does not support. The error is
    /// about the first such field.
    pub(crate) fn check_release(&self, release: Release) -> Result<(), Refusal> {
        self.table.check_release(&self.chosen, release)
    }

    /// Returns the header line, including its line break, or `None` if `noheader` is set. The
    /// header is printed only once.
    pub(crate) fn format_header(&self) -> Option<String> {
        self.format
            .header
            .then(|| self.table.format_header(&self.chosen))
    }

    /// Returns the current rows of all selected GPUs, including their line breaks. There may be no
    /// rows at all.
    pub(crate) fn render_rows(&self, context: &Context<'_>) -> String {
        self.table
            .render_rows(&self.chosen, context, self.format.units)
    }
}

/// The effects of the modifiers that `--format=` accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Format {
    /// Whether the output starts with a line of field names.
    header: bool,
    /// Whether values are followed by their units. The header always contains the units.
    units: bool,
}

type ApplyModifier = fn(&mut Format);

/// The modifiers and their effects. `csv` has no effect, because it is the default.
const FORMAT_MODIFIERS: [(&str, ApplyModifier); 3] = [
    ("csv", |_| {}),
    ("noheader", |format| format.header = false),
    ("nounits", |format| format.units = false),
];

pub(crate) fn list_format_modifiers() -> impl Iterator<Item = &'static str> {
    FORMAT_MODIFIERS.iter().map(|(modifier, _)| *modifier)
}

impl Format {
    /// Parses modifiers in any order, ignoring empty ones. `csv` is optional because it is the only
    /// format.
    fn parse(modifiers: &str) -> Result<Self, Refusal> {
        let mut format = Self {
            header: true,
            units: true,
        };
        for typed in modifiers.split(',').filter(|modifier| !modifier.is_empty()) {
            let known = FORMAT_MODIFIERS
                .iter()
                .find(|(modifier, _)| *modifier == typed);
            let (_, set) =
                known.ok_or_else(|| Refusal::new(2, "Format modifier is not recognized.\n"))?;
            set(&mut format);
        }
        Ok(format)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod format_tests {
    use super::*;

    #[test]
    fn modifiers_parse_in_any_order() {
        let read = |text: &str| Format::parse(text).map(|format| (format.header, format.units));
        for everything in ["", "csv", "csv,", ",csv", "csv,csv"] {
            assert_eq!(read(everything), Ok((true, true)), "{everything}");
        }
        assert_eq!(read("csv,noheader"), Ok((false, true)));
        assert_eq!(read("noheader"), Ok((false, true)));
        assert_eq!(read("nounits"), Ok((true, false)));
        assert_eq!(read("nounits,noheader,csv"), Ok((false, false)));
    }

    #[test]
    fn unknown_modifier_is_refused() {
        for wrong in [
            "CSV",
            "csv, noheader",
            "csv noheader",
            "csv,no_header",
            "xml",
            " csv",
            " ",
        ] {
            let refusal = Format::parse(wrong).unwrap_err();
            assert_eq!(
                (refusal.code, refusal.text.as_str()),
                (2, "Format modifier is not recognized.\n"),
                "{wrong}"
            );
        }
    }
}
