//! A model of device memory on the CPU: an account of free memory, and the driver's rules of
//! allocation. It uses no memory.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use super::{
    device::{Device, Held, Mapping, Pool, Second},
    second::Answer,
    stop::Stop,
};
use crate::{
    cuda::{CudaError, FreeMemory, PoolSize},
    protocol::DeviceName,
};

const GIB: u64 = 1 << 30;
const TOTAL_BYTES: u64 = 8 * GIB;
/// The memory that other processes use all the time.
const OTHERS_BYTES: u64 = GIB / 2;
/// The unit in which the driver allocates memory for mappings.
const GRANULARITY_BYTES: u64 = 2 << 20;
/// The limits of a block in the model (its threads, and the registers of all threads), and the
/// registers of each thread.
const MOST_THREADS: u32 = 1024;
const MOST_REGISTERS: u32 = 65_536;
const REGISTERS: u32 = 102;

/// A device that only keeps an account of its memory.
pub(crate) struct Model {
    budget: Budget,
}

/// The number of free bytes.
type Budget = Rc<Cell<u64>>;

impl Model {
    pub(crate) fn new() -> Self {
        Self {
            budget: Rc::new(Cell::new(TOTAL_BYTES - OTHERS_BYTES)),
        }
    }
}

impl Device for Model {
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

    fn free(&self) -> Result<FreeMemory, CudaError> {
        Ok(FreeMemory {
            free_bytes: self.budget.get(),
            total_bytes: TOTAL_BYTES,
        })
    }

    fn allocate(&self, bytes: u64) -> Result<Held, CudaError> {
        Ok(Box::new(Block::new(&self.budget, bytes)?))
    }

    fn pool(&self, keep_bytes: u64) -> Result<Box<dyn Pool>, CudaError> {
        Ok(Box::new(ModelPool::new(&self.budget, keep_bytes)))
    }

    fn granularity_bytes(&self) -> Result<u64, CudaError> {
        Ok(GRANULARITY_BYTES)
    }

    fn mapping(&self, _places: u64, piece_bytes: u64) -> Result<Box<dyn Mapping + '_>, CudaError> {
        Ok(Box::new(ModelMapping::new(self, piece_bytes)))
    }

    fn start(&self, threads: u32) -> Result<(), CudaError> {
        let doing = format!("start a kernel with {threads} threads in a block");
        match threads {
            _ if threads > MOST_THREADS => Err(invalid(doing)),
            _ if threads * REGISTERS > MOST_REGISTERS => Err(error(
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

    fn context_bytes(&self) -> Result<u64, CudaError> {
        Ok(0)
    }

    fn second(&self) -> Result<Box<dyn Second + '_>, Stop> {
        Ok(Box::new(ModelSecond(self)))
    }
}

struct Block {
    budget: Budget,
    bytes: u64,
}

impl Block {
    fn new(budget: &Budget, bytes: u64) -> Result<Self, CudaError> {
        let doing = format!("allocate {bytes} bytes in the model");
        if bytes == 0 {
            return Err(invalid(doing));
        }
        let left = budget.get().checked_sub(bytes);
        budget.set(left.ok_or_else(|| error(doing, 2, "OUT_OF_MEMORY", "out of memory"))?);
        Ok(Self {
            budget: Rc::clone(budget),
            bytes,
        })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.budget.set(self.budget.get() + self.bytes);
    }
}

/// A second process, which uses the same account of free memory.
struct ModelSecond<'a>(&'a Model);

impl Second for ModelSecond<'_> {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn ask(
        &mut self,
        bytes: u64,
        is_to_fit: bool,
        look: &mut dyn FnMut() -> Result<(), Stop>,
    ) -> Result<Answer, Stop> {
        look()?;
        Ok(Answer::new(self.0.free()?, bytes, is_to_fit, || {
            self.0.allocate(bytes).map(drop)
        }))
    }
}

fn invalid(doing: String) -> CudaError {
    error(doing, 1, "INVALID_VALUE", "invalid argument")
}

/// Returns an error with CUDA's name and words.
fn error(doing: String, code: i32, name: &str, text: &str) -> CudaError {
    CudaError {
        doing: doing.into(),
        code,
        name: format!("CUDA_ERROR_{name}"),
        text: text.to_owned(),
    }
}

