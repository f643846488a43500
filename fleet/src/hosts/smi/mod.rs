//! Records of what nvidia-smi writes as CSV, for hosts without gpumon.
//!
//! [`columns`] are what it is asked for, [`cell`] is what stands in one, [`processes`] is who
//! computes; [`gpu`] remembers a GPU between two rows, and [`Converter`] makes records of lines.
//! What CSV does not have is absent and says so.

mod cell;
mod columns;
mod converter;
mod gpu;
mod processes;
#[cfg(test)]
mod tests;

pub use converter::Converter;

/// The fields that `--query-gpu` is asked for, as far as a driver has them.
pub(super) fn fields() -> Vec<&'static str> {
    columns::COLUMNS.iter().map(|(name, _)| *name).collect()
}
