//! The memory that something is shown on, whether a GPU's or a model's. Whatever is refused is
//! refused in CUDA's words.

use std::{any::Any, time::Duration};

use super::{second::Answer, stop::Stop};
use crate::{
    cuda::{CudaError, FreeMemory, PoolSize},
    protocol::DeviceName,
};

/// Memory that is given back when it is dropped.
pub(crate) type Held = Box<dyn Any>;

pub(crate) trait Device {
    fn name(&self) -> DeviceName;
    fn is_model(&self) -> bool;
    fn free(&self) -> Result<FreeMemory, CudaError>;

    /// Lets go of what only the driver keeps, so that what is free can be compared.
    fn settle(&self) {}

    fn allocate(&self, bytes: u64) -> Result<Held, CudaError>;

    /// A pool that keeps up to so many bytes.
    fn pool(&self, keep_bytes: u64) -> Result<Box<dyn Pool>, CudaError>;

    /// What pieces of a mapping are multiples of, in bytes.
    fn granularity_bytes(&self) -> Result<u64, CudaError>;

    /// So many places of this size, behind which pieces of memory can be put.
    fn mapping(&self, places: u64, piece_bytes: u64) -> Result<Box<dyn Mapping + '_>, CudaError>;

    /// Runs a kernel whose threads have 102 registers each, with so many of them in its one block.
    fn start(&self, threads: u32) -> Result<(), CudaError>;

    /// What the driver may take beside what it is asked for, as for tables of pages, in bytes.
    fn overhead_bytes(&self) -> Result<u64, CudaError>;

    /// What another process takes of the device by being there, in bytes.
    fn context_bytes(&self) -> Result<u64, CudaError>;
    fn second(&self) -> Result<Box<dyn Second + '_>, Stop>;
}

/// Memory that is handed out, and taken back, in the order of a stream.
pub(crate) trait Pool {
    fn allocate(&self, bytes: u64) -> Result<Held, CudaError>;
    fn size(&self) -> Result<PoolSize, CudaError>;

    /// Gives the device back what is not handed out.
    fn trim(&self) -> Result<(), CudaError>;

    /// Keeps the stream busy for so long, and does not wait for it.
    fn keep_busy(&self, time: Duration) -> Result<(), CudaError>;
    fn finish(&self) -> Result<(), CudaError>;
}

/// Places in a row of addresses, and pieces of memory that can be behind them.
pub(crate) trait Mapping {
    /// One more piece, whose number it gives.
    fn create(&mut self) -> Result<usize, CudaError>;
    fn map(&mut self, place: u64, piece: usize) -> Result<(), CudaError>;
    fn unmap_piece(&mut self, place: u64) -> Result<(), CudaError>;
    fn fill(&mut self, offset_bytes: u64, bytes: u64, value: u8) -> Result<(), CudaError>;
    fn read(&self, offset_bytes: u64) -> Result<u8, CudaError>;
}

pub(crate) trait Second {
    /// As the system counts it; `None` in a model.
    fn pid(&self) -> Option<u32>;

    /// Has it ask for so much, and give that back at once where it gets it. `is_to_fit` keeps it
    /// from asking for what others are to have. While it is waited for, `look` is called again and
    /// again, and its error ends that.
    fn ask(
        &mut self,
        bytes: u64,
        is_to_fit: bool,
        look: &mut dyn FnMut() -> Result<(), Stop>,
    ) -> Result<Answer, Stop>;
}