/// A range of places, with the piece that is mapped to each.
pub(super) struct ModelMapping<'a> {
    device: &'a Model,
    piece_bytes: u64,
    pieces: Vec<Piece>,
    places: BTreeMap<u64, usize>,
}

impl<'a> ModelMapping<'a> {
    /// Creates a mapping without pieces. Each piece will have this size.
    pub(super) fn new(device: &'a Model, piece_bytes: u64) -> Self {
        Self {
            device,
            piece_bytes,
            pieces: Vec::new(),
            places: BTreeMap::new(),
        }
    }
}

/// A piece of memory. Only its first and last byte are stored.
struct Piece {
    _held: Held,
    first: u8,
    last: u8,
}

impl Mapping for ModelMapping<'_> {
    fn create(&mut self) -> Result<usize, CudaError> {
        self.pieces.push(Piece {
            _held: self.device.allocate(self.piece_bytes)?,
            first: 0,
            last: 0,
        });
        Ok(self.pieces.len() - 1)
    }

    fn map(&mut self, place: u64, piece: usize) -> Result<(), CudaError> {
        match self.places.insert(place, piece) {
            None => Ok(()),
            Some(_) => Err(invalid(format!("map behind place {place}"))),
        }
    }

    fn unmap_piece(&mut self, place: u64) -> Result<(), CudaError> {
        self.places
            .remove(&place)
            .map(drop)
            .ok_or_else(|| invalid(format!("unmap place {place}")))
    }

    fn fill(&mut self, offset_bytes: u64, bytes: u64, value: u8) -> Result<(), CudaError> {
        let end = offset_bytes + bytes;
        for place in offset_bytes / self.piece_bytes..end.div_ceil(self.piece_bytes) {
            let piece = self
                .places
                .get(&place)
                .ok_or_else(|| invalid(format!("fill place {place}")))?;
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

    fn read(&self, offset_bytes: u64) -> Result<u8, CudaError> {
        let place = offset_bytes / self.piece_bytes;
        let piece = self
            .places
            .get(&place)
            .ok_or_else(|| invalid(format!("read place {place}")))?;
        let is_first = offset_bytes.is_multiple_of(self.piece_bytes);
        Ok(if is_first {
            self.pieces[*piece].first
        } else {
            self.pieces[*piece].last
        })
    }
}

pub(super) struct ModelPool(Rc<Kept>);

impl ModelPool {
    /// Creates a pool that keeps up to this many bytes.
    pub(super) fn new(budget: &Budget, keep_bytes: u64) -> Self {
        Self(Rc::new(Kept {
            budget: Rc::clone(budget),
            keep_bytes,
            reserved: RefCell::default(),
            used_bytes: Cell::default(),
            freed_bytes: Cell::default(),
            busy_until: Cell::default(),
        }))
    }
}

struct Kept {
    budget: Budget,
    keep_bytes: u64,
    /// The blocks that the pool has allocated from the device.
    reserved: RefCell<Vec<Block>>,
    /// The allocated memory, including memory that is freed later in the stream.
    used_bytes: Cell<u64>,
    /// The memory that becomes free when the stream has finished.
    freed_bytes: Cell<u64>,
    busy_until: Cell<Option<Instant>>,
}

struct Part {
    pool: Rc<Kept>,
    bytes: u64,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.pool
            .freed_bytes
            .set(self.pool.freed_bytes.get() + self.bytes);
    }
}

impl Kept {
    fn reserved_bytes(&self) -> u64 {
        self.reserved.borrow().iter().map(|block| block.bytes).sum()
    }

    /// Releases whole blocks beyond the memory to keep.
    fn trim_to(&self, keep_bytes: u64) {
        let keep_bytes = keep_bytes.max(self.used_bytes.get());
        while self.reserved_bytes() > keep_bytes && self.reserved.borrow_mut().pop().is_some() {}
    }
}

impl Pool for ModelPool {
    fn allocate(&self, bytes: u64) -> Result<Held, CudaError> {
        let Kept {
            budget,
            reserved,
            used_bytes,
            ..
        } = self.0.as_ref();
        let cached_bytes = self.0.reserved_bytes() - used_bytes.get();
        if bytes > cached_bytes {
            let block = Block::new(budget, bytes - cached_bytes)?;
            reserved.borrow_mut().push(block);
        }
        used_bytes.set(used_bytes.get() + bytes);
        Ok(Box::new(Part {
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

    fn finish(&self) -> Result<(), CudaError> {
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
