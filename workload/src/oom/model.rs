//! A model of device memory on the CPU. It keeps account of the free memory and follows the
//! driver's allocation rules, but allocates no memory itself.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use super::{
    device::{Allocation, DemoDevice, DemoError, DemoPool, Mapping, SecondProcess},
    second_process::MemoryResponse,
};
use crate::{
    cuda::{CudaError, FreeMemory, PoolSize},
    protocol::DeviceName,
};

const GIB: u64 = 1 << 30;
const TOTAL_BYTES: u64 = 8 * GIB;
/// The memory in bytes that other processes are assumed to use all the time.
const OTHERS_BYTES: u64 = GIB / 2;
/// The granularity of mapped memory in bytes.
const GRANULARITY_BYTES: u64 = 2 << 20;
/// The maximum number of threads in a block. `MAX_REGISTERS` limits the registers of all threads in
/// a block. Each thread uses `REGISTERS_PER_THREAD`.
const MAX_THREADS: u32 = 1024;
const MAX_REGISTERS: u32 = 65_536;
const REGISTERS_PER_THREAD: u32 = 102;

/// A simulated device that only keeps account of its free memory.
pub(crate) struct ModelDevice {
    budget: FreeBytes,
}

/// The number of free bytes, shared by all allocations of the device.
type FreeBytes = Rc<Cell<u64>>;

impl ModelDevice {
    pub(crate) fn new() -> Self {
        Self {
            budget: Rc::new(Cell::new(TOTAL_BYTES - OTHERS_BYTES)),
        }
    }
}

impl DemoDevice for ModelDevice {
    fn name(&self) -> DeviceName {
        let name = format!(
            "a model of a GPU with {} GiB, on the CPU",
            TOTAL_BYTES / GIB
        );
        DeviceName {
            index: None,
            name,
            uuid: None,
        }
    }

    fn is_model(&self) -> bool {
        true
    }

    fn read_free_memory(&self) -> Result<FreeMemory, CudaError> {
        Ok(FreeMemory {
            free_bytes: self.budget.get(),
            total_bytes: TOTAL_BYTES,
        })
    }

    fn allocate(&self, bytes: u64) -> Result<Allocation, CudaError> {
        Ok(Box::new(ModelBlock::new(&self.budget, bytes)?))
    }

    fn create_pool(&self, keep_bytes: u64) -> Result<Box<dyn DemoPool>, CudaError> {
        Ok(Box::new(ModelPool::new(&self.budget, keep_bytes)))
    }

    fn granularity_bytes(&self) -> Result<u64, CudaError> {
        Ok(GRANULARITY_BYTES)
    }

    fn create_mapping(
        &self,
        _places: u64,
        piece_bytes: u64,
    ) -> Result<Box<dyn Mapping + '_>, CudaError> {
        Ok(Box::new(ModelMapping::new(self, piece_bytes)))
    }

    fn launch_register_heavy_kernel(&self, threads: u32) -> Result<(), CudaError> {
        let doing = format!("start a kernel with {threads} threads per block");
        match threads {
            _ if threads > MAX_THREADS => Err(invalid_value_error(doing)),
            _ if threads * REGISTERS_PER_THREAD > MAX_REGISTERS => Err(cuda_error(
                doing,
                701,
                "LAUNCH_OUT_OF_RESOURCES",
                "too many resources requested for launch",
            )),
            _ => Ok(()),
        }
    }

    fn overhead_bytes(&self) -> Result<u64, CudaError> {
        Ok(0)
    }

    fn second_process_context_bytes(&self) -> Result<u64, CudaError> {
        Ok(0)
    }

    fn start_second_process(&self) -> Result<Box<dyn SecondProcess + '_>, DemoError> {
        Ok(Box::new(ModelSecondProcess(self)))
    }
}

struct ModelBlock {
    budget: FreeBytes,
    bytes: u64,
}

