//! Programs that are not workloads: listing devices, requesting too much memory, and using two GPUs
//! at once, each on its own thread.

use std::{
    sync::{Barrier, atomic::AtomicBool},
    thread,
    time::{Duration, Instant},
};

use crate::{
    bench::{self, Place, Request},
    catalogue::{self, read_zeros},
    cuda::{CudaError, Device},
    error::RunError,
    gpu::Gpu,
    info::Cpu,
    measure::Limits,
    protocol::{Amount, Backend, Engine, Found},
    random::{SEED_A, bits},
    workload::{Size, Workload},
};

/// The workload, which computes a thousand products in each run.
const WORK: &str = "gram-batched";
/// The number of runs, large enough to make start and end negligible.
const RUNS: usize = 200;
const QUICK_RUNS: usize = 2;
const QUICK_MATRICES: u64 = 7;

/// Compares the work on two GPUs at once with twice the work on one of them.
pub(super) fn at_once(gpu: &Gpu, _: &Cpu, quick: bool) -> Result<Found, RunError> {
    let Some(work) = catalogue::find(WORK) else {
        return Ok(Found::missing(WORK));
    };
    let devices = gpu.device().driver().devices()?;
    let own = gpu.device().index as usize;
    if devices.len() < 2 {
        return Ok(Found::Skipped {
            reason: "it needs 2 GPUs, and there is 1".to_owned(),
        });
    }
    let pair = [&devices[own], &devices[(own + 1) % devices.len()]];
    let dtype = work.about.usual_dtype();
    let n = if quick {
        QUICK_MATRICES
    } else {
        work.usual_n(Backend::Cuda, dtype, &gpu.memory_budget()?)
    };
    for device in pair {
        Gpu::open(device)?
            .memory_budget()?
            .check(WORK, work.program.cost_of(Size { n, dtype }).memory_bytes)?;
    }
    let runs = if quick { QUICK_RUNS } else { RUNS };
    let size = Size { n, dtype };
    let alone = run_together(work, size, &pair[..1], 2 * runs)?;
    let both = run_together(work, size, &pair, runs)?;
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
    Ok(Found::Shown {
        ok: alone.ok && both.ok,
        text,
    })
}

struct Together {
    us: f64,
    ok: bool,
}

/// Runs a workload on each of the devices, and returns the time from when all are ready until the
/// last has ended. The others wait even for a device that fails before it is ready.
fn run_together(
    work: &Workload,
    size: Size,
    devices: &[&Device],
    runs: usize,
) -> Result<Together, RunError> {
    let barrier = Barrier::new(devices.len());
    let one = |device: &Device| {
        let gpu = Gpu::open(device);
        let ready = gpu
            .as_ref()
            .map_err(|error| RunError::from(error.clone()))
            .and_then(|gpu| {
                let mut ready = work.program.on_cuda(gpu, size)?;
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
        Ok::<_, RunError>(Together {
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
        .try_fold(Together { us: 0.0, ok: true }, |all, one| {
            let one = one?;
            Ok(Together {
                us: all.us.max(one.us),
                ok: all.ok && one.ok,
            })
        })
}

const BRIEF: Limits = Limits {
    warm_up: Duration::ZERO,
    least: Duration::ZERO,
    time: Duration::ZERO,
};

pub(super) fn list(gpu: &Gpu, cpu: &Cpu, _: bool) -> Result<Found, RunError> {
    let devices = gpu.device().driver().devices()?;
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
    Ok(Found::Shown { ok: true, text })
}

/// Requests a GPU after the last one, and computes on the CPU instead.
pub(super) fn fall_back(gpu: &Gpu, cpu: &Cpu, _: bool) -> Result<Found, RunError> {
    let count = gpu.device().driver().devices()?.len();
    let Some(work) = catalogue::find("vector-add") else {
        return Ok(Found::missing("vector-add"));
    };
    let request = Request {
        dtype: None,
        amount: Some(Amount::Count(1000)),
        engine: Engine::Own,
        limits: BRIEF,
    };
    let outcome = bench::run(
        work,
        &Place::Cpu(cpu),
        cpu,
        &request,
        &AtomicBool::new(false),
        &mut |_| {},
    )?;
    let text = format!("there is no GPU {count}, so that the CPU has added the vectors");
    Ok(Found::Shown {
        ok: outcome.verify.ok,
        text,
    })
}

/// Copies nothing if the device already has the array.
pub(super) fn already_there(gpu: &Gpu, _: &Cpu, _: bool) -> Result<Found, RunError> {
    let words: Vec<u64> = (0..1000).map(|index| bits(SEED_A, index)).collect();
    let memory = gpu.upload(&words)?;
    let begun = Instant::now();
    // This works like `copyto`: the devices are compared, and the same array is returned.
    let (target, source) = (gpu.device().index, memory.device().index);
    let is_there = target == source;
    let ns = begun.elapsed().as_nanos();
    let ok = is_there && gpu.download::<u64>(&memory)? == words;
    Ok(Found::Shown {
        ok,
        text: format!("on GPU {target} already: nothing is copied, in {ns} ns"),
    })
}

/// The size of 100,000 rows of 100,000 numbers with eight bytes.
const ZEROS_BYTES: u64 = 80_000_000_000;
const QUICK_BYTES: u64 = 8_000_000;
const GB: f64 = 1e9;

/// Allocates zeros on the GPU, if enough memory stays free for other programs.
pub(super) fn take_zeros(gpu: &Gpu, _: &Cpu, quick: bool) -> Result<Found, RunError> {
    let bytes = if quick { QUICK_BYTES } else { ZEROS_BYTES };
    let budget = gpu.memory_budget()?;
    let (asked, usable, total) = (
        bytes as f64 / GB,
        budget.usable_bytes() as f64 / GB,
        budget.total_bytes as f64 / GB,
    );
    // Reading the memory needs room for its sums, too.
    if bytes + bytes / 1024 > budget.usable_bytes() {
        let text = format!(
            "{asked:.3} GB do not fit: {usable:.1} GB of {total:.1} GB may be taken; caught \
                 beforehand"
        );
        return Ok(Found::Shown { ok: true, text });
    }
    let ok = match read_zeros(gpu, bytes) {
        Ok(ok) => ok,
        Err(RunError::Cuda(error)) if error.is_out_of_memory() => {
            // Another process has allocated memory in the meantime.
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

/// Requests more memory than the device has, which cannot take memory from others.
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
