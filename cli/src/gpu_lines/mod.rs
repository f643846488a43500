//! The lines of GPUs: utilization with its last minute, memory, temperature, power, further
//! readings where there is room, and in words what a person should know. The table prints them,
//! `gpumon top` draws them.

mod arrangement;
mod cells;
mod draw;
mod further;

pub(crate) use self::{
    arrangement::{Arrangement, CellWidths, LineOptions},
    cells::{Context, GpuCells, describe_gpu},
    draw::{GpuLines, Role},
};
