//! What one picture hands on to the next one in its place, so that no value jumps: how wide each
//! column has been.

use super::processes::Widths;
use crate::gpu_lines::CellWidths;

/// The widths so far. A column that was once wide stays so.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnWidths {
    pub(super) gpus: CellWidths,
    pub(super) processes: Widths,
}
