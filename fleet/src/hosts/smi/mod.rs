//! Conversion of nvidia-smi's CSV into records, for hosts without gpumon.
//!
//! [`columns`] lists the queried fields, [`cell`] parses values, and [`processes`] lists processes.
//! [`gpu`] keeps the state of a GPU between two rows, and [`Converter`] converts lines into
//! records. Values that CSV lacks are absent, with the reason.

mod cell;
mod columns;
mod converter;
mod gpu;
mod processes;
#[cfg(test)]
mod tests;

pub use converter::Converter;

/// Returns the fields for `--query-gpu`. The remote command omits those that the driver does not
/// know.
pub(super) fn fields() -> Vec<&'static str> {
    columns::COLUMNS.iter().map(|(name, _)| *name).collect()
}
