//! Memory that may not be there.

use crate::{
    catalogue::read_zeros, cuda::CudaError, error::RunError, gpu::Gpu, info::Cpu, protocol::Found,
};

/// 100000 rows of 100000 numbers of eight bytes.
const ZEROS_BYTES: u64 = 80_000_000_000;
const QUICK_BYTES: u64 = 8_000_000;
const GB: f64 = 1e9;

/// Takes it where that leaves enough to others, and says so where not.
pub(super) fn take_zeros(gpu: &Gpu, _: &Cpu, quick: bool) -> Result<Found, RunError> {
    let bytes = if quick { QUICK_BYTES } else { ZEROS_BYTES };
    let budget = gpu.memory_budget()?;
    let (asked, usable, total) = (
        bytes as f64 / GB,
        budget.usable_bytes() as f64 / GB,
        budget.total_bytes as f64 / GB,
    );
    // With the sums of what is read.
    if bytes + bytes / 1024 > budget.usable_bytes() {
        let text = format!(
            "{asked:.3} GB do not fit: {usable:.1} GB of {total:.1} GB may be taken; caught beforehand"
        );
        return Ok(Found::Shown { ok: true, text });
    }
    let ok = match read_zeros(gpu, bytes) {
        Ok(ok) => ok,
        Err(RunError::Cuda(error)) if error.is_out_of_memory() => {
            // Somebody else was faster.
            return Ok(Found::Shown {
                ok: true,
                text: format!("caught: {error}"),
            });
        }
        Err(error) => return Err(error),
    };
    let text = if ok {
        format!("{asked:.3} GB fit into {total:.1} GB: taken, zeroed, read through and given back")
    } else {
        format!("{asked:.3} GB were zeroed, and not all of them are zero")
    };
    Ok(Found::Shown { ok, text })
}

/// Asks for more than the whole device has, which nobody can lose anything by.
pub(super) fn more_than_there_is(gpu: &Gpu, _: &Cpu, _: bool) -> Result<Found, RunError> {
    let before = gpu.memory_budget()?;
    let bytes = before.total_bytes + (1 << 30);
    let answer: Result<_, CudaError> = gpu.context.allocate(bytes).map(drop);
    let after = gpu.memory_budget()?;
    let [asked, before, after] =
        [bytes, before.free_bytes, after.free_bytes].map(|bytes| bytes as f64 / GB);
    Ok(match answer {
        Err(error) if error.is_out_of_memory() => Found::Shown {
            ok: true,
            text: format!(
                "{asked:.1} GB: {} caught; {before:.1} GB free before, {after:.1} GB after",
                error.name
            ),
        },
        Err(error) => return Err(error.into()),
        Ok(()) => Found::Shown {
            ok: false,
            text: format!("{asked:.1} GB were given, which is more than there is"),
        },
    })
}
