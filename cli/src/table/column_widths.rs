//! The column widths that each update of a table passes on to the next one, so that no value moves.

use super::processes::Widths;
use crate::gpu_lines::CellWidths;

/// The widths so far. Columns never become narrower.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnWidths {
    pub(super) gpus: CellWidths,
    pub(super) processes: Widths,
}
