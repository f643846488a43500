//! Scenarios about allocators: a fragmented arena and its remedy, a pool that keeps memory, and a
//! free after running work.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::{
    error::gib,
    oom::{Scenario, ScenarioContext, Stop, device::Device},
    protocol::Phase,
};

/// The number of pieces in the arena.
const PIECES: u64 = 16;
/// The last request in pieces: half of the free memory, and four times the largest free block.
const WANTED: u64 = 4;
/// The number of bytes that are written across the border of two pieces.
const ACROSS_BYTES: u64 = 4096;

pub(super) static FRAGMENT: Scenario = Scenario {
    id: "fragment",
    title: "fragmentation and its fix",
    shows: "Half of an arena is free, but a request for half of that fails: no two free blocks \
         are contiguous. Virtual memory \
        mapping serves the request from the same blocks.",
    cause: "The arena of a framework allocates contiguous address ranges. Blocks that are freed \
         between used blocks are not \
        contiguous, however large their sum. The driver's own allocations do not fragment: they \
             are mapped.",
    fixes: &[
        "PyTorch: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True maps memory instead of \
             reserving fixed segments.",
        "PyTorch: torch.cuda.empty_cache() between phases releases unused segments; \
             max_split_size_mb prevents large blocks \
         from being split.",
        "Allocate large, long-lived tensors first. Shapes that change from batch to batch \
             fragment an arena most.",
    ],
    lesson: "If \"reserved but unallocated\" memory exceeds the request, the cause is \
         fragmentation, not a lack of memory.",
    run: fragment_arena,
};

fn fragment_arena(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    let granularity_bytes = context.device.granularity_bytes()?.max(1);
    let piece_bytes = context.part_of_usable(2 * PIECES)? / granularity_bytes * granularity_bytes;
    if piece_bytes == 0 {
        context.make_sure_of(2 * PIECES * granularity_bytes)?;
    }
    context.phase(Phase::Measuring);
    fill_arena(context, piece_bytes)?;
    map_arena(context, piece_bytes)
}

/// Shows an arena with enough free memory that is not contiguous.
fn fill_arena(context: &mut ScenarioContext<'_>, piece_bytes: u64) -> Result<(), Stop> {
    let held = context.take(PIECES * piece_bytes)?;
    let mut arena = Arena::new(PIECES * piece_bytes);
    let offsets: Vec<_> = (0..PIECES)
        .filter_map(|_| arena.allocate(piece_bytes))
        .collect();
    let [all, piece, wanted] = [PIECES * piece_bytes, piece_bytes, WANTED * piece_bytes].map(gib);
    context.step(format!(
        "An arena of {all}, as in a framework, allocates {PIECES} blocks of {piece}."
    ));
    context.pause()?;
    for offset in offsets.iter().skip(1).step_by(2) {
        arena.free(*offset, piece_bytes);
    }
    let [free, largest] = [arena.free_bytes(), arena.largest_bytes()].map(gib);
    context.step(format!(
        "Every second block is freed: {free} of the arena are free, {largest} at most in a row."
    ));
    context.pause()?;
    if arena.allocate(WANTED * piece_bytes).is_some() {
        return Err(Stop::NotShown(
            "a torn arena had so much in a row".to_owned(),
        ));
    }
    context.step(format!(
        "A request for {wanted} fails: out of memory with {free} free, but not contiguous."
    ));
    context.pause()?;
    drop(held);
    Ok(())
}

