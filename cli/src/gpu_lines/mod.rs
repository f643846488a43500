//! The lines of GPUs: utilization with its last minute, memory, temperature, power, further
//! readings if there is room, and important states in words. The table prints them, and `gpumon
//! top` draws them.

mod arrangement;
mod cells;
mod draw;
mod further;

pub(crate) use self::{
    arrangement::{Arrangement, CellWidths, LineOptions},
    cells::{Context, GpuCells, describe_gpu},
    draw::{GpuLines, Role},
};
