//! The memory that a demonstration uses, which is that of a GPU or of a model. Both report errors
//! in CUDA's words.

use std::{any::Any, time::Duration};

use super::{second::Answer, stop::Stop};
use crate::{
    cuda::{CudaError, FreeMemory, PoolSize},
    protocol::DeviceName,
};

/// Memory that is released when this is dropped.
pub(crate) type Held = Box<dyn Any>;

pub(crate) trait Device {
    fn name(&self) -> DeviceName;
    fn is_model(&self) -> bool;
    fn free(&self) -> Result<FreeMemory, CudaError>;

    /// Releases memory that only the driver keeps, so that free memory can be compared.
    fn settle(&self) {}

    fn allocate(&self, bytes: u64) -> Result<Held, CudaError>;

    /// Creates a pool that keeps up to this many bytes.
    fn pool(&self, keep_bytes: u64) -> Result<Box<dyn Pool>, CudaError>;

    /// Returns the granularity in bytes: the pieces of a mapping must be multiples of it.
    fn granularity_bytes(&self) -> Result<u64, CudaError>;

    /// Reserves places of this size, to which pieces of memory can be mapped.
    fn mapping(&self, places: u64, piece_bytes: u64) -> Result<Box<dyn Mapping + '_>, CudaError>;

    /// Runs a kernel that uses 102 registers per thread, in one block with this many threads.
    fn start(&self, threads: u32) -> Result<(), CudaError>;

    /// Returns the memory that the driver may use in addition to requests, such as for page tables,
    /// in bytes.
    fn overhead_bytes(&self) -> Result<u64, CudaError>;

    /// Returns the memory that another process uses just for its context, in bytes.
    fn context_bytes(&self) -> Result<u64, CudaError>;
    fn second(&self) -> Result<Box<dyn Second + '_>, Stop>;
}

/// A pool of memory that is allocated and freed in the order of a stream.
pub(crate) trait Pool {
    fn allocate(&self, bytes: u64) -> Result<Held, CudaError>;
    fn size(&self) -> Result<PoolSize, CudaError>;

    /// Releases all memory that is not allocated.
    fn trim(&self) -> Result<(), CudaError>;

    /// Keeps the stream busy for this time, without waiting for it.
    fn keep_busy(&self, time: Duration) -> Result<(), CudaError>;
    fn finish(&self) -> Result<(), CudaError>;
}

/// A range of places, and pieces of memory that can be mapped to them.
pub(crate) trait Mapping {
    /// Creates another piece, and returns its number.
    fn create(&mut self) -> Result<usize, CudaError>;
    fn map(&mut self, place: u64, piece: usize) -> Result<(), CudaError>;
    fn unmap_piece(&mut self, place: u64) -> Result<(), CudaError>;
    fn fill(&mut self, offset_bytes: u64, bytes: u64, value: u8) -> Result<(), CudaError>;
    fn read(&self, offset_bytes: u64) -> Result<u8, CudaError>;
}

pub(crate) trait Second {
    /// Returns the process ID; `None` in a model.
    fn pid(&self) -> Option<u32>;

    /// Makes the process request memory, which it releases at once if the request succeeds. With
    /// `is_to_fit`, it does not request memory that must stay free for others. While waiting,
    /// `look` is called repeatedly, and an error of it ends the wait.
    fn ask(
        &mut self,
        bytes: u64,
        is_to_fit: bool,
        look: &mut dyn FnMut() -> Result<(), Stop>,
    ) -> Result<Answer, Stop>;
}