/// Shows the same memory in pieces that can be mapped to any address.
fn map_arena(context: &mut ScenarioContext<'_>, piece_bytes: u64) -> Result<(), Stop> {
    let device: &dyn Device = context.device;
    context.make_sure_of(PIECES * piece_bytes)?;
    let mut mapping = device.mapping(PIECES + WANTED, piece_bytes)?;
    for place in 0..PIECES {
        let piece = mapping.create()?;
        mapping.map(place, piece)?;
        mapping.fill(place * piece_bytes, 1, mark_of(place))?;
    }
    context.leave_enough()?;
    let full_bytes = context.free()?.free_bytes;
    context.step(format!(
        "The fix: the same {PIECES} blocks, each mapped to its own address range."
    ));
    context.pause()?;
    let freed: Vec<u64> = (1..PIECES).step_by(2).collect();
    for place in &freed {
        mapping.unmap_piece(*place)?;
    }
    for (place, piece) in (PIECES..).zip(freed.iter().take(WANTED as usize)) {
        mapping.map(place, *piece as usize)?;
    }
    // A write from each piece into the next shows that the pieces are contiguous.
    let border = |place: u64| (place + 1) * piece_bytes;
    for place in PIECES..PIECES + WANTED - 1 {
        mapping.fill(
            border(place) - ACROSS_BYTES / 2,
            ACROSS_BYTES,
            mark_of(place),
        )?;
        let ends = (
            mapping.read(border(place) - 1)?,
            mapping.read(border(place))?,
        );
        if ends != (mark_of(place), mark_of(place)) {
            return Err(Stop::NotShown(
                "what was written across two pieces was not there".to_owned(),
            ));
        }
    }
    for place in (0..PIECES).step_by(2) {
        if mapping.read(place * piece_bytes)? != mark_of(place) {
            return Err(Stop::NotShown(
                "a piece that was in use has changed".to_owned(),
            ));
        }
    }
    let now_bytes = context.free()?.free_bytes;
    let wanted = gib(WANTED * piece_bytes);
    context.step(format!(
        "Every second block is freed again, and {WANTED} of them are mapped to contiguous \
             addresses: {wanted} in a row. \
         Writes across their borders are verified. No data was copied, used blocks are unchanged, \
              and {} more of the \
         device are used.",
        gib(full_bytes.saturating_sub(now_bytes))
    ));
    context.hold()
}

/// Returns the byte that is written to a place.
fn mark_of(place: u64) -> u8 {
    place as u8 + 1
}

pub(super) struct Arena {
    /// The sizes of free blocks, by their offset.
    free: BTreeMap<u64, u64>,
}

impl Arena {
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            free: BTreeMap::from([(0, bytes)]),
        }
    }

    /// Allocates contiguous bytes at the first offset with enough of them.
    pub(super) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let (&offset, &size) = self.free.iter().find(|(_, size)| **size >= bytes)?;
        self.free.remove(&offset);
        if size > bytes {
            self.free.insert(offset + bytes, size - bytes);
        }
        Some(offset)
    }

    /// Frees bytes, and joins them with free blocks on both sides.
    pub(super) fn free(&mut self, offset: u64, bytes: u64) {
        let (mut begin, mut size) = (offset, bytes);
        if let Some((&before, &own)) = self.free.range(..offset).next_back()
            && before + own == offset
        {
            (begin, size) = (before, own + size);
        }
        size += self.free.remove(&(offset + bytes)).unwrap_or(0);
        self.free.insert(begin, size);
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.free.values().sum()
    }

    /// Returns the size of the largest free block.
    fn largest_bytes(&self) -> u64 {
        self.free.values().copied().max().unwrap_or(0)
    }
}

pub(super) static CACHE: Scenario = Scenario {
    id: "cache",
    title: "an allocator cache that keeps freed memory",
    shows: "Frees all arrays of a program, yet the device stays as full as before: the memory \
         pool keeps freed memory until \
        it is trimmed.",
    cause: "Allocations from the driver are slow, so that frameworks cache freed memory for \
         reuse. nvidia-smi and other \
        programs see it as used.",
    fixes: &[
        "PyTorch: torch.cuda.empty_cache() releases the cache; memory_reserved() minus \
             memory_allocated() is its size.",
        "CuPy: cupy.get_default_memory_pool().free_all_blocks().",
        "JAX: XLA_PYTHON_CLIENT_ALLOCATOR=platform caches nothing, and is slow; \
             XLA_PYTHON_CLIENT_MEM_FRACTION limits the pool.",
        "CUDA: cuMemPoolTrimTo, or a release threshold with cuMemPoolSetAttribute.",
    ],
    lesson: "Memory that is used on the device is not necessarily used by arrays. A cache must \
         release it before other programs can use it.",
    run: keep_freed,
};

fn keep_freed(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    // The pool allocates whole pieces, and the other half of the memory has room for the rest of a
    // piece.
    let bytes = context.part_of_usable(2)?;
    context.phase(Phase::Measuring);
    let pool = context.device.pool(u64::MAX)?;
    context.make_sure_of(bytes)?;
    let array = pool.allocate(bytes)?;
    pool.finish()?;
    context.leave_enough()?;
    let free = gib(context.free()?.free_bytes);
    context.step(format!(
        "An array of {} is allocated from a pool: {free} of the device are free.",
        gib(bytes)
    ));
    context.pause()?;
    drop(array);
    pool.finish()?;
    let size = pool.size()?;
    let free = gib(context.free()?.free_bytes);
    let [used, kept] = [size.used_bytes, size.reserved_bytes].map(gib);
    context.step(format!(
        "The array is freed: {used} are in use, the pool keeps {kept}, and still {free} are free."
    ));
    if size.used_bytes > 0 || size.reserved_bytes < bytes {
        return Err(Stop::NotShown(format!(
            "the pool keeps {kept} with {used} in use"
        )));
    }
    context.hold()?;
    pool.trim()?;
    let size = pool.size()?;
    let free = gib(context.free()?.free_bytes);
    let kept = gib(size.reserved_bytes);
    context.step(format!(
        "The pool is trimmed: it keeps {kept}, and {free} are free, for anybody."
    ));
    if size.reserved_bytes >= bytes {
        return Err(Stop::NotShown(format!("the pool still keeps {kept}")));
    }
    context.pause()
}

