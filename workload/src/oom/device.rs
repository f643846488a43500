//! The memory that a demonstration uses: that of a GPU, or of a model. Both report errors with
//! CUDA's names and descriptions.

use std::{any::Any, time::Duration};

use super::{second::MemoryResponse, stop::DemoError};
use crate::{
    cuda::{CudaError, FreeMemory, PoolSize},
    protocol::DeviceName,
};

/// Allocated memory, which is released when dropped.
pub(crate) type Allocation = Box<dyn Any>;

pub(crate) trait DemoDevice {
    fn name(&self) -> DeviceName;
    fn is_model(&self) -> bool;
    fn free_memory(&self) -> Result<FreeMemory, CudaError>;

    /// Releases memory that the driver keeps although it is not in use, so that values of free
    /// memory can be compared.
    fn release_driver_memory(&self) {}

    fn allocate(&self, bytes: u64) -> Result<Allocation, CudaError>;

    /// Creates a pool that keeps up to `keep_bytes` of free memory.
    fn create_pool(&self, keep_bytes: u64) -> Result<Box<dyn DemoPool>, CudaError>;

    /// Returns the granularity in bytes. The sizes of a mapping's pieces must be multiples of it.
    fn granularity_bytes(&self) -> Result<u64, CudaError>;

    /// Reserves an address range with this number of places. A piece of memory of `piece_bytes` can
    /// be mapped to each place.
    fn create_mapping(
        &self,
        places: u64,
        piece_bytes: u64,
    ) -> Result<Box<dyn Mapping + '_>, CudaError>;

    /// Runs a kernel that uses 102 registers per thread. It is launched as one block with this
    /// number of threads.
    fn launch_kernel(&self, threads: u32) -> Result<(), CudaError>;

    /// Returns the memory that the driver may use in addition to the requested memory, for example
    /// for page tables, in bytes.
    fn overhead_bytes(&self) -> Result<u64, CudaError>;

    /// Returns the memory that a second process uses only for its context, in bytes.
    fn context_bytes(&self) -> Result<u64, CudaError>;
    fn start_second_process(&self) -> Result<Box<dyn SecondProcess + '_>, DemoError>;
}

/// A memory pool, whose memory is allocated and freed in stream order.
pub(crate) trait DemoPool {
    fn allocate(&self, bytes: u64) -> Result<Allocation, CudaError>;
    fn size(&self) -> Result<PoolSize, CudaError>;

    /// Releases all memory of the pool that is not allocated.
    fn trim(&self) -> Result<(), CudaError>;

    /// Keeps the stream busy for this time, without waiting for it.
    fn keep_busy(&self, time: Duration) -> Result<(), CudaError>;
    fn wait_until_finished(&self) -> Result<(), CudaError>;
}

/// A range of places to which pieces of memory can be mapped.
pub(crate) trait Mapping {
    /// Allocates another piece of memory, and returns its number.
    fn create_piece(&mut self) -> Result<usize, CudaError>;
    fn map_piece(&mut self, place: u64, piece: usize) -> Result<(), CudaError>;
    fn unmap_piece(&mut self, place: u64) -> Result<(), CudaError>;
    fn fill(&mut self, offset_bytes: u64, bytes: u64, value: u8) -> Result<(), CudaError>;
    fn read_byte(&self, offset_bytes: u64) -> Result<u8, CudaError>;
}

pub(crate) trait SecondProcess {
    /// Returns the process ID, or `None` if the process is simulated.
    fn pid(&self) -> Option<u32>;

    /// Makes the second process request memory. If the request succeeds, the memory is released
    /// immediately. If `is_to_fit` is set, memory that must stay free for others is not requested.
    /// While waiting, `look` is called repeatedly. If it returns an error, the wait ends.
    fn request_memory(
        &mut self,
        bytes: u64,
        is_to_fit: bool,
        look: &mut dyn FnMut() -> Result<(), DemoError>,
    ) -> Result<MemoryResponse, DemoError>;
}
