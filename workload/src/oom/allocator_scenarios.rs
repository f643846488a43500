//! Scenarios about allocators: a fragmented arena and its remedy, a pool that keeps freed memory,
//! and memory that is freed only after running work has finished.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::{
    error::format_gib,
    oom::{DemoError, Scenario, ScenarioContext, device::DemoDevice},
    protocol::Phase,
};

/// The number of pieces in the arena.
const PIECES: u64 = 16;
/// The number of pieces in the last request. This is half of the free memory, but four times the
/// largest free block.
const WANTED_PIECES: u64 = 4;
/// The number of bytes written across the boundary between two pieces.
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

fn fragment_arena(context: &mut ScenarioContext<'_>) -> Result<(), DemoError> {
    let granularity_bytes = context.device.granularity_bytes()?.max(1);
    let piece_bytes = context.usable_part(2 * PIECES)? / granularity_bytes * granularity_bytes;
    if piece_bytes == 0 {
        context.check_free_memory(2 * PIECES * granularity_bytes)?;
    }
    context.report_phase(Phase::Measuring);
    show_fragmentation_failure(context, piece_bytes)?;
    show_mapped_pieces(context, piece_bytes)
}

/// Demonstrates an arena that has enough free memory for a request, but not in one block.
fn show_fragmentation_failure(
    context: &mut ScenarioContext<'_>,
    piece_bytes: u64,
) -> Result<(), DemoError> {
    let held = context.allocate(PIECES * piece_bytes)?;
    let mut arena = Arena::new(PIECES * piece_bytes);
    let offsets: Vec<_> = (0..PIECES)
        .filter_map(|_| arena.allocate(piece_bytes))
        .collect();
    let [all, piece, wanted] = [
        PIECES * piece_bytes,
        piece_bytes,
        WANTED_PIECES * piece_bytes,
    ]
    .map(format_gib);
    context.report_step(format!(
        "An arena of {all}, as in a framework, allocates {PIECES} blocks of {piece}."
    ));
    context.pause_between_steps()?;
    for offset in offsets.iter().skip(1).step_by(2) {
        arena.free(*offset, piece_bytes);
    }
    let [free, largest] = [arena.free_bytes(), arena.largest_bytes()].map(format_gib);
    context.report_step(format!(
        "Every second block is freed: {free} of the arena are free, but at most {largest} are \
         contiguous."
    ));
    context.pause_between_steps()?;
    if arena.allocate(WANTED_PIECES * piece_bytes).is_some() {
        return Err(DemoError::NotShown(
            "the fragmented arena had enough contiguous memory".to_owned(),
        ));
    }
    context.report_step(format!(
        "A request for {wanted} fails: out of memory with {free} free, but not contiguous."
    ));
    context.pause_between_steps()?;
    drop(held);
    Ok(())
}

/// Demonstrates the remedy: the same memory in pieces that can be mapped to any address.
fn show_mapped_pieces(
    context: &mut ScenarioContext<'_>,
    piece_bytes: u64,
) -> Result<(), DemoError> {
    let device: &dyn DemoDevice = context.device;
    context.check_free_memory(PIECES * piece_bytes)?;
    let mut mapping = device.create_mapping(PIECES + WANTED_PIECES, piece_bytes)?;
    for place in 0..PIECES {
        let piece = mapping.create_piece()?;
        mapping.map_piece(place, piece)?;
        mapping.fill(place * piece_bytes, 1, place_marker(place))?;
    }
    context.check_reserve_is_free()?;
    let full_bytes = context.read_free_memory()?.free_bytes;
    context.report_step(format!(
        "The fix: the same {PIECES} blocks, each mapped to its own address range."
    ));
    context.pause_between_steps()?;
    let freed: Vec<u64> = (1..PIECES).step_by(2).collect();
    for place in &freed {
        mapping.unmap_piece(*place)?;
    }
    for (place, piece) in (PIECES..).zip(freed.iter().take(WANTED_PIECES as usize)) {
        mapping.map_piece(place, *piece as usize)?;
    }
    // Each write crosses the boundary between two pieces, which shows that they are contiguous.
    let border = |place: u64| (place + 1) * piece_bytes;
    for place in PIECES..PIECES + WANTED_PIECES - 1 {
        mapping.fill(
            border(place) - ACROSS_BYTES / 2,
            ACROSS_BYTES,
            place_marker(place),
        )?;
        let ends = (
            mapping.read_byte(border(place) - 1)?,
            mapping.read_byte(border(place))?,
        );
        if ends != (place_marker(place), place_marker(place)) {
            return Err(DemoError::NotShown(
                "data that was written across two blocks could not be read back".to_owned(),
            ));
        }
    }
    for place in (0..PIECES).step_by(2) {
        if mapping.read_byte(place * piece_bytes)? != place_marker(place) {
            return Err(DemoError::NotShown(
                "the content of a used block has changed".to_owned(),
            ));
        }
    }
    let now_bytes = context.read_free_memory()?.free_bytes;
    let wanted = format_gib(WANTED_PIECES * piece_bytes);
    context.report_step(format!(
        "Every second block is freed again, and {WANTED_PIECES} of them are mapped to \
         contiguous addresses, {wanted} in total. Writes across the block boundaries are \
         verified. No data was copied, used blocks are unchanged, and the memory in use on the \
         device grew by {}.",
        format_gib(full_bytes.saturating_sub(now_bytes))
    ));
    context.hold_memory()
}

/// Returns the byte that is written to the piece at this place.
fn place_marker(place: u64) -> u8 {
    place as u8 + 1
}

