//! Programs that are not workloads: listing devices, requesting too much memory, and using two GPUs
//! simultaneously, each on a separate thread.

use std::{
    sync::{Barrier, atomic::AtomicBool},
    thread,
    time::{Duration, Instant},
};

use crate::{
    bench::{self, ExecutionPlace, WorkloadRequest},
    catalogue::{self, write_and_check_zeros},
    cuda::{CudaError, Device},
    error::RunError,
    gpu::Gpu,
    info::Cpu,
    measure::MeasureLimits,
    numbers::{SEED_A, generate_bits},
    protocol::{Amount, Backend, Engine, VariantOutcome},
    workload::{Size, Workload},
};

/// The name of the workload. It computes a thousand products in each run.
const WORKLOAD_ID: &str = "gram-batched";
/// The number of runs in full measurements, large enough to make start and end negligible.
const FULL_RUNS: usize = 200;
const QUICK_RUNS: usize = 2;
const QUICK_MATRICES: u64 = 7;

/// Compares work on two GPUs at the same time with twice the work on one of them.
pub(super) fn run_on_two_gpus(gpu: &Gpu, _: &Cpu, quick: bool) -> Result<VariantOutcome, RunError> {
    let work = catalogue::find_workload(WORKLOAD_ID).expect("the catalog contains the workload");
    let devices = gpu.device().driver().list_devices()?;
    let own = gpu.device().index as usize;
    if devices.len() < 2 {
        return Ok(VariantOutcome::Skipped {
            reason: "this variant needs 2 GPUs (found: 1)".to_owned(),
        });
    }
    let pair = [&devices[own], &devices[(own + 1) % devices.len()]];
    let dtype = work.about.usual_dtype();
    let n = if quick {
        QUICK_MATRICES
    } else {
        work.usual_size(Backend::Cuda, dtype, &gpu.memory_budget()?)
    };
    for device in pair {
        Gpu::open(device)?.memory_budget()?.check_bytes_fit(
            WORKLOAD_ID,
            work.program.cost_of(Size { n, dtype }).memory_bytes,
        )?;
    }
    let runs = if quick { QUICK_RUNS } else { FULL_RUNS };
    let size = Size { n, dtype };
    let alone = run_on_devices_together(work, size, &pair[..1], 2 * runs)?;
    let both = run_on_devices_together(work, size, &pair, runs)?;
    let ratio = alone.us / both.us;
    let text = format!(
        "{} products: {:.1} ms on GPU {}, {:.1} ms on GPUs {} and {} at once: {ratio:.2} times as \
             fast",
        2 * runs as u64 * n,
        alone.us / 1e3,
        pair[0].index,
        both.us / 1e3,
        pair[0].index,
        pair[1].index,
    );
    Ok(VariantOutcome::Shown {
        ok: alone.ok && both.ok,
        text,
    })
}

struct CombinedRun {
    us: f64,
    ok: bool,
}

