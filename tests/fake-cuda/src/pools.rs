//! Memory pools. A pool takes large pieces of memory from the device, and allocations follow the
//! order of a stream.

use std::collections::BTreeMap;

use crate::{
    code::{Code, Outcome},
    state::State,
};

/// The minimum size of a piece, as in the real driver.
const MIN_PIECE_BYTES: usize = 32 << 20;

/// All pools by handle (starting at 1), and the blocks that were allocated from them.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    made: usize,
    all: BTreeMap<usize, Pool>,
    /// The pool and the size of each block, by address.
    blocks: BTreeMap<usize, (usize, usize)>,
}

#[derive(Debug)]
pub(crate) struct Pool {
    device: u32,
    /// The memory in bytes that the pool keeps when a stream is synchronized.
    pub(crate) threshold: u64,
    pub(crate) reserved: usize,
    pub(crate) used: usize,
}

impl Pools {
    pub(crate) fn create_pool(&mut self, device: u32) -> usize {
        self.made += 1;
        self.all.insert(
            self.made,
            Pool {
                device,
                threshold: 0,
                reserved: 0,
                used: 0,
            },
        );
        self.made
    }

    pub(crate) fn find_pool(&mut self, pool: usize) -> Outcome<&mut Pool> {
        self.all.get_mut(&pool).ok_or(Code::INVALID_VALUE)
    }
}

impl State {
    /// Allocates memory from a pool, which grows if necessary.
    pub(crate) fn allocate_from_pool(&mut self, handle: usize, bytes: usize) -> Outcome<usize> {
        self.check_usable()?;
        let &mut Pool {
            device,
            reserved,
            used,
            ..
        } = self.pools.find_pool(handle)?;
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let lacking = bytes
            .saturating_sub(reserved - used)
            .next_multiple_of(MIN_PIECE_BYTES);
        self.take_memory(Some(device), lacking)?;
        let place = self
            .allocate_block(Some(device), bytes)
            .inspect_err(|_| self.release_memory(Some(device), lacking))?;
        let pool = self.pools.find_pool(handle)?;
        pool.reserved += lacking;
        pool.used += bytes;
        self.pools.blocks.insert(place, (handle, bytes));
        Ok(place)
    }

    pub(crate) fn belongs_to_pool(&self, place: usize) -> bool {
        self.pools.blocks.contains_key(&place)
    }

    /// Returns a block to its pool. The pool keeps the memory.
    pub(crate) fn return_to_pool(&mut self, place: usize) {
        if let Some((handle, bytes)) = self.pools.blocks.remove(&place) {
            self.free_block(place)
                .expect("each allocation must have an address");
            self.pools
                .find_pool(handle)
                .expect("a pool must outlive its allocations")
                .used -= bytes;
        }
    }

    /// Releases the memory above the threshold of every pool.
    pub(crate) fn trim_pools(&mut self) {
        let handles: Vec<_> = self.pools.all.keys().copied().collect();
        for handle in handles {
            let threshold = self.pools.all[&handle].threshold;
            self.trim_pool(handle, threshold)
                .expect("the pool must be in the list");
        }
    }

    /// Releases the unused memory of a pool, except for `keep_bytes` that the pool keeps.
    pub(crate) fn trim_pool(&mut self, handle: usize, keep_bytes: u64) -> Outcome {
        let pool = self.pools.find_pool(handle)?;
        let needed = pool
            .used
            .max(usize::try_from(keep_bytes).unwrap_or(usize::MAX))
            .checked_next_multiple_of(MIN_PIECE_BYTES);
        let surplus = pool.reserved.saturating_sub(needed.unwrap_or(usize::MAX));
        pool.reserved -= surplus;
        let device = pool.device;
        if surplus > 0 {
            self.release_memory(Some(device), surplus);
        }
        Ok(())
    }

    /// Destroys a pool without allocated blocks.
    pub(crate) fn destroy_pool(&mut self, handle: usize) -> Outcome {
        if self.pools.find_pool(handle)?.used > 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.trim_pool(handle, 0)?;
        self.pools.all.remove(&handle);
        Ok(())
    }
}
