//! Conversion of nvidia-smi's CSV output into records, for hosts without gpumon.
//!
//! [`columns`] lists the queried fields, [`cell`] parses values, and [`processes`] parses process
//! lists. [`gpu`] keeps a GPU's state from one row to the next, and [`Converter`] converts lines
//! into records. Values that nvidia-smi's CSV does not contain are absent, with the reason.

mod cell;
mod columns;
mod converter;
mod gpu;
mod processes;
#[cfg(test)]
mod tests;

pub use converter::Converter;

/// Returns the field names for `--query-gpu`. The remote command omits those that the host's driver
/// does not support.
pub(super) fn list_query_fields() -> Vec<&'static str> {
    columns::COLUMNS.iter().map(|(name, _)| *name).collect()
}
