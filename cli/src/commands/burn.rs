//! `gpumon burn`: products without end, each of whose results is checked.

use gpumon_workload::job::{BurnJob, Job};

use super::bench::Results;
use crate::{
    exit::Failure,
    options::{SourceArgs, Time, parse_time},
    worker::{self, DtypeChoice, WhereArgs, parse_share},
};

/// Load GPUs or the CPU as hard as they can be, and count what they get wrong
///
/// Memory is filled with products of two random matrices, by the kernels of `gpumon bench matmul`, and each is compared
/// with the first, on the device, word by word; the first is checked against a reference of higher precision. A word that differs, is no number or was not
/// written is an error. With several GPUs, all of them burn at once. It ends when the time is over, and gives all memory
/// back. 3 % of a GPU's memory are left to others, 512 MiB at least; of the host's memory it takes 1 GiB at most.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct BurnArgs {
    /// How long, as 60s, 10m or 2h, from when the first product was checked
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    time: Time,

    /// How much of the free memory to fill, as 80% or 0.8
    #[arg(long, value_name = "SHARE", default_value = "80%", value_parser = parse_share)]
    mem: f64,

    #[command(flatten)]
    place: WhereArgs,

    /// With numbers of this type, where the device has it; bf16 on a GPU of compute capability 8.0 or newer, and fp32 on
    /// older ones and on the CPU, where nobody says
    #[arg(long, value_enum)]
    dtype: Option<DtypeChoice>,

    /// Print one JSON object a line and device
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon burn
      The first GPU, for a minute.
  gpumon burn --device all --time 10m && echo well
      All of them, for as long as it takes until they are hot.
  gpumon burn --dtype fp64
      The units for 64 bits, which bf16, the usual type, leaves cold.
  gpumon burn --backend cpu --time 10s
      The CPU, in fp32 or fp64.

Environment:
  GPUMON_LIBCUDA  CUDA's library, where the loader does not find libcuda.so.1 by itself
  CUDA_VISIBLE_DEVICES  the GPUs that there are, and their order
  GPUMON_LOCKS  folder of the locks, where neither /run/lock nor /tmp is open to all

Exit codes: 0 done and all right, 1 something was wrong, failed, or was not checked, 2 bad argument, 3 no GPU or no \
driver, 5 refused since memory would not do or somebody else is there, 130 interrupted";

pub(crate) fn run(source: &SourceArgs, args: &BurnArgs) -> Result<(), Failure> {
    source.source.check()?;
    let job = Job::Burn(BurnJob {
        place: args.place.place(),
        seconds: args.time.0.as_secs_f64(),
        memory: args.mem,
        dtype: args.dtype.map(Into::into),
    });
    let mut results = Results::new(args.json, None, None);
    let code = worker::follow(source, &job, args.place.time_limit, &mut results)?;
    if code == 0 { Ok(()) } else { Err(Failure::told(code)) }
}
