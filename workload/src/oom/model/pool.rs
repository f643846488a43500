//! The model's pools.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use super::{Block, Budget};
use crate::{
    cuda::{CudaError, PoolSize},
    oom::device::{Held, Pool},
};

pub(super) struct ModelPool(Rc<Kept>);

impl ModelPool {
    /// One that keeps up to so many bytes.
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
    /// Taken from the device.
    reserved: RefCell<Vec<Block>>,
    /// Handed out.
    used_bytes: Cell<u64>,
    /// Freed, when the stream has come so far.
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

    /// Gives back whole blocks beyond what is to be kept.
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