impl ModelBlock {
    fn new(budget: &FreeBytes, bytes: u64) -> Result<Self, CudaError> {
        let doing = format!("allocate {bytes} bytes in the model");
        if bytes == 0 {
            return Err(invalid_value_error(doing));
        }
        let left = budget.get().checked_sub(bytes);
        budget.set(left.ok_or_else(|| cuda_error(doing, 2, "OUT_OF_MEMORY", "out of memory"))?);
        Ok(Self {
            budget: Rc::clone(budget),
            bytes,
        })
    }
}

impl Drop for ModelBlock {
    fn drop(&mut self) {
        self.budget.set(self.budget.get() + self.bytes);
    }
}

/// A simulated second process, which shares the device's account of free memory.
struct ModelSecondProcess<'a>(&'a ModelDevice);

impl SecondProcess for ModelSecondProcess<'_> {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn request_memory(
        &mut self,
        bytes: u64,
        is_to_fit: bool,
        look: &mut dyn FnMut() -> Result<(), DemoError>,
    ) -> Result<MemoryResponse, DemoError> {
        look()?;
        Ok(MemoryResponse::new(
            self.0.read_free_memory()?,
            bytes,
            is_to_fit,
            || self.0.allocate(bytes).map(drop),
        ))
    }
}

fn invalid_value_error(doing: String) -> CudaError {
    cuda_error(doing, 1, "INVALID_VALUE", "invalid argument")
}

/// Returns an error with the name and description that CUDA uses.
fn cuda_error(doing: String, code: i32, name: &str, text: &str) -> CudaError {
    CudaError {
        doing: doing.into(),
        code,
        name: format!("CUDA_ERROR_{name}"),
        text: text.to_owned(),
    }
}

/// A simulated address range: for each place, the piece that is mapped to it.
pub(super) struct ModelMapping<'a> {
    device: &'a ModelDevice,
    piece_bytes: u64,
    pieces: Vec<Piece>,
    places: BTreeMap<u64, usize>,
}

impl<'a> ModelMapping<'a> {
    /// Creates a mapping without pieces. Each piece that is created later has the size
    /// `piece_bytes`.
    pub(super) fn new(device: &'a ModelDevice, piece_bytes: u64) -> Self {
        Self {
            device,
            piece_bytes,
            pieces: Vec::new(),
            places: BTreeMap::new(),
        }
    }
}

/// A simulated piece of memory. Only its first and last byte are stored.
struct Piece {
    _held: Allocation,
    first: u8,
    last: u8,
}

impl Mapping for ModelMapping<'_> {
    fn create_piece(&mut self) -> Result<usize, CudaError> {
        self.pieces.push(Piece {
            _held: self.device.allocate(self.piece_bytes)?,
            first: 0,
            last: 0,
        });
        Ok(self.pieces.len() - 1)
    }

    fn map_piece(&mut self, place: u64, piece: usize) -> Result<(), CudaError> {
        match self.places.insert(place, piece) {
            None => Ok(()),
            Some(_) => Err(invalid_value_error(format!("map memory at place {place}"))),
        }
    }

    fn unmap_piece(&mut self, place: u64) -> Result<(), CudaError> {
        self.places
            .remove(&place)
            .map(drop)
            .ok_or_else(|| invalid_value_error(format!("unmap place {place}")))
    }

    fn fill(&mut self, offset_bytes: u64, bytes: u64, value: u8) -> Result<(), CudaError> {
        let end = offset_bytes + bytes;
        for place in offset_bytes / self.piece_bytes..end.div_ceil(self.piece_bytes) {
            let piece = self
                .places
                .get(&place)
                .ok_or_else(|| invalid_value_error(format!("fill place {place}")))?;
            let (begin, piece) = (place * self.piece_bytes, &mut self.pieces[*piece]);
            if offset_bytes <= begin {
                piece.first = value;
            }
            if end >= begin + self.piece_bytes {
                piece.last = value;
            }
        }
        Ok(())
    }

    fn read_byte(&self, offset_bytes: u64) -> Result<u8, CudaError> {
        let place = offset_bytes / self.piece_bytes;
        let piece = self
            .places
            .get(&place)
            .ok_or_else(|| invalid_value_error(format!("read place {place}")))?;
        let is_first = offset_bytes.is_multiple_of(self.piece_bytes);
        Ok(if is_first {
            self.pieces[*piece].first
        } else {
            self.pieces[*piece].last
        })
    }
}

