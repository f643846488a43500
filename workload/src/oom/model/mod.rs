//! A model of a device's memory on the CPU: a budget, and the rules by which the driver gives and takes. It holds no
//! memory at all.

mod mapping;
mod pool;

use std::{cell::Cell, rc::Rc};

use self::{mapping::ModelMapping, pool::ModelPool};
use super::{
    device::{Device, Held, Mapping, Pool, Second},
    second::Answer,
    stop::Stop,
};
use crate::{
    cuda::{CudaError, FreeMemory},
    protocol::DeviceName,
};

const GIB: u64 = 1 << 30;
const TOTAL_BYTES: u64 = 8 * GIB;
/// What others hold of it all the time.
const OTHERS_BYTES: u64 = GIB / 2;
/// What the driver hands out memory for mappings in.
const GRANULARITY_BYTES: u64 = 2 << 20;
/// Threads of a block at most, and registers that all of them have.
const MOST_THREADS: u32 = 1024;
const MOST_REGISTERS: u32 = 65_536;
const REGISTERS: u32 = 102;

/// A device that has nothing but accounts.
pub(crate) struct Model {
    budget: Budget,
}

/// What is free.
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

/// Another process, which has the same budget.
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

/// As CUDA has it.
fn error(doing: String, code: i32, name: &str, text: &str) -> CudaError {
    CudaError {
        doing: doing.into(),
        code,
        name: format!("CUDA_ERROR_{name}"),
        text: text.to_owned(),
    }
}
