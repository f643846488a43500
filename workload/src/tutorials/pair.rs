//! Two GPUs that work at once, each with a thread of its own.

use std::{sync::Barrier, thread, time::Instant};

use crate::{
    catalogue,
    cuda::Device,
    error::RunError,
    gpu::Gpu,
    info::Cpu,
    protocol::{Backend, Found},
    workload::{Size, Workload},
};

/// A thousand products each.
const WORK: &str = "gram-batched";
/// So many times, that beginning and ending do not show.
const RUNS: usize = 200;
const QUICK_RUNS: usize = 2;
const QUICK_MATRICES: u64 = 7;

/// The same work on two GPUs at once, and twice on one of them.
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
    let alone = together(work, size, &pair[..1], 2 * runs)?;
    let both = together(work, size, &pair, runs)?;
    let ratio = alone.us / both.us;
    let text = format!(
        "{} products: {:.1} ms on GPU {}, {:.1} ms on GPUs {} and {} at once: {ratio:.2} times as fast",
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

/// So many runs on each of the devices, from when all are ready until the last has ended. A device that fails before it is
/// ready is waited for like the others.
fn together(
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
