//! Loads that are not workloads: blocks that keep multiprocessors busy and count their own cycles,
//! pulses of a single multiprocessor, and allocated memory.

use std::{collections::BTreeSet, thread, time::Duration};

use gpumon_probe::model::now_ms;

use super::{
    super::{LoadContext, LoadResult},
    repeat_for_load_duration, wait_unless_interrupted,
};
use crate::{
    cuda::{Argument, Attribute, Code, DeviceMemory, Grid, Kernel},
    error::{RunError, format_gib},
    gpu::Gpu,
    kernels::ptx,
    protocol::Unit,
    selftest::{AcceptedDeviation, Expectation, SampleWindow},
};

const KERNELS: Code = ptx!("spin");
/// The time in nanoseconds for which a block spins, long enough to make its start negligible.
const SPIN_NS: u64 = 20_000_000;
/// The number of words that each block writes to report its measurements.
const WORDS: usize = 3;
const THREADS: u32 = 1024;
/// The interval in milliseconds at which the driver is queried about processes. The first response
/// during a load covers the time before the load, so it is ignored.
const PROCESS_INTERVAL_MS: u64 = 1000;

/// The measurements reported by all blocks of a launch.
pub(super) struct SpinResult {
    multiprocessors: usize,
    mhz: f64,
    /// The time in seconds for which the busiest block was busy.
    pub(super) seconds: f64,
}

pub(super) fn spin_on_half_of_gpu(
    context: &LoadContext<'_>,
) -> Result<Option<LoadResult>, RunError> {
    let gpu = context.gpu;
    let number = |attribute| Ok::<_, RunError>(gpu.device().attribute(attribute)?.max(1) as u32);
    let all = number(Attribute::Multiprocessors)?;
    let warps = number(Attribute::MaxThreadsPerMultiprocessor)? / number(Attribute::WarpSize)?;
    let blocks = all.div_ceil(2);
    let spinning = SpinKernel::new(gpu, blocks)?;
    let mut said = Vec::new();
    let repeated = repeat_for_load_duration(context, |counts| {
        let new = spinning.run()?;
        said.extend(counts.then_some(new));
        Ok(())
    })?;
    let mean = |of: fn(&SpinResult) -> f64| said.iter().map(of).sum::<f64>() / said.len() as f64;
    let (busy, mhz) = (
        mean(|said| said.multiprocessors as f64),
        mean(|said| said.mhz),
    );
    let time = said.iter().map(|said| said.seconds).sum::<f64>() / repeated.seconds * 100.0;
    let share = busy / f64::from(all) * time;
    // The occupancy does not depend on which multiprocessors the blocks run on, because all threads
    // of a block are active.
    let occupancy = f64::from(blocks * (THREADS / 32)) / f64::from(all * warps) * time;
    let always = format!("the blocks reported that they were busy for {time:.1} % of the time");
    let blocks =
        format!("{blocks} blocks reported that they ran on {busy:.0} of {all} multiprocessors");
    let percent = |reading, made, within, how: &str| {
        Expectation::new(
            reading,
            Unit::Percent,
            made,
            AcceptedDeviation::Within(within),
            how.to_owned(),
        )
    };
    let expectations = vec![
        percent("utilization.gpu_percent", time, 2.0, &always).with_reported_value(|during| {
            during.mean_reading(|sample| sample.utilization.gpu_percent.clone())
        }),
        percent("activity.graphics_percent", time, 2.0, &always).with_reported_value(|during| {
            during.mean_activity(|activity| &activity.graphics_percent)
        }),
        percent("activity.sm_percent", share, 2.0, &blocks)
            .with_reported_value(|during| during.mean_activity(|activity| &activity.sm_percent)),
        percent(
            "activity.occupancy_percent",
            occupancy,
            2.0,
            &format!("{blocks}, with {THREADS} threads each"),
        )
        .with_reported_value(|during| during.mean_activity(|activity| &activity.occupancy_percent)),
        percent("processes[].sm_percent", time, 5.0, &always).with_reported_value(|during| {
            during
                .without_first_ms(PROCESS_INTERVAL_MS)
                .mean_reading_of_process(|own| own.sm_percent.clone())
        }),
        Expectation::new(
            "clocks.sm_mhz",
            Unit::Megahertz,
            mhz,
            AcceptedDeviation::Times(0.985, 1.015),
            "the blocks counted cycles and nanoseconds".to_owned(),
        )
        .with_reported_value(SampleWindow::mean_sm_mhz),
    ];
    Ok(Some(repeated.into_result(expectations)))
}

/// A kernel whose blocks spin, and the memory for their measurements.
pub(super) struct SpinKernel<'gpu> {
    gpu: &'gpu Gpu,
    kernel: Kernel,
    out: DeviceMemory,
    grid: Grid,
}

