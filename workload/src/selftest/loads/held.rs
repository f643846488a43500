//! Memory that is held, and does nothing.

use gpumon_probe::model::now_ms;

use super::{
    super::{
        Ground, KnownLoad, Made,
        expectation::{Accepted, Expectation, Unit},
    },
    wait,
};
use crate::error::{RunError, gib};

/// So much that no rounding shows.
const MOST_BYTES: u64 = 8 << 30;
/// So much that what the driver keeps for itself is little beside it.
const LEAST_BYTES: u64 = 64 << 20;
/// Of what may be taken, a load takes one part of so many.
const PART: u64 = 4;
/// The driver gives memory in pieces of 2 MiB, and keeps a few for itself.
const PIECES_BYTES: f64 = (8_u64 << 20) as f64;

pub(super) static HELD: Held = Held;

pub(super) struct Held;

impl KnownLoad for Held {
    fn id(&self) -> &'static str {
        "memory"
    }

    fn does(&self) -> &'static str {
        "memory is held"
    }

    fn put_on(&self, ground: &Ground<'_>) -> Result<Option<Made>, RunError> {
        let room = ground.gpu.room()?;
        room.check("memory", LEAST_BYTES * PART)?;
        let bytes = MOST_BYTES.min(room.usable_bytes() / PART);
        let memory = ground.gpu.poisoned(bytes)?;
        let from_ms = now_ms();
        wait(ground, ground.time);
        let to_ms = now_ms();
        drop(memory);
        let how = |of| format!("{} more were allocated {of}", gib(bytes));
        let risen =
            |reading, how| Expectation::new(reading, Unit::Bytes, bytes as f64, Accepted::Within(PIECES_BYTES), how);
        let expectations = vec![
            risen("memory.used_bytes", how("than before"))
                .risen(|stretch| stretch.mean(|sample| sample.memory.used_bytes.clone().map(|bytes| bytes as f64))),
            risen("processes[].memory_bytes", how("by this process"))
                .risen(|stretch| stretch.own_process(|own| own.memory_bytes.clone().map(|bytes| bytes as f64))),
        ];
        Ok(Some(Made { from_ms, to_ms, expectations }))
    }
}