pub(super) struct ModelPool(Rc<PoolState>);

impl ModelPool {
    /// Creates a pool that keeps up to `keep_bytes` of free memory.
    pub(super) fn new(budget: &FreeBytes, keep_bytes: u64) -> Self {
        Self(Rc::new(PoolState {
            budget: Rc::clone(budget),
            keep_bytes,
            reserved: RefCell::default(),
            used_bytes: Cell::default(),
            freed_bytes: Cell::default(),
            busy_until: Cell::default(),
        }))
    }
}

struct PoolState {
    budget: FreeBytes,
    keep_bytes: u64,
    /// The blocks that the pool has allocated from the device.
    reserved: RefCell<Vec<ModelBlock>>,
    /// The allocated memory in bytes, including memory that will be freed later in the stream.
    used_bytes: Cell<u64>,
    /// The memory in bytes that will be free when the stream has finished.
    freed_bytes: Cell<u64>,
    busy_until: Cell<Option<Instant>>,
}

struct PoolAllocation {
    pool: Rc<PoolState>,
    bytes: u64,
}

impl Drop for PoolAllocation {
    fn drop(&mut self) {
        self.pool
            .freed_bytes
            .set(self.pool.freed_bytes.get() + self.bytes);
    }
}

impl PoolState {
    fn reserved_bytes(&self) -> u64 {
        self.reserved.borrow().iter().map(|block| block.bytes).sum()
    }

    /// Releases whole blocks until the reserved memory is at most `keep_bytes` or the memory in
    /// use, whichever is larger.
    fn trim_to(&self, keep_bytes: u64) {
        let keep_bytes = keep_bytes.max(self.used_bytes.get());
        while self.reserved_bytes() > keep_bytes && self.reserved.borrow_mut().pop().is_some() {}
    }
}

impl DemoPool for ModelPool {
    fn allocate(&self, bytes: u64) -> Result<Allocation, CudaError> {
        let PoolState {
            budget,
            reserved,
            used_bytes,
            ..
        } = self.0.as_ref();
        let cached_bytes = self.0.reserved_bytes() - used_bytes.get();
        if bytes > cached_bytes {
            let block = ModelBlock::new(budget, bytes - cached_bytes)?;
            reserved.borrow_mut().push(block);
        }
        used_bytes.set(used_bytes.get() + bytes);
        Ok(Box::new(PoolAllocation {
            pool: Rc::clone(&self.0),
            bytes,
        }))
    }

    fn size(&self) -> Result<PoolSize, CudaError> {
        Ok(PoolSize {
            reserved_bytes: self.0.reserved_bytes(),
            used_bytes: self.0.used_bytes.get(),
        })
    }

    fn trim(&self) -> Result<(), CudaError> {
        self.0.trim_to(0);
        Ok(())
    }

    fn keep_busy(&self, time: Duration) -> Result<(), CudaError> {
        self.0.busy_until.set(Some(Instant::now() + time));
        Ok(())
    }

    fn wait_until_finished(&self) -> Result<(), CudaError> {
        if let Some(end) = self.0.busy_until.take() {
            thread::sleep(end.saturating_duration_since(Instant::now()));
        }
        self.0
            .used_bytes
            .set(self.0.used_bytes.get() - self.0.freed_bytes.take());
        self.0.trim_to(self.0.keep_bytes);
        Ok(())
    }
}
