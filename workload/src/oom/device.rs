//! The memory that a demonstration uses: that of a GPU, or of a model. Both report errors with
//! CUDA's names and descriptions. This file implements the memory of a GPU.

use std::{any::Any, ffi::OsString, rc::Rc, time::Duration};

use super::second_process::{MemoryResponse, SecondChild};
use crate::{
    cuda::{
        self, AddressRange, Argument, Code, CudaError, FreeMemory, Grid, PhysicalMemory, PoolSize,
    },
    error::format_gib,
    gpu::Gpu,
    kernels::ptx,
    protocol::{
        DeviceName,
        report::{EXIT_FAILED, EXIT_INTERRUPTED, EXIT_REFUSED},
    },
};

/// Allocated memory, which is released when dropped.
pub(crate) type Allocation = Box<dyn Any>;

pub(crate) trait DemoDevice {
    fn name(&self) -> DeviceName;
    fn is_model(&self) -> bool;
    fn read_free_memory(&self) -> Result<FreeMemory, CudaError>;

    /// Releases memory that the driver keeps although it is not in use, so that values of free
    /// memory can be compared.
    fn release_driver_memory(&self) {}

    fn allocate(&self, bytes: u64) -> Result<Allocation, CudaError>;

    /// Creates a pool that keeps up to `keep_bytes` of free memory.
    fn create_pool(&self, keep_bytes: u64) -> Result<Box<dyn DemoPool>, CudaError>;

    /// Returns the granularity in bytes. The sizes of a mapping's pieces must be multiples of it.
    fn granularity_bytes(&self) -> Result<u64, CudaError>;

    /// Reserves an address range that is divided into this number of places. A piece of memory of
    /// `piece_bytes` can be mapped to each place.
    fn create_mapping(
        &self,
        places: u64,
        piece_bytes: u64,
    ) -> Result<Box<dyn Mapping + '_>, CudaError>;

    /// Runs a kernel that uses 102 registers per thread. It is launched as one block with this
    /// number of threads.
    fn launch_register_heavy_kernel(&self, threads: u32) -> Result<(), CudaError>;

    /// Returns the memory that the driver may use in addition to the requested memory, for example
    /// for page tables, in bytes.
    fn overhead_bytes(&self) -> Result<u64, CudaError>;

    /// Returns the memory that a second process uses only for its context, in bytes.
    fn second_process_context_bytes(&self) -> Result<u64, CudaError>;
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
    /// immediately. If `is_to_fit` is set, the request is only made if it leaves the reserve for
    /// others free. While waiting, `look` is called repeatedly. If it returns an error, the wait
    /// ends.
    fn request_memory(
        &mut self,
        bytes: u64,
        is_to_fit: bool,
        look: &mut dyn FnMut() -> Result<(), DemoError>,
    ) -> Result<MemoryResponse, DemoError>;
}

/// The reason why a demonstration was not completed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum DemoError {
    #[error(transparent)]
    Cuda(#[from] CudaError),
    #[error(
        "the demo needs {} of device memory, but only {} are available: {} of {} are free, and {} \
         stay free for others; try again when other processes have freed memory",
        format_gib(*.needed_bytes), format_gib(*.usable_bytes), format_gib(*.free_bytes), format_gib(*.total_bytes), format_gib(*.reserve_bytes)
    )]
    NoRoom {
        needed_bytes: u64,
        usable_bytes: u64,
        free_bytes: u64,
        total_bytes: u64,
        reserve_bytes: u64,
    },
    #[error(
        "another program allocated memory in the meantime: only {} remained of the {} that must \
         stay free for others, so the demo freed all its memory; try again when the other program \
         has ended",
        format_gib(*.free_bytes), format_gib(*.reserve_bytes)
    )]
    BackedOff { free_bytes: u64, reserve_bytes: u64 },
    #[error("the second process {0}")]
    Second(String),
    #[error(
        "the demo did not go as expected: {0}; another program may have allocated or freed memory \
         in the meantime"
    )]
    NotShown(String),
    #[error("interrupted")]
    Interrupted,
}

impl DemoError {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NoRoom { .. } | Self::BackedOff { .. } => EXIT_REFUSED,
            Self::Interrupted => EXIT_INTERRUPTED,
            Self::Cuda(_) | Self::Second(_) | Self::NotShown(_) => EXIT_FAILED,
        }
    }
}

const KERNELS: Code = ptx!("oom");
/// The memory in bytes that a process uses for its context on a large GPU. On a small GPU, it is
/// less.
const CONTEXT_BYTES: u64 = 768 << 20;

/// The divisor of the total memory. The driver may use the resulting amount in addition to
/// requests. Page tables are far smaller.
const OVERHEAD_DIVISOR: u64 = 512;
/// The memory in bytes needed to use each kind of memory once before a demonstration.
const WARM_BYTES: u64 = 64 << 20;

/// A GPU's memory, as used by demonstrations.
pub(crate) struct CudaDevice<'a> {
    gpu: &'a Gpu,
    second: &'a [OsString],
    /// The module with the kernels of the demonstrations. It stays loaded as long as this device
    /// exists.
    code: Rc<cuda::Module>,
}