pub(super) struct Arena {
    /// The sizes of the free blocks, by offset.
    free: BTreeMap<u64, u64>,
}

impl Arena {
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            free: BTreeMap::from([(0, bytes)]),
        }
    }

    /// Allocates a contiguous block at the first offset that has enough free bytes.
    pub(super) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let (&offset, &size) = self.free.iter().find(|(_, size)| **size >= bytes)?;
        self.free.remove(&offset);
        if size > bytes {
            self.free.insert(offset + bytes, size - bytes);
        }
        Some(offset)
    }

    /// Frees a block, and merges it with adjacent free blocks.
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
    cause: "Allocations from the driver are slow, so frameworks cache freed memory for reuse. \
            nvidia-smi and other programs report this memory as used.",
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
    run: show_cached_memory,
};

fn show_cached_memory(context: &mut ScenarioContext<'_>) -> Result<(), DemoError> {
    // The array uses only half of the usable memory, because the pool rounds its allocations up to
    // whole pieces.
    let bytes = context.usable_part(2)?;
    context.report_phase(Phase::Measuring);
    let pool = context.device.create_pool(u64::MAX)?;
    context.check_free_memory(bytes)?;
    let array = pool.allocate(bytes)?;
    pool.wait_until_finished()?;
    context.check_reserve_is_free()?;
    let free = format_gib(context.read_free_memory()?.free_bytes);
    context.report_step(format!(
        "An array of {} is allocated from a pool: {free} of the device are free.",
        format_gib(bytes)
    ));
    context.pause_between_steps()?;
    drop(array);
    pool.wait_until_finished()?;
    let size = pool.size()?;
    let free = format_gib(context.read_free_memory()?.free_bytes);
    let [used, kept] = [size.used_bytes, size.reserved_bytes].map(format_gib);
    context.report_step(format!(
        "The array is freed: {used} are in use, but the pool keeps {kept}, and still only {free} \
         are free."
    ));
    if size.used_bytes > 0 || size.reserved_bytes < bytes {
        return Err(DemoError::NotShown(format!(
            "the pool keeps {kept} with {used} in use"
        )));
    }
    context.hold_memory()?;
    pool.trim()?;
    let size = pool.size()?;
    let free = format_gib(context.read_free_memory()?.free_bytes);
    let kept = format_gib(size.reserved_bytes);
    context.report_step(format!(
        "The pool is trimmed: it keeps {kept}, and {free} are free for all programs."
    ));
    if size.reserved_bytes >= bytes {
        return Err(DemoError::NotShown(format!("the pool still keeps {kept}")));
    }
    context.pause_between_steps()
}

/// The maximum time for which the stream is kept busy: long enough to be noticed, and too short to
/// freeze a display for long.
const MAX_BUSY_DURATION: Duration = Duration::from_secs(1);

pub(super) static ASYNC: Scenario = Scenario {
    id: "async",
    title: "asynchronous free",
    shows: "Frees memory in a stream in which earlier work is still running. The call returns at \
            once; the memory is free when the work is done.",
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
    run: show_delayed_free,
};

fn show_delayed_free(context: &mut ScenarioContext<'_>) -> Result<(), DemoError> {
    let bytes = context.usable_part(4)?;
    let busy = context.hold_time().min(MAX_BUSY_DURATION);
    context.report_phase(Phase::Measuring);
    let pool = context.device.create_pool(0)?;
    let before_bytes = context.read_free_memory()?.free_bytes;
    context.check_free_memory(bytes)?;
    let array = pool.allocate(bytes)?;
    pool.wait_until_finished()?;
    context.check_reserve_is_free()?;
    let taken_bytes = context.read_free_memory()?.free_bytes;
    let free = format_gib(taken_bytes);
    context.report_step(format!(
        "An array of {}, and {:.1} s of work in the same stream: {free} are free.",
        format_gib(bytes),
        busy.as_secs_f64()
    ));
    pool.keep_busy(busy)?;
    let begun = Instant::now();
    drop(array);
    let call_us = begun.elapsed().as_secs_f64() * 1e6;
    // The free memory is read halfway through the work.
    context.wait(busy / 2)?;
    let during_bytes = context.read_free_memory()?.free_bytes;
    context.report_step(format!(
        "The call to free the array returns after {call_us:.0} us. While the work runs, {} are \
         free.",
        format_gib(during_bytes)
    ));
    pool.wait_until_finished()?;
    let end_bytes = context.read_free_memory()?.free_bytes;
    let ms = begun.elapsed().as_millis();
    context.report_step(format!(
        "The stream completes {ms} ms after the call: {} are free.",
        format_gib(end_bytes)
    ));
    // Half of the array is enough to distinguish the two cases. The full size would be too strict:
    // other processes may allocate or free memory meanwhile, and pools allocate whole pieces.
    if during_bytes > taken_bytes + bytes / 2 {
        return Err(DemoError::NotShown(
            "the memory was free before the work was done".to_owned(),
        ));
    }
    if end_bytes + bytes / 2 < before_bytes {
        return Err(DemoError::NotShown(
            "the memory was not free when the work was done".to_owned(),
        ));
    }
    context.pause_between_steps()
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
        // Adjacent free blocks must be merged.
        arena.free(10, 10);
        assert_eq!((arena.largest_bytes(), arena.allocate(30)), (30, Some(0)));
        arena.free(0, 30);
        arena.free(30, 10);
        assert_eq!(arena.largest_bytes(), 50);
    }
}
