//! The column widths of a table, which are kept from one update to the next so that no value moves.

use super::processes::Widths;
use crate::gpu_lines::CellWidths;

/// The largest widths of all updates so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnWidths {
    pub(super) gpus: CellWidths,
    pub(super) processes: Widths,
}
