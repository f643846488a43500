//! Fragmentation in an arena, and its fix.

use super::arena::Arena;
use crate::{
    error::gib,
    oom::{Scenario, ScenarioContext, Stop, device::Device},
    protocol::Phase,
};

/// Pieces of the arena.
const PIECES: u64 = 16;
/// What is asked for in the end, in pieces: half of what is free, and four times what is free in a row.
const WANTED: u64 = 4;
/// What is written across the border of two pieces, in bytes.
const ACROSS_BYTES: u64 = 4096;

pub(super) static FRAGMENT: Scenario = Scenario {
    id: "fragment",
    title: "fragmentation and its fix",
    shows: "Half of an arena is free, but a request for half of that fails: no two free blocks are contiguous. Virtual memory \
        mapping serves the request from the same blocks.",
    cause: "The arena of a framework allocates contiguous address ranges. Blocks that are freed between used blocks are not \
        contiguous, however large their sum. The driver's own allocations do not fragment: they are mapped.",
    fixes: &[
        "PyTorch: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True maps memory instead of reserving fixed segments.",
        "PyTorch: torch.cuda.empty_cache() between phases releases unused segments; max_split_size_mb prevents large blocks \
         from being split.",
        "Allocate large, long-lived tensors first. Shapes that change from batch to batch fragment an arena most.",
    ],
    lesson: "If \"reserved but unallocated\" memory exceeds the request, the cause is fragmentation, not a lack of memory.",
    run,
};

fn run(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    let granularity_bytes = context.device.granularity_bytes()?.max(1);
    let piece_bytes = context.part_of_usable(2 * PIECES)? / granularity_bytes * granularity_bytes;
    if piece_bytes == 0 {
        context.make_sure_of(2 * PIECES * granularity_bytes)?;
    }
    context.phase(Phase::Measuring);
    torn(context, piece_bytes)?;
    mended(context, piece_bytes)
}

/// An arena that has enough, and not in a row.
fn torn(context: &mut ScenarioContext<'_>, piece_bytes: u64) -> Result<(), Stop> {
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

/// The same memory in pieces that can be put behind any addresses.
fn mended(context: &mut ScenarioContext<'_>, piece_bytes: u64) -> Result<(), Stop> {
    let device: &dyn Device = context.device;
    context.make_sure_of(PIECES * piece_bytes)?;
    let mut mapping = device.mapping(PIECES + WANTED, piece_bytes)?;
    for place in 0..PIECES {
        let piece = mapping.create()?;
        mapping.map(place, piece)?;
        mapping.fill(place * piece_bytes, 1, mark(place))?;
    }
    context.leave_enough()?;
    let full_bytes = context.free()?.free_bytes;
    context.step(format!(
        "The fix: the same {PIECES} blocks, each mapped to its own address range."
    ));
    context.pause()?;
    let freed: Vec<u64> = (1..PIECES).step_by(2).collect();
    for place in &freed {
        mapping.unmap(*place)?;
    }
    for (place, piece) in (PIECES..).zip(freed.iter().take(WANTED as usize)) {
        mapping.map(place, *piece as usize)?;
    }
    // A write that goes from each piece into the next shows that they are one row now.
    let border = |place: u64| (place + 1) * piece_bytes;
    for place in PIECES..PIECES + WANTED - 1 {
        mapping.fill(border(place) - ACROSS_BYTES / 2, ACROSS_BYTES, mark(place))?;
        let ends = (
            mapping.read(border(place) - 1)?,
            mapping.read(border(place))?,
        );
        if ends != (mark(place), mark(place)) {
            return Err(Stop::NotShown(
                "what was written across two pieces was not there".to_owned(),
            ));
        }
    }
    for place in (0..PIECES).step_by(2) {
        if mapping.read(place * piece_bytes)? != mark(place) {
            return Err(Stop::NotShown(
                "a piece that was in use has changed".to_owned(),
            ));
        }
    }
    let now_bytes = context.free()?.free_bytes;
    let wanted = gib(WANTED * piece_bytes);
    context.step(format!(
        "Every second block is freed again, and {WANTED} of them are mapped to contiguous addresses: {wanted} in a row. \
         Writes across their borders are verified. No data was copied, used blocks are unchanged, and {} more of the \
         device are used.",
        gib(full_bytes.saturating_sub(now_bytes))
    ));
    context.hold()
}

/// What is written into a place.
fn mark(place: u64) -> u8 {
    place as u8 + 1
}
