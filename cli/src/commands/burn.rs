//! `gpumon burn`: a stress test that verifies every result.

use std::time::Duration;

use gpumon_workload::protocol::{BurnJob, Dtype, Job};

use super::bench::{Layout, Results, TableKind};
use crate::{
    exit::Result,
    options::{SourceArgs, parse_time},
    workload_run::{self, RunTargetArgs, parse_share},
};

/// Stress GPUs or the CPU at full load, and count computation errors
///
/// The kernels of `gpumon bench matmul` fill the memory with products of two random matrices. Every
/// product is compared with the first one on the device, word by word; the first one is verified
/// against a reference of higher precision. A word that differs, is NaN or was not written is an
/// error. Several GPUs run at the same time. All memory is released at the end. 3 % of the GPU
/// memory, at least 512 MiB, stay free for other processes; on the CPU, at most 1 GiB of host
/// memory is used.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct BurnArgs {
    /// Duration, for example 60s, 10m or 2h, counted from the verification of the first product
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    time: Duration,

    /// Share of the free memory to fill, for example 80% or 0.8
    #[arg(long, value_name = "SHARE", default_value = "80%", value_parser = parse_share)]
    mem: f64,

    #[command(flatten)]
    place: RunTargetArgs,

    /// Data type; by default, bf16 on GPUs of compute capability 8.0 or newer, fp32 on older GPUs
    /// and on the CPU
    #[arg(long, value_enum)]
    dtype: Option<Dtype>,

    /// Print one JSON object per line for each device
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon burn
      Stress GPU 0 for one minute.
  gpumon burn --device all --time 10m && echo passed
      Stress all GPUs until they reach operating temperature.
  gpumon burn --dtype fp64
      Stress the double-precision units, which bf16 does not use.
  gpumon burn --backend cpu --time 10s
      Stress the CPU.

Environment:
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1
  CUDA_VISIBLE_DEVICES  GPUs visible to CUDA, in this order
  GPUMON_LOCKS  folder of the lock files, if neither /run/lock nor /tmp is writable by all users

Exit codes: 0 no errors, 1 computation errors, failure or nothing verified, 2 invalid argument, 3 no such GPU or no driver, \
5 refused (not enough memory, or GPU in use by another user), 130 interrupted";

pub(crate) fn run(source: &SourceArgs, args: &BurnArgs) -> Result {
    source.source.check_scenario_file()?;
    let job = Job::Burn(BurnJob {
        place: args.place.to_target(),
        seconds: args.time.as_secs_f64(),
        memory: args.mem,
        dtype: args.dtype,
    });
    let has_integers = args.dtype == Some(Dtype::Int8);
    let layout = Layout {
        subject: TableKind::Burn,
        is_beside: false,
        has_integers,
    };
    workload_run::run_and_print(
        source,
        &job,
        args.place.time_limit,
        None,
        &mut Results::new(layout, None, None),
        args.json,
    )
}