/// Runs a workload on all devices at the same time. Timing starts when all devices are ready, and
/// ends when the last one has finished. A device that fails earlier counts as ready, so that the
/// others do not wait for it forever.
fn run_on_devices_together(
    work: &Workload,
    size: Size,
    devices: &[&Device],
    runs: usize,
) -> Result<CombinedRun, RunError> {
    let barrier = Barrier::new(devices.len());
    let one = |device: &Device| {
        let gpu = Gpu::open(device);
        let ready = gpu
            .as_ref()
            .map_err(|error| RunError::from(error.clone()))
            .and_then(|gpu| {
                let mut ready = work.program.prepare_cuda_run(gpu, size)?;
                ready.run()?;
                Ok(ready)
            });
        barrier.wait();
        let begun = Instant::now();
        let mut ready = ready?;
        for _ in 0..runs {
            ready.run()?;
        }
        let us = begun.elapsed().as_secs_f64() * 1e6;
        Ok::<_, RunError>(CombinedRun {
            us,
            ok: ready.verify()?.ok,
        })
    };
    let found = thread::scope(|scope| {
        let threads: Vec<_> = devices
            .iter()
            .map(|device| scope.spawn(move || one(device)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread ends"))
            .collect::<Vec<_>>()
    });
    found
        .into_iter()
        .try_fold(CombinedRun { us: 0.0, ok: true }, |all, one| {
            let one = one?;
            Ok(CombinedRun {
                us: all.us.max(one.us),
                ok: all.ok && one.ok,
            })
        })
}

const BRIEF_LIMITS: MeasureLimits = MeasureLimits {
    warm_up: Duration::ZERO,
    least: Duration::ZERO,
    time: Duration::ZERO,
};

pub(super) fn list_devices(gpu: &Gpu, cpu: &Cpu, _: bool) -> Result<VariantOutcome, RunError> {
    let devices = gpu.device().driver().list_devices()?;
    let names: Vec<_> = devices
        .iter()
        .map(|device| format!("GPU {}: {}", device.index, device.name))
        .collect();
    let text = format!(
        "{}; CPU: {}; GPU {} chosen",
        names.join(", "),
        cpu.name,
        gpu.device().index
    );
    Ok(VariantOutcome::Shown { ok: true, text })
}

/// Requests a GPU with an index that does not exist, and falls back to the CPU.
pub(super) fn fall_back_to_cpu(gpu: &Gpu, cpu: &Cpu, _: bool) -> Result<VariantOutcome, RunError> {
    let count = gpu.device().driver().list_devices()?.len();
    let work = catalogue::find_workload("vector-add").expect("the catalog contains the workload");
    let request = WorkloadRequest {
        dtype: None,
        amount: Some(Amount::Count(1000)),
        engine: Engine::Own,
        limits: BRIEF_LIMITS,
    };
    let outcome = bench::run_workload(
        work,
        &ExecutionPlace::Cpu(cpu),
        cpu,
        &request,
        &AtomicBool::new(false),
        &mut |_| {},
    )?;
    let text = format!("there is no GPU {count}, so the CPU added the vectors");
    Ok(VariantOutcome::Shown {
        ok: outcome.verify.ok,
        text,
    })
}

/// Shows that nothing is copied if the device already has the array.
pub(super) fn skip_unneeded_copy(gpu: &Gpu, _: &Cpu, _: bool) -> Result<VariantOutcome, RunError> {
    let words: Vec<u64> = (0..1000)
        .map(|index| generate_bits(SEED_A, index))
        .collect();
    let memory = gpu.copy_to_device(&words)?;
    let begun = Instant::now();
    // This works like `copyto` in the tutorial: it compares the devices, and returns the same array
    // if they are equal.
    let (target, source) = (gpu.device().index, memory.device().index);
    let is_there = target == source;
    let ns = begun.elapsed().as_nanos();
    let ok = is_there && gpu.copy_to_host::<u64>(&memory)? == words;
    Ok(VariantOutcome::Shown {
        ok,
        text: format!("already on GPU {target}: the call took {ns} ns and copied nothing"),
    })
}

/// The size in bytes of 100,000 rows of 100,000 numbers, each with eight bytes.
const ZEROS_BYTES: u64 = 80_000_000_000;
const QUICK_BYTES: u64 = 8_000_000;
const GB: f64 = 1e9;

/// Allocates zeros on the GPU, provided that enough memory stays free for other programs.
pub(super) fn allocate_zeros(gpu: &Gpu, _: &Cpu, quick: bool) -> Result<VariantOutcome, RunError> {
    let bytes = if quick { QUICK_BYTES } else { ZEROS_BYTES };
    let budget = gpu.memory_budget()?;
    let (asked, usable, total) = (
        bytes as f64 / GB,
        budget.usable_bytes() as f64 / GB,
        budget.total_bytes as f64 / GB,
    );
    // The memory is read by adding up its words. The sums need additional memory.
    if bytes + bytes / 1024 > budget.usable_bytes() {
        let text = format!(
            "{asked:.3} GB do not fit: {usable:.1} GB of {total:.1} GB can be used; detected \
             before the allocation"
        );
        return Ok(VariantOutcome::Shown { ok: true, text });
    }
    let ok = match write_and_check_zeros(gpu, bytes) {
        Ok(ok) => ok,
        Err(RunError::Cuda(error)) if error.is_out_of_memory() => {
            // Another process has allocated memory since the check.
            return Ok(VariantOutcome::Shown {
                ok: true,
                text: format!("caught: {error}"),
            });
        }
        Err(error) => return Err(error),
    };
    let text = if ok {
        format!("{asked:.3} GB fit into {total:.1} GB: allocated, zeroed, read and freed")
    } else {
        format!("{asked:.3} GB were zeroed, but not all bytes are zero")
    };
    Ok(VariantOutcome::Shown { ok, text })
}

/// Requests more memory than the device has. The request cannot succeed, so it takes no memory from
/// others.
pub(super) fn request_too_much(gpu: &Gpu, _: &Cpu, _: bool) -> Result<VariantOutcome, RunError> {
    let before = gpu.memory_budget()?;
    let bytes = before.total_bytes + (1 << 30);
    let answer: Result<_, CudaError> = gpu.context.allocate(bytes).map(drop);
    let after = gpu.memory_budget()?;
    let [asked, before, after] =
        [bytes, before.free_bytes, after.free_bytes].map(|bytes| bytes as f64 / GB);
    Ok(match answer {
        Err(error) if error.is_out_of_memory() => VariantOutcome::Shown {
            ok: true,
            text: format!(
                "{asked:.1} GB: {} caught; {before:.1} GB free before, {after:.1} GB after",
                error.name
            ),
        },
        Err(error) => return Err(error.into()),
        Ok(()) => VariantOutcome::Shown {
            ok: false,
            text: format!("{asked:.1} GB were allocated, which is more than the GPU has"),
        },
    })
}
