//! The lines that describe GPUs: current and recent utilization, memory, temperature, power,
//! further readings if there is room, and phrases for important states. The table prints these
//! lines, and `gpumon top` draws them.

mod arrangement;
mod cells;
mod draw;

pub(crate) use self::{
    arrangement::{Arrangement, CellWidths, LineOptions},
    cells::{GpuCells, LineContext, describe_gpu},
    draw::{GpuLines, Role},
};
