//! Memory that is held, and does nothing.

use gpumon_probe::model::now_ms;

use super::{
    super::{
        LoadContext, Made,
        expectation::{Accepted, Expectation},
    },
    wait,
};
use crate::{
    error::{RunError, gib},
    protocol::Unit,
};

/// So much that no rounding shows.
const MOST_BYTES: u64 = 8 << 30;
/// So much that what the driver keeps for itself is little beside it.
const LEAST_BYTES: u64 = 64 << 20;
/// Of what may be taken, a load takes one part of so many.
const PART: u64 = 4;
/// The driver gives memory in pieces of 2 MiB, and keeps a few for itself.
const PIECES_BYTES: f64 = (8_u64 << 20) as f64;

pub(super) fn hold_memory(context: &LoadContext<'_>) -> Result<Option<Made>, RunError> {
    let budget = context.gpu.memory_budget()?;
    budget.check("memory", LEAST_BYTES * PART)?;
    let bytes = MOST_BYTES.min(budget.usable_bytes() / PART);
    let memory = context.gpu.poisoned(bytes)?;
    let from_ms = now_ms();
    wait(context, context.time);
    let to_ms = now_ms();
    drop(memory);
    let how = |of| format!("{} more were allocated {of}", gib(bytes));
    let risen = |reading, how| {
        Expectation::new(
            reading,
            Unit::Bytes,
            bytes as f64,
            Accepted::Within(PIECES_BYTES),
            how,
        )
    };
    let expectations = vec![
        risen("memory.used_bytes", how("than before")).risen(|stretch| {
            stretch.mean(|sample| sample.memory.used_bytes.clone().map(|bytes| bytes as f64))
        }),
        risen("processes[].memory_bytes", how("by this process")).risen(|stretch| {
            stretch.own_process(|own| own.memory_bytes.clone().map(|bytes| bytes as f64))
        }),
    ];
    Ok(Some(Made {
        from_ms,
        to_ms,
        expectations,
    }))
}