impl<'a> CudaDevice<'a> {
    pub(crate) fn new(gpu: &'a Gpu, second: &'a [OsString]) -> Result<Self, CudaError> {
        let new = Self {
            gpu,
            second,
            code: cuda::Module::load(&gpu.context, KERNELS)?,
        };
        if gpu.memory_budget()?.usable_bytes() < WARM_BYTES {
            return Ok(new);
        }
        // Each kind of memory is used once before a demonstration, because the driver allocates
        // memory at the first use and keeps it. An older driver may lack a function. The scenarios
        // that need the function report this.
        new.launch_register_heavy_kernel(1)?;
        let warm = |pool: Box<dyn DemoPool>| {
            pool.allocate(1).map(drop)?;
            pool.keep_busy(Duration::from_nanos(1))?;
            pool.wait_until_finished()
        };
        let _ = new.create_pool(0).and_then(warm);
        let _ = new
            .granularity_bytes()
            .and_then(|bytes| new.create_mapping(1, bytes)?.create_piece());
        Ok(new)
    }
}

impl DemoDevice for CudaDevice<'_> {
    fn name(&self) -> DeviceName {
        self.gpu.device().into()
    }

    fn is_model(&self) -> bool {
        false
    }

    fn read_free_memory(&self) -> Result<FreeMemory, CudaError> {
        self.gpu.context.read_free_memory()
    }

    /// Requests more memory than exists. The request fails, but makes the driver release small
    /// freed pieces that it still keeps.
    fn release_driver_memory(&self) {
        if let Ok(FreeMemory { total_bytes, .. }) = self.read_free_memory() {
            let _ = self.gpu.context.allocate(total_bytes + total_bytes / 8);
        }
    }

    fn allocate(&self, bytes: u64) -> Result<Allocation, CudaError> {
        Ok(Box::new(self.gpu.context.allocate(bytes)?))
    }

    fn create_pool(&self, keep_bytes: u64) -> Result<Box<dyn DemoPool>, CudaError> {
        let pool = cuda::Pool::new(&self.gpu.context, keep_bytes)?;
        Ok(Box::new(CudaPool {
            pool,
            code: Rc::clone(&self.code),
        }))
    }

    fn granularity_bytes(&self) -> Result<u64, CudaError> {
        PhysicalMemory::granularity_bytes(&self.gpu.context)
    }

    fn create_mapping(
        &self,
        places: u64,
        piece_bytes: u64,
    ) -> Result<Box<dyn Mapping + '_>, CudaError> {
        let range = AddressRange::new(&self.gpu.context, places * piece_bytes)?;
        Ok(Box::new(CudaMapping {
            gpu: self.gpu,
            range,
            piece_bytes,
            pieces: Vec::new(),
        }))
    }

    fn launch_register_heavy_kernel(&self, threads: u32) -> Result<(), CudaError> {
        let kernel = self.code.find_kernel("oom_registers")?;
        let out = self.gpu.context.allocate(size_of::<f32>() as u64)?;
        let grid = Grid { blocks: 1, threads };
        self.gpu
            .stream
            .run(|queue| queue.launch(&kernel, grid, &[Argument::Out(&out), Argument::U64(1)]))?;
        Ok(())
    }

    fn overhead_bytes(&self) -> Result<u64, CudaError> {
        Ok(self.read_free_memory()?.total_bytes / OVERHEAD_DIVISOR)
    }

    fn second_process_context_bytes(&self) -> Result<u64, CudaError> {
        Ok(CONTEXT_BYTES.min(self.read_free_memory()?.total_bytes / 32))
    }

    fn start_second_process(&self) -> Result<Box<dyn SecondProcess + '_>, DemoError> {
        Ok(Box::new(SecondChild::start(
            self.second,
            &self.gpu.device().uuid,
        )?))
    }
}

/// A memory pool, and the code that keeps its stream busy.
struct CudaPool {
    pool: Rc<cuda::Pool>,
    code: Rc<cuda::Module>,
}

impl DemoPool for CudaPool {
    fn allocate(&self, bytes: u64) -> Result<Allocation, CudaError> {
        Ok(Box::new(self.pool.allocate(bytes)?))
    }

    fn size(&self) -> Result<PoolSize, CudaError> {
        self.pool.size()
    }

    fn trim(&self) -> Result<(), CudaError> {
        self.pool.trim()
    }

    fn keep_busy(&self, time: Duration) -> Result<(), CudaError> {
        self.pool
            .launch(self.code.find_kernel("oom_wait")?, time.as_nanos() as u64)
    }

    fn wait_until_finished(&self) -> Result<(), CudaError> {
        self.pool.wait_until_finished()
    }
}

/// A range of device addresses, and the pieces of memory that can be mapped to it.
struct CudaMapping<'a> {
    gpu: &'a Gpu,
    range: AddressRange,
    piece_bytes: u64,
    pieces: Vec<Rc<PhysicalMemory>>,
}

impl Mapping for CudaMapping<'_> {
    fn create_piece(&mut self) -> Result<usize, CudaError> {
        self.pieces
            .push(PhysicalMemory::new(&self.gpu.context, self.piece_bytes)?);
        Ok(self.pieces.len() - 1)
    }

    fn map_piece(&mut self, place: u64, piece: usize) -> Result<(), CudaError> {
        self.range
            .map_memory(place * self.piece_bytes, &self.pieces[piece])
    }

    fn unmap_piece(&mut self, place: u64) -> Result<(), CudaError> {
        self.range.unmap_memory(place * self.piece_bytes)
    }

    fn fill(&mut self, offset_bytes: u64, bytes: u64, value: u8) -> Result<(), CudaError> {
        self.range
            .fill(&self.gpu.stream, offset_bytes, bytes, value)
    }

    fn read_byte(&self, offset_bytes: u64) -> Result<u8, CudaError> {
        let mut byte = [0];
        self.range.read(&self.gpu.stream, offset_bytes, &mut byte)?;
        Ok(byte[0])
    }
}
