//! `gpumon burn`: a stress test whose every result is verified.

use gpumon_workload::protocol::{BurnJob, Job};

use super::bench::Results;
use crate::{
    exit::Failure,
    options::{SourceArgs, Time, parse_time},
    run::{self, DtypeChoice, WhereArgs, parse_share},
};

/// Stress test GPUs or the CPU, and count computation errors
///
/// Memory is filled with products of two random matrices, by the kernels of `gpumon bench matmul`, and each product is
/// compared with the first, on the device, word by word; the first is verified against a reference of higher precision. A
/// word that differs, is not a number or was not written is an error. Several GPUs are tested at the same time. All memory
/// is freed at the end. 3 % of a GPU's memory, 512 MiB at least, stay free for others; of the host's memory 1 GiB at most
/// is used.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct BurnArgs {
    /// Duration, as 60s, 10m or 2h, from when the first product is verified
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    time: Time,

    /// Share of the free memory to fill, as 80% or 0.8
    #[arg(long, value_name = "SHARE", default_value = "80%", value_parser = parse_share)]
    mem: f64,

    #[command(flatten)]
    place: WhereArgs,

    /// Data type; by default bf16 on a GPU of compute capability 8.0 or newer, and fp32 on older ones and on the CPU
    #[arg(long, value_enum)]
    dtype: Option<DtypeChoice>,

    /// Print one JSON object per device, one per line
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon burn
      The first GPU, for a minute.
  gpumon burn --device all --time 10m && echo well
      All GPUs, until they are at their operating temperature.
  gpumon burn --dtype fp64
      The FP64 units, which the default bf16 leaves idle.
  gpumon burn --backend cpu --time 10s
      The CPU, in fp32 or fp64.

Environment:
  GPUMON_LIBCUDA  path of libcuda.so.1, where the loader does not find it
  CUDA_VISIBLE_DEVICES  visible GPUs and their order
  GPUMON_LOCKS  directory of the locks, where neither /run/lock nor /tmp is writable by all

Exit codes: 0 all results verified, 1 computation errors, failure, or nothing verified, 2 bad argument, 3 no GPU or no \
driver, 5 refused: not enough memory, or the GPU is in use by others, 130 interrupted";

pub(crate) fn run(source: &SourceArgs, args: &BurnArgs) -> Result<(), Failure> {
    source.source.check()?;
    let job = Job::Burn(BurnJob {
        place: args.place.place(),
        seconds: args.time.0.as_secs_f64(),
        memory: args.mem,
        dtype: args.dtype.map(Into::into),
    });
    let mut results = Results::new(args.json, None, None);
    let code = run::follow(source, &job, args.place.time_limit, &mut results)?;
    if code == 0 { Ok(()) } else { Err(Failure::reported(code)) }
}
