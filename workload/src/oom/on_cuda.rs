//! A GPU's memory, as used by demonstrations.

use std::{ffi::OsString, rc::Rc, time::Duration};

use super::{
    device::{Allocation, DemoDevice, DemoPool, Mapping, SecondProcess},
    second::SecondChild,
    stop::DemoError,
};
use crate::{
    cuda::{
        self, AddressRange, Argument, Code, CudaError, FreeMemory, Grid, PhysicalMemory, PoolSize,
    },
    gpu::Gpu,
    kernels::ptx,
    protocol::DeviceName,
};

const KERNELS: Code = ptx!("oom");
/// The memory in bytes that a process uses for its context on a large GPU. On a small GPU, it is
/// less.
const CONTEXT_BYTES: u64 = 768 << 20;

/// The share of the total memory that the driver may use in addition to requests is one divided by
/// this number. Page tables are far smaller.
const OVERHEAD_DIVISOR: u64 = 512;
/// The memory in bytes that is needed to use each kind of memory once.
const WARM_BYTES: u64 = 64 << 20;

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
            code: gpu.context.load_module(KERNELS)?,
        };
        if gpu.memory_budget()?.usable_bytes() < WARM_BYTES {
            return Ok(new);
        }
        // Each kind of memory is used once before a demonstration, because the driver keeps what it
        // allocates at the first use. If an older driver lacks a function, the scenarios that need
        // it report this.
        new.launch_kernel(1)?;
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

    fn free_memory(&self) -> Result<FreeMemory, CudaError> {
        self.gpu.context.memory()
    }

    /// Makes the driver release small freed pieces that it still keeps. This is done by requesting
    /// more memory than exists.
    fn release_driver_memory(&self) {
        if let Ok(FreeMemory { total_bytes, .. }) = self.free_memory() {
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

    fn launch_kernel(&self, threads: u32) -> Result<(), CudaError> {
        let kernel = self.code.find_kernel("oom_registers")?;
        let out = self.gpu.context.allocate(size_of::<f32>() as u64)?;
        let grid = Grid { blocks: 1, threads };
        self.gpu
            .stream
            .run(|queue| queue.launch(&kernel, grid, &[Argument::Out(&out), Argument::U64(1)]))?;
        Ok(())
    }

    fn overhead_bytes(&self) -> Result<u64, CudaError> {
        Ok(self.free_memory()?.total_bytes / OVERHEAD_DIVISOR)
    }

    fn context_bytes(&self) -> Result<u64, CudaError> {
        Ok(CONTEXT_BYTES.min(self.free_memory()?.total_bytes / 32))
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
