//! The loads of the self-test.
//!
//! - [`spin`] has blocks that keep multiprocessors busy and count their own cycles, pulses of a
//!   single multiprocessor, and allocated memory.
//! - [`steady`] repeats workloads of the catalogue, and counts the bytes that they move and the
//!   operations that they compute.

mod spin;
mod steady;

use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use gpumon_probe::model::now_ms;

use self::steady::{Knows, Steady, named};
use super::{LoadContext, Made};
use crate::{
    error::RunError,
    protocol::Dtype::{self, Bf16, Bytes, Fp32, Fp64, Int8},
};

/// A load with a known effect.
pub(crate) struct KnownLoad {
    /// The name, such as `read`.
    pub id: &'static str,
    /// A short description, such as `half of the multiprocessors are busy`.
    pub does: &'static str,
    work: LoadWork,
}

/// A function that puts a load on a GPU for a while, and returns the time and the expected
/// readings; `None` if this GPU does not support the load.
type PutOn = fn(&LoadContext<'_>) -> Result<Option<Made>, RunError>;

enum LoadWork {
    Own(PutOn),
    /// A workload of the catalogue.
    Steady(Steady),
}

impl KnownLoad {
    /// Returns the number of GPUs in use: the given one, and those after it.
    pub(crate) fn gpus(&self) -> usize {
        match &self.work {
            LoadWork::Own(_) => 1,
            LoadWork::Steady(steady) => steady.gpus(),
        }
    }

    pub(crate) fn put_on(&self, context: &LoadContext<'_>) -> Result<Option<Made>, RunError> {
        match &self.work {
            LoadWork::Own(put_on) => put_on(context),
            LoadWork::Steady(steady) => steady.put_on(context),
        }
    }
}

/// All loads, in the order in which they run.
pub(crate) static ALL: [KnownLoad; 12] = [
    own_load("memory", "memory is held", spin::hold_memory),
    own_load(
        "half",
        "half of the multiprocessors are busy all the time",
        spin::spin_half,
    ),
    own_load(
        "pulse",
        "one multiprocessor is busy for half of the time",
        spin::run_pulses,
    ),
    steady_load(
        "read",
        "device memory is read as fast as it can be",
        ("read", Fp32, Knows::Memory),
    ),
    steady_load(
        "bf16",
        "matrices of bf16 are multiplied by tensor cores",
        (
            "matmul",
            Bf16,
            Knows::Units(named!(activity.tensor_half_percent)),
        ),
    ),
    steady_load(
        "int8",
        "matrices of int8 are multiplied by tensor cores",
        (
            "matmul",
            Int8,
            Knows::Units(named!(activity.tensor_integer_percent)),
        ),
    ),
    steady_load(
        "fp64",
        "matrices of fp64 are multiplied by tensor cores",
        (
            "matmul",
            Fp64,
            Knows::Units(named!(activity.tensor_double_percent)),
        ),
    ),
    steady_load(
        "fp32",
        "matrices of fp32 are multiplied",
        ("matmul", Fp32, Knows::Units(named!(activity.fp32_percent))),
    ),
    steady_load(
        "to-device",
        "pinned memory of the host is copied to the device",
        (
            "h2d-pinned",
            Bytes,
            Knows::Pcie(named!(pcie.rx_bytes_per_second)),
        ),
    ),
    steady_load(
        "to-host",
        "device memory is copied to pinned memory of the host",
        (
            "d2h-pinned",
            Bytes,
            Knows::Pcie(named!(pcie.tx_bytes_per_second)),
        ),
    ),
    steady_load(
        "to-next",
        "memory is copied to the next GPU",
        (
            "peer",
            Bytes,
            Knows::NvLink {
                is_both_ways: false,
            },
        ),
    ),
    steady_load(
        "both-ways",
        "memory is copied to the next GPU and from it at once",
        ("peer-both", Bytes, Knows::NvLink { is_both_ways: true }),
    ),
];

const fn own_load(id: &'static str, does: &'static str, put_on: PutOn) -> KnownLoad {
    let work = LoadWork::Own(put_on);
    KnownLoad { id, does, work }
}

const fn steady_load(
    id: &'static str,
    does: &'static str,
    (workload, dtype, knows): (&'static str, Dtype, Knows),
) -> KnownLoad {
    let work = LoadWork::Steady(Steady {
        workload,
        dtype,
        knows,
    });
    KnownLoad { id, does, work }
}

/// The time range and the number of repetitions, and how long those that count took.
struct Repeated {
    from_ms: u64,
    to_ms: u64,
    seconds: f64,
    times: u64,
}

/// Calls `once` repeatedly for the duration of a load. Calls before the readings have settled do
/// not count, and get `false` as their argument. At least one call counts.
fn repeat(
    context: &LoadContext<'_>,
    mut once: impl FnMut(bool) -> Result<(), RunError>,
) -> Result<Repeated, RunError> {
    let (from_ms, begun) = (now_ms(), Instant::now());
    let is_stopped = || context.interrupted.load(Relaxed);
    while begun.elapsed() < context.settling && !is_stopped() {
        once(false)?;
    }
    let settled = Instant::now();
    let mut times = 0;
    while times == 0 || begun.elapsed() < context.time && !is_stopped() {
        once(true)?;
        times += 1;
    }
    Ok(Repeated {
        from_ms,
        to_ms: now_ms(),
        seconds: settled.elapsed().as_secs_f64(),
        times,
    })
}

/// Waits for this time, or until the run is interrupted.
fn wait(context: &LoadContext<'_>, time: Duration) {
    const LOOK: Duration = Duration::from_millis(20);
    let begun = Instant::now();
    while begun.elapsed() < time && !context.interrupted.load(Relaxed) {
        std::thread::sleep(LOOK.min(time.saturating_sub(begun.elapsed())));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn loads_have_names_of_their_own() {
        let ids: BTreeSet<_> = ALL.iter().map(|load| load.id).collect();
        assert_eq!(ids.len(), ALL.len());
        assert!(
            ALL.iter()
                .all(|load| !load.does.is_empty() && !load.does.ends_with('.'))
        );
    }
}
