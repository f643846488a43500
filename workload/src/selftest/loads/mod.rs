//! The loads of the self-test.
//!
//! - [`limits`] contains loads that wait for the host, and the stress test.
//! - [`spin`] contains blocks that keep multiprocessors busy and count their own cycles, pulses of
//!   a single multiprocessor, and allocated memory.
//! - [`steady`] repeats workloads of the catalog, and counts the bytes that they move and the
//!   operations that they compute.

mod limits;
mod spin;
mod steady;

use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use gpumon_probe::model::{LimitClass, now_ms};

use self::steady::{SteadyLoad, TestedPart, named};
use super::{
    Expectation, LoadContext, LoadResult,
    limits::{WindowRule, expect_windows},
};
use crate::{
    error::RunError,
    protocol::Dtype::{self, Bf16, Bytes, Fp32, Fp64, Int8},
};

/// A load with a known effect on readings.
pub(crate) struct KnownLoad {
    /// The name of the load, such as `read`.
    pub id: &'static str,
    /// A short description, such as `half of the multiprocessors are busy`.
    pub does: &'static str,
    work: LoadWork,
    /// The cause that limits the GPU during the load, if it is certain.
    cause: Option<LimitClass>,
}

/// A function that puts a load on a GPU for a certain time. It returns the time range and the
/// expected readings, or `None` if the GPU does not support the load.
type PutLoadFunction = fn(&LoadContext<'_>) -> Result<Option<LoadResult>, RunError>;

enum LoadWork {
    Own(PutLoadFunction),
    /// A load that repeats a workload of the catalog.
    Steady(SteadyLoad),
}

impl KnownLoad {
    /// Returns the number of GPUs that the load uses: the tested GPU, and those that follow it.
    pub(crate) fn gpu_count(&self) -> usize {
        match &self.work {
            LoadWork::Own(_) => 1,
            LoadWork::Steady(steady) => steady.gpu_count(),
        }
    }

    pub(crate) fn put_on_gpu(
        &self,
        context: &LoadContext<'_>,
    ) -> Result<Option<LoadResult>, RunError> {
        let mut result = match &self.work {
            LoadWork::Own(put_on) => put_on(context)?,
            LoadWork::Steady(steady) => steady.put_on_gpu(context)?,
        };
        if let (Some(result), Some(cause)) = (&mut result, self.cause) {
            let windows = expect_windows(WindowRule::MainCause(cause), result.from_ms);
            result.expectations.push(windows);
        }
        Ok(result)
    }

    const fn limited_by(self, cause: LimitClass) -> Self {
        Self {
            cause: Some(cause),
            ..self
        }
    }
}

/// All loads, in the order in which they run.
pub(crate) static KNOWN_LOADS: [KnownLoad; 16] = [
    define_load(
        "memory",
        "memory is allocated and nothing runs",
        spin::hold_memory,
    )
    .limited_by(LimitClass::Idle),
    define_load(
        "half",
        "half of the multiprocessors are busy all the time",
        spin::spin_on_half_of_gpu,
    ),
    define_load(
        "pulse",
        "one multiprocessor is busy for half of the time",
        spin::run_pulses,
    ),
    define_steady_load(
        "read",
        "device memory is read as fast as possible",
        ("read", Fp32, TestedPart::Memory),
    )
    .limited_by(LimitClass::Memory),
    define_steady_load(
        "bf16",
        "bf16 matrices are multiplied on tensor cores",
        (
            "matmul",
            Bf16,
            TestedPart::Units(named!(activity.tensor_half_percent)),
        ),
    )
    .limited_by(LimitClass::Tensor),
    define_steady_load(
        "int8",
        "int8 matrices are multiplied on tensor cores",
        (
            "matmul",
            Int8,
            TestedPart::Units(named!(activity.tensor_integer_percent)),
        ),
    ),
    define_steady_load(
        "fp64",
        "fp64 matrices are multiplied on tensor cores",
        (
            "matmul",
            Fp64,
            TestedPart::Units(named!(activity.tensor_double_percent)),
        ),
    ),
    define_steady_load(
        "fp32",
        "fp32 matrices are multiplied",
        (
            "matmul",
            Fp32,
            TestedPart::Units(named!(activity.fp32_percent)),
        ),
    )
    .limited_by(LimitClass::Compute),
    define_steady_load(
        "to-device",
        "pinned host memory is copied to the device",
        (
            "h2d-pinned",
            Bytes,
            TestedPart::Pcie(named!(pcie.rx_bytes_per_second)),
        ),
    )
    .limited_by(LimitClass::Transfer),
    define_steady_load(
        "to-host",
        "device memory is copied to pinned host memory",
        (
            "d2h-pinned",
            Bytes,
            TestedPart::Pcie(named!(pcie.tx_bytes_per_second)),
        ),
    )
    .limited_by(LimitClass::Transfer),
    define_steady_load(
        "to-next",
        "memory is copied to the next GPU",
        (
            "peer",
            Bytes,
            TestedPart::NvLink {
                is_both_ways: false,
            },
        ),
    ),
    define_steady_load(
        "both-ways",
        "memory is copied to and from the next GPU at the same time",
        (
            "peer-both",
            Bytes,
            TestedPart::NvLink { is_both_ways: true },
        ),
    ),
    define_load(
        "launches",
        "tiny kernels are launched one after the other",
        limits::launch_tiny_kernels::<1000>,
    )
    .limited_by(LimitClass::Latency),
    define_load(
        "synchronized",
        "the host waits for each of many tiny kernels",
        limits::launch_tiny_kernels::<1>,
    )
    .limited_by(LimitClass::Latency),
    define_load(
        "host",
        "the GPU waits for one CPU thread for most of the time",
        limits::compute_between_kernels,
    )
    .limited_by(LimitClass::Host),
    define_load(
        "burn",
        "the stress test draws as much power as possible",
        limits::run_stress_test,
    ),
];

const fn define_load(id: &'static str, does: &'static str, put_on: PutLoadFunction) -> KnownLoad {
    let work = LoadWork::Own(put_on);
    KnownLoad {
        id,
        does,
        work,
        cause: None,
    }
}

const fn define_steady_load(
    id: &'static str,
    does: &'static str,
    (workload, dtype, knows): (&'static str, Dtype, TestedPart),
) -> KnownLoad {
    let work = LoadWork::Steady(SteadyLoad {
        workload,
        dtype,
        knows,
    });
    KnownLoad {
        id,
        does,
        work,
        cause: None,
    }
}

/// The time range and the result of repeated calls: the number of calls that count, and how long
/// they took.
struct RepeatedRuns {
    from_ms: u64,
    to_ms: u64,
    seconds: f64,
    times: u64,
}

impl RepeatedRuns {
    /// Returns the result of a load that consists of these calls.
    fn into_result(self, expectations: Vec<Expectation>) -> LoadResult {
        LoadResult {
            from_ms: self.from_ms,
            to_ms: self.to_ms,
            expectations,
        }
    }
}

/// Calls `once` repeatedly for the duration of a load. The argument of `once` is `true` if the call
/// counts. Calls do not count until the readings have settled. At least one call counts.
fn repeat_for_load_duration(
    context: &LoadContext<'_>,
    mut once: impl FnMut(bool) -> Result<(), RunError>,
) -> Result<RepeatedRuns, RunError> {
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
    Ok(RepeatedRuns {
        from_ms,
        to_ms: now_ms(),
        seconds: settled.elapsed().as_secs_f64(),
        times,
    })
}

/// Waits for `time`, or until the run is interrupted.
fn wait_unless_interrupted(context: &LoadContext<'_>, time: Duration) {
    const CHECK_INTERVAL: Duration = Duration::from_millis(20);
    let begun = Instant::now();
    while begun.elapsed() < time && !context.interrupted.load(Relaxed) {
        std::thread::sleep(CHECK_INTERVAL.min(time.saturating_sub(begun.elapsed())));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn load_names_are_unique() {
        let ids: BTreeSet<_> = KNOWN_LOADS.iter().map(|load| load.id).collect();
        assert_eq!(ids.len(), KNOWN_LOADS.len());
        assert!(
            KNOWN_LOADS
                .iter()
                .all(|load| !load.does.is_empty() && !load.does.ends_with('.'))
        );
    }
}