impl<'gpu> SpinKernel<'gpu> {
    pub(super) fn new(gpu: &'gpu Gpu, blocks: u32) -> Result<Self, RunError> {
        let kernel = gpu.load_kernel(KERNELS, "spin")?;
        let out = gpu.allocate_zeroed(u64::from(blocks) * (WORDS * size_of::<u64>()) as u64)?;
        Ok(Self {
            gpu,
            kernel,
            out,
            grid: Grid {
                blocks,
                threads: THREADS,
            },
        })
    }

    pub(super) fn run(&self) -> Result<SpinResult, RunError> {
        let Self {
            gpu,
            kernel,
            out,
            grid,
        } = self;
        gpu.stream.run(|queue| {
            queue.launch(kernel, *grid, &[Argument::Out(out), Argument::U64(SPIN_NS)])
        })?;
        let words: Vec<u64> = gpu.copy_to_host(out)?;
        let blocks = words.as_chunks::<WORDS>().0.iter();
        let multiprocessors = blocks
            .clone()
            .map(|block| block[2])
            .collect::<BTreeSet<_>>()
            .len();
        let longest_ns = blocks.clone().map(|block| block[1]).max().unwrap_or(0);
        let (cycles, ns) = blocks.fold((0, 0), |(cycles, ns), block| {
            (cycles + block[0], ns + block[1])
        });
        Ok(SpinResult {
            multiprocessors,
            mhz: cycles as f64 / ns.max(1) as f64 * 1e3,
            seconds: longest_ns as f64 / 1e9,
        })
    }
}

/// The maximum size of the allocation in bytes, large enough to make rounding negligible.
const MAX_BYTES: u64 = 8 << 30;
/// The minimum size of the allocation in bytes, large enough to make the driver's own memory
/// negligible.
const MIN_BYTES: u64 = 64 << 20;
/// The divisor of the usable memory. The resulting amount, at most `MAX_BYTES`, is allocated.
const MEMORY_DIVISOR: u64 = 4;
/// The accepted deviation in bytes. The driver allocates memory in pieces of 2 MiB, and keeps a few
/// pieces for itself.
const ACCEPTED_BYTES: f64 = (8_u64 << 20) as f64;

pub(super) fn hold_memory(context: &LoadContext<'_>) -> Result<Option<LoadResult>, RunError> {
    let budget = context.gpu.memory_budget()?;
    budget.check_bytes_fit("memory", MIN_BYTES * MEMORY_DIVISOR)?;
    let bytes = MAX_BYTES.min(budget.usable_bytes() / MEMORY_DIVISOR);
    let memory = context.gpu.allocate_poisoned(bytes)?;
    let from_ms = now_ms();
    wait_unless_interrupted(context, context.time);
    let to_ms = now_ms();
    drop(memory);
    let how = |of| format!("{} more were allocated {of}", format_gib(bytes));
    let risen = |reading, how| {
        Expectation::new(
            reading,
            Unit::Bytes,
            bytes as f64,
            AcceptedDeviation::Within(ACCEPTED_BYTES),
            how,
        )
    };
    let expectations = vec![
        risen("memory.used_bytes", how("than before")).with_reported_increase(|stretch| {
            stretch
                .mean_reading(|sample| sample.memory.used_bytes.clone().map(|bytes| bytes as f64))
        }),
        risen("processes[].memory_bytes", how("by this process")).with_reported_increase(
            |stretch| {
                stretch.mean_reading_of_process(|own| {
                    own.memory_bytes.clone().map(|bytes| bytes as f64)
                })
            },
        ),
    ];
    Ok(Some(LoadResult {
        from_ms,
        to_ms,
        expectations,
    }))
}

pub(super) fn run_pulses(context: &LoadContext<'_>) -> Result<Option<LoadResult>, RunError> {
    let spinning = SpinKernel::new(context.gpu, 1)?;
    let mut busy = 0.0;
    let repeated = repeat_for_load_duration(context, |counts| {
        let seconds = spinning.run()?.seconds;
        busy += if counts { seconds } else { 0.0 };
        thread::sleep(Duration::from_nanos(SPIN_NS));
        Ok(())
    })?;
    let share = busy / repeated.seconds * 100.0;
    let how = format!(
        "{} kernels reported that they took {busy:.2} of {:.2} s",
        repeated.times, repeated.seconds
    );
    let percent = |reading, within| {
        Expectation::new(
            reading,
            Unit::Percent,
            share,
            AcceptedDeviation::Within(within),
            how.clone(),
        )
    };
    let expectations = vec![
        // The driver updates this reading rarely: on an H200, it was off by up to 8 percentage
        // points.
        percent("utilization.gpu_percent", 15.0).with_reported_value(|during| {
            during.mean_reading(|sample| sample.utilization.gpu_percent.clone())
        }),
        percent("activity.graphics_percent", 3.0).with_reported_value(|during| {
            during.mean_activity(|activity| &activity.graphics_percent)
        }),
    ];
    Ok(Some(repeated.into_result(expectations)))
}
