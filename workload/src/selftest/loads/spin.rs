//! Loads that are not workloads: busy multiprocessors with blocks that count their own cycles,
//! pulses of a single multiprocessor, and allocated memory.

use std::{collections::BTreeSet, thread, time::Duration};

use gpumon_probe::model::now_ms;

use super::{
    super::{
        LoadContext, Made,
        expectation::{Accepted, Expectation},
        sample_window::SampleWindow,
    },
    repeat, wait,
};
use crate::{
    cuda::{Argument, Attribute, Code, DeviceMemory, Grid, Kernel},
    error::{RunError, gib},
    gpu::Gpu,
    kernels::ptx,
    protocol::Unit,
};

const KERNELS: Code = ptx!("spin");
/// The time for which a block spins, long enough to make its start negligible.
const NS: u64 = 20_000_000;
/// The number of words that a block writes.
const WORDS: usize = 3;
const THREADS: u32 = 1024;
/// The interval at which the driver is asked about processes. Its first answer concerns the time
/// before.
const ASKED_EVERY_MS: u64 = 1000;

/// The measurements of all blocks of one launch.
pub(super) struct Said {
    multiprocessors: usize,
    mhz: f64,
    /// The time for which the longest block was busy.
    pub(super) seconds: f64,
}

pub(super) fn spin_half(context: &LoadContext<'_>) -> Result<Option<Made>, RunError> {
    let gpu = context.gpu;
    let number = |attribute| Ok::<_, RunError>(gpu.device().attribute(attribute)?.max(1) as u32);
    let all = number(Attribute::Multiprocessors)?;
    let warps = number(Attribute::MaxThreadsPerMultiprocessor)? / number(Attribute::WarpSize)?;
    let blocks = all.div_ceil(2);
    let spinning = Spinning::new(gpu, blocks)?;
    let mut said = Vec::new();
    let repeated = repeat(context, |counts| {
        let new = spinning.run()?;
        said.extend(counts.then_some(new));
        Ok(())
    })?;
    let mean = |of: fn(&Said) -> f64| said.iter().map(of).sum::<f64>() / said.len() as f64;
    let (busy, mhz) = (
        mean(|said| said.multiprocessors as f64),
        mean(|said| said.mhz),
    );
    let time = said.iter().map(|said| said.seconds).sum::<f64>() / repeated.seconds * 100.0;
    let share = busy / f64::from(all) * time;
    // Each block has all of its threads, whichever multiprocessor it runs on.
    let occupancy = f64::from(blocks * (THREADS / 32)) / f64::from(all * warps) * time;
    let always = format!("the blocks said that they were busy for {time:.1} % of the time");
    let blocks =
        format!("{blocks} blocks said that they ran on {busy:.0} of {all} multiprocessors");
    let percent = |reading, made, within, how: &str| {
        Expectation::new(
            reading,
            Unit::Percent,
            made,
            Accepted::Within(within),
            how.to_owned(),
        )
    };
    let expectations = vec![
        percent("utilization.gpu_percent", time, 2.0, &always)
            .reported(|during| during.mean(|sample| sample.utilization.gpu_percent.clone())),
        percent("activity.graphics_percent", time, 2.0, &always)
            .reported(|during| during.activity(|activity| &activity.graphics_percent)),
        percent("activity.sm_percent", share, 2.0, &blocks)
            .reported(|during| during.activity(|activity| &activity.sm_percent)),
        percent(
            "activity.occupancy_percent",
            occupancy,
            2.0,
            &format!("{blocks}, with {THREADS} threads each"),
        )
        .reported(|during| during.activity(|activity| &activity.occupancy_percent)),
        percent("processes[].sm_percent", time, 5.0, &always).reported(|during| {
            during
                .later(ASKED_EVERY_MS)
                .own_process(|own| own.sm_percent.clone())
        }),
        Expectation::new(
            "clocks.sm_mhz",
            Unit::Megahertz,
            mhz,
            Accepted::Times(0.985, 1.015),
            "the blocks counted cycles and nanoseconds".to_owned(),
        )
        .reported(SampleWindow::sm_mhz),
    ];
    Ok(Some(Made {
        from_ms: repeated.from_ms,
        to_ms: repeated.to_ms,
        expectations,
    }))
}

/// Blocks that spin, with memory for their measurements.
pub(super) struct Spinning<'gpu> {
    gpu: &'gpu Gpu,
    kernel: Kernel,
    out: DeviceMemory,
    grid: Grid,
}

impl<'gpu> Spinning<'gpu> {
    pub(super) fn new(gpu: &'gpu Gpu, blocks: u32) -> Result<Self, RunError> {
        let kernel = gpu.kernel(KERNELS, "spin")?;
        let out = gpu.zeroed(u64::from(blocks) * (WORDS * size_of::<u64>()) as u64)?;
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

    pub(super) fn run(&self) -> Result<Said, RunError> {
        let Self {
            gpu,
            kernel,
            out,
            grid,
        } = self;
        gpu.stream
            .run(|queue| queue.launch(kernel, *grid, &[Argument::Out(out), Argument::U64(NS)]))?;
        let words: Vec<u64> = gpu.download(out)?;
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
        Ok(Said {
            multiprocessors,
            mhz: cycles as f64 / ns.max(1) as f64 * 1e3,
            seconds: longest_ns as f64 / 1e9,
        })
    }
}

/// The maximum allocation, large enough to make rounding negligible.
const MOST_BYTES: u64 = 8 << 30;
/// The minimum allocation, large enough to make the driver's own memory negligible.
const LEAST_BYTES: u64 = 64 << 20;
/// The divisor of the usable memory for an allocation.
const PART: u64 = 4;
/// The accepted deviation: the driver allocates memory in pieces of 2 MiB, and keeps a few for
/// itself.
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

pub(super) fn run_pulses(context: &LoadContext<'_>) -> Result<Option<Made>, RunError> {
    let spinning = Spinning::new(context.gpu, 1)?;
    let mut busy = 0.0;
    let repeated = repeat(context, |counts| {
        let seconds = spinning.run()?.seconds;
        busy += if counts { seconds } else { 0.0 };
        thread::sleep(Duration::from_nanos(NS));
        Ok(())
    })?;
    let share = busy / repeated.seconds * 100.0;
    let how = format!(
        "{} kernels said that they took {busy:.2} of {:.2} s",
        repeated.times, repeated.seconds
    );
    let percent = |reading, within| {
        Expectation::new(
            reading,
            Unit::Percent,
            share,
            Accepted::Within(within),
            how.clone(),
        )
    };
    let expectations = vec![
        // The driver reads this only now and then: an H200 was up to 8 points off.
        percent("utilization.gpu_percent", 15.0)
            .reported(|during| during.mean(|sample| sample.utilization.gpu_percent.clone())),
        percent("activity.graphics_percent", 3.0)
            .reported(|during| during.activity(|activity| &activity.graphics_percent)),
    ];
    Ok(Some(Made {
        from_ms: repeated.from_ms,
        to_ms: repeated.to_ms,
        expectations,
    }))
}
