//! The memory of a GPU, for demonstrations.

use std::{ffi::OsString, rc::Rc, time::Duration};

use super::{
    device::{Device, Held, Mapping, Pool, Second},
    second::Child,
    stop::Stop,
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
/// The memory that a process uses on a large GPU for its context. On a small GPU, it is less.
const CONTEXT_BYTES: u64 = 768 << 20;

/// The divisor of the total memory for what the driver may use in addition to requests. Page tables
/// are far smaller.
const OVERHEAD: u64 = 512;
/// The memory that is needed to use each kind of memory once.
const WARM_BYTES: u64 = 64 << 20;

pub(crate) struct OnCuda<'a> {
    gpu: &'a Gpu,
    second: &'a [OsString],
    /// The code, which stays loaded as long as this exists.
    code: Rc<cuda::Module>,
}

impl<'a> OnCuda<'a> {
    pub(crate) fn new(gpu: &'a Gpu, second: &'a [OsString]) -> Result<Self, CudaError> {
        let new = Self {
            gpu,
            second,
            code: gpu.context.load(KERNELS)?,
        };
        if gpu.memory_budget()?.usable_bytes() < WARM_BYTES {
            return Ok(new);
        }
        // The driver keeps what it allocates at the first use of each kind of memory, so this is
        // done before a demonstration. An older driver lacks some functions, which is reported by
        // the scenarios that need them.
        new.start(1)?;
        let warm = |pool: Box<dyn Pool>| {
            pool.allocate(1).map(drop)?;
            pool.keep_busy(Duration::from_nanos(1))?;
            pool.finish()
        };
        let _ = new.pool(0).and_then(warm);
        let _ = new
            .granularity_bytes()
            .and_then(|bytes| new.mapping(1, bytes)?.create());
        Ok(new)
    }
}

impl Device for OnCuda<'_> {
    fn name(&self) -> DeviceName {
        self.gpu.device().into()
    }

    fn is_model(&self) -> bool {
        false
    }

    fn free(&self) -> Result<FreeMemory, CudaError> {
        self.gpu.context.memory()
    }

    /// Makes the driver release the small freed pieces that it keeps, by requesting more memory
    /// than exists.
    fn settle(&self) {
        if let Ok(FreeMemory { total_bytes, .. }) = self.free() {
            let _ = self.gpu.context.allocate(total_bytes + total_bytes / 8);
        }
    }

    fn allocate(&self, bytes: u64) -> Result<Held, CudaError> {
        Ok(Box::new(self.gpu.context.allocate(bytes)?))
    }

    fn pool(&self, keep_bytes: u64) -> Result<Box<dyn Pool>, CudaError> {
        let pool = cuda::Pool::new(&self.gpu.context, keep_bytes)?;
        Ok(Box::new(CudaPool {
            pool,
            code: Rc::clone(&self.code),
        }))
    }

    fn granularity_bytes(&self) -> Result<u64, CudaError> {
        PhysicalMemory::granularity_bytes(&self.gpu.context)
    }

    fn mapping(&self, places: u64, piece_bytes: u64) -> Result<Box<dyn Mapping + '_>, CudaError> {
        let range = AddressRange::new(&self.gpu.context, places * piece_bytes)?;
        Ok(Box::new(CudaMapping {
            gpu: self.gpu,
            range,
            piece_bytes,
            pieces: Vec::new(),
        }))
    }

    fn start(&self, threads: u32) -> Result<(), CudaError> {
        let kernel = self.code.kernel("oom_registers")?;
        let out = self.gpu.context.allocate(size_of::<f32>() as u64)?;
        let grid = Grid { blocks: 1, threads };
        self.gpu
            .stream
            .run(|queue| queue.launch(&kernel, grid, &[Argument::Out(&out), Argument::U64(1)]))?;
        Ok(())
    }

    fn overhead_bytes(&self) -> Result<u64, CudaError> {
        Ok(self.free()?.total_bytes / OVERHEAD)
    }

    fn context_bytes(&self) -> Result<u64, CudaError> {
        Ok(CONTEXT_BYTES.min(self.free()?.total_bytes / 32))
    }

    fn second(&self) -> Result<Box<dyn Second + '_>, Stop> {
        Ok(Box::new(Child::start(
            self.second,
            &self.gpu.device().uuid,
        )?))
    }
}

/// A pool, with the code that keeps its stream busy.
struct CudaPool {
    pool: Rc<cuda::Pool>,
    code: Rc<cuda::Module>,
}

impl Pool for CudaPool {
    fn allocate(&self, bytes: u64) -> Result<Held, CudaError> {
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
            .start(self.code.kernel("oom_wait")?, time.as_nanos() as u64)
    }

    fn finish(&self) -> Result<(), CudaError> {
        self.pool.finish()
    }
}

/// A range of addresses, with pieces of memory for it.
struct CudaMapping<'a> {
    gpu: &'a Gpu,
    range: AddressRange,
    piece_bytes: u64,
    pieces: Vec<Rc<PhysicalMemory>>,
}

impl Mapping for CudaMapping<'_> {
    fn create(&mut self) -> Result<usize, CudaError> {
        self.pieces
            .push(PhysicalMemory::new(&self.gpu.context, self.piece_bytes)?);
        Ok(self.pieces.len() - 1)
    }

    fn map(&mut self, place: u64, piece: usize) -> Result<(), CudaError> {
        self.range
            .map(place * self.piece_bytes, &self.pieces[piece])
    }

    fn unmap_piece(&mut self, place: u64) -> Result<(), CudaError> {
        self.range.unmap(place * self.piece_bytes)
    }

    fn fill(&mut self, offset_bytes: u64, bytes: u64, value: u8) -> Result<(), CudaError> {
        self.range
            .fill(&self.gpu.stream, offset_bytes, bytes, value)
    }

    fn read(&self, offset_bytes: u64) -> Result<u8, CudaError> {
        let mut byte = [0];
        self.range.read(&self.gpu.stream, offset_bytes, &mut byte)?;
        Ok(byte[0])
    }
}
