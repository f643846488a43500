//! Loads whose time is limited by the host or by the power limit: tiny kernels, kernels that wait
//! for the CPU, and the stress test.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use gpumon_probe::model::now_ms;

use super::{
    super::{LoadContext, LoadResult},
    repeat_for_load_duration,
    spin::SpinKernel,
};
use crate::{
    bench::ExecutionPlace,
    burn::{self, BurnProgress, BurnRequest},
    cuda::{Argument, Attribute, Grid},
    error::RunError,
    info::Cpu,
    kernels::ptx,
    numbers::generate_bits,
    protocol::Phase,
    selftest::limits::{WindowRule, expect_windows},
};

/// The time for which the CPU computes after each kernel, as a multiple of the kernel's time. The
/// GPU is then busy for a quarter of the time.
const CPU_TIME_PER_KERNEL_TIME: f64 = 3.0;
/// The share of the free memory that the stress test fills.
const BURN_MEMORY: f64 = 0.1;

/// Launches kernels that increment a number, and waits after each group of `GROUP` kernels.
pub(super) fn launch_tiny_kernels<const GROUP: usize>(
    context: &LoadContext<'_>,
) -> Result<Option<LoadResult>, RunError> {
    let gpu = context.gpu;
    let kernel = gpu.load_kernel(ptx!("launch"), "count")?;
    let number = gpu.allocate_zeroed(size_of::<u64>() as u64)?;
    let grid = Grid::SINGLE_THREAD;
    let repeated = repeat_for_load_duration(context, |_| {
        gpu.stream.run(|queue| {
            (0..GROUP).try_for_each(|_| queue.launch(&kernel, grid, &[Argument::Out(&number)]))
        })?;
        Ok(())
    })?;
    Ok(Some(repeated.into_result(Vec::new())))
}

/// Runs kernels on all multiprocessors, and computes on this CPU thread after each kernel.
pub(super) fn compute_between_kernels(
    context: &LoadContext<'_>,
) -> Result<Option<LoadResult>, RunError> {
    let blocks = context.gpu.device().attribute(Attribute::Multiprocessors)?;
    let spinning = SpinKernel::new(context.gpu, blocks.max(1) as u32)?;
    let repeated = repeat_for_load_duration(context, |_| {
        let seconds = spinning.run()?.seconds;
        compute_on_cpu(Duration::from_secs_f64(seconds * CPU_TIME_PER_KERNEL_TIME));
        Ok(())
    })?;
    Ok(Some(repeated.into_result(Vec::new())))
}

fn compute_on_cpu(time: Duration) {
    let (begun, mut bits) = (Instant::now(), 0);
    while begun.elapsed() < time {
        bits = black_box(generate_bits(bits, 1));
    }
}

/// Runs the stress test, which draws more power than any other load.
pub(super) fn run_stress_test(context: &LoadContext<'_>) -> Result<Option<LoadResult>, RunError> {
    let request = BurnRequest {
        time: context.time,
        memory: BURN_MEMORY,
        dtype: None,
    };
    let (mut from_ms, mut to_ms) = (0, 0);
    let outcome = burn::run_burn(
        &ExecutionPlace::Cuda(context.gpu),
        &Cpu::read(),
        &request,
        context.interrupted,
        &mut |progress| match progress {
            BurnProgress::Phase(Phase::Measuring) => from_ms = now_ms(),
            BurnProgress::Phase(Phase::GivingBack) => to_ms = now_ms(),
            BurnProgress::Phase(_) | BurnProgress::Progress { .. } => {}
        },
    )?;
    if !outcome.verify.ok && !outcome.partial {
        return Err(RunError::Wrong { id: burn::ID });
    }
    Ok(Some(LoadResult {
        from_ms,
        to_ms,
        expectations: vec![expect_windows(WindowRule::PowerShare, from_ms)],
    }))
}