/// The maximum time for which the stream is kept busy: long enough to be noticed, and too short to
/// freeze a display for long.
const BUSY: Duration = Duration::from_secs(1);

pub(super) static ASYNC: Scenario = Scenario {
    id: "async",
    title: "asynchronous free",
    shows: "Frees memory behind running work in a stream. The call returns at once; the memory is \
         free when the work is done.",
    cause: "cuMemFreeAsync, and every framework that uses it, frees in stream order. Until the \
         device reaches that point, \
        earlier work may still read the memory.",
    fixes: &[
        "Synchronize the stream before you read free memory, or before another program needs it: \
             torch.cuda.synchronize(), \
         cupy.cuda.Stream.null.synchronize(), jax.block_until_ready(x).",
        "Within the same stream no action is needed: the next allocation follows the free, and \
             reuses the memory.",
        "PyTorch: PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync frees in stream order; tensors \
             that another stream uses need \
         tensor.record_stream(stream).",
    ],
    lesson: "The host runs ahead of the device: memory that the host has freed becomes free on \
         the device later.",
    run: free_later,
};

fn free_later(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    let bytes = context.part_of_usable(4)?;
    let busy = context.hold_time().min(BUSY);
    context.phase(Phase::Measuring);
    let pool = context.device.pool(0)?;
    let before_bytes = context.free()?.free_bytes;
    context.make_sure_of(bytes)?;
    let array = pool.allocate(bytes)?;
    pool.finish()?;
    context.leave_enough()?;
    let taken_bytes = context.free()?.free_bytes;
    let free = gib(taken_bytes);
    context.step(format!(
        "An array of {}, and {:.1} s of work in the same stream: {free} are free.",
        gib(bytes),
        busy.as_secs_f64()
    ));
    pool.keep_busy(busy)?;
    let begun = Instant::now();
    drop(array);
    let call_us = begun.elapsed().as_secs_f64() * 1e6;
    // Free memory is read in the middle of the work.
    context.wait(busy / 2)?;
    let during_bytes = context.free()?.free_bytes;
    context.step(format!(
        "The free returns after {call_us:.0} us. While the work runs, {} are free.",
        gib(during_bytes)
    ));
    pool.finish()?;
    let end_bytes = context.free()?.free_bytes;
    let ms = begun.elapsed().as_millis();
    context.step(format!(
        "The stream completes {ms} ms after the call: {} are free.",
        gib(end_bytes)
    ));
    // Others may allocate or free memory meanwhile, and pools allocate in pieces. Half of the array
    // is enough to distinguish the cases.
    if during_bytes > taken_bytes + bytes / 2 {
        return Err(Stop::NotShown(
            "the memory was free before the work was done".to_owned(),
        ));
    }
    if end_bytes + bytes / 2 < before_bytes {
        return Err(Stop::NotShown(
            "the memory was not free when the work was done".to_owned(),
        ));
    }
    context.pause()
}

#[cfg(test)]
mod arena_tests {
    use super::*;

    #[test]
    fn fragmented_arena_refuses_large_block() {
        let mut arena = Arena::new(80);
        let offsets: Vec<_> = (0..8).filter_map(|_| arena.allocate(10)).collect();
        assert_eq!((offsets.len(), arena.allocate(1)), (8, None));
        for offset in offsets.iter().step_by(2) {
            arena.free(*offset, 10);
        }
        assert_eq!(
            (
                arena.free_bytes(),
                arena.largest_bytes(),
                arena.allocate(20)
            ),
            (40, 10, None)
        );
        // Adjacent free blocks are joined.
        arena.free(10, 10);
        assert_eq!((arena.largest_bytes(), arena.allocate(30)), (30, Some(0)));
        arena.free(0, 30);
        arena.free(30, 10);
        assert_eq!(arena.largest_bytes(), 50);
    }
}
