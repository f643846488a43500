//! `gpumon bench`: real work, measured and verified, on GPUs and on the CPU, by a worker.
//!
//! - [`amount`] is a size as it is typed, [`list`] prints what there is.
//! - [`results`] prints what comes, [`table`] as a table and [`pairs`] as a matrix; [`compare`] holds it against earlier
//!   results.

mod amount;
mod compare;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod list;
mod pairs;
mod results;
mod table;

use std::path::PathBuf;

use clap::ValueEnum;
use gpumon_workload::protocol::{Amount, BenchJob, Engine, Job};

#[cfg(test)]
pub(super) use self::compare::tests::outcome as sample_outcome;
use self::{amount::parse_amount, compare::Earlier};
pub(super) use self::{results::Results, table::time};
use crate::{
    exit::Failure,
    options::SourceArgs,
    run::{self, DtypeChoice, WhereArgs, parse_share},
};

/// Below --fail-below.
const BELOW: u8 = 4;

/// Benchmark verified workloads on a GPU or the CPU
///
/// Without a name, all workloads run. Each result is verified against a reference of higher precision, on random data,
/// before and after it is timed. Times are medians of at least ten runs, by the GPU's clock and by the host's, until they
/// deviate by half a percent or two seconds are over. NVIDIA's driver is required and no toolkit. 3 % of a GPU's memory,
/// 512 MiB at least, stay free for others. Clocks, power and throttling are read by NVML while a workload is timed.
///
/// One run at a time uses a GPU, and none uses a GPU on which another user computes, unless --share is given.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct BenchArgs {
    /// Workloads to run, by name; `list` lists all of them
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    #[command(flatten)]
    place: WhereArgs,

    /// Data type; by default the first that `list` names
    #[arg(long, value_enum)]
    dtype: Option<DtypeChoice>,

    /// Elements of each array or rows of each matrix, as 4096, 1e7 or 64Mi, or bytes of each, as 256MiB; by default chosen
    /// for the device
    #[arg(long, value_name = "SIZE", value_parser = parse_amount)]
    size: Option<Amount>,

    /// Kernel implementation: gpumon's own, or cuBLAS where it is installed, for comparison
    #[arg(long, value_enum, default_value_t = EngineChoice::Own)]
    engine: EngineChoice,

    /// Run the workloads that copy between two GPUs for each ordered pair of GPUs, and print a matrix of the results; all
    /// three of them where none is named
    #[arg(long, conflicts_with = "device")]
    pairs: bool,

    /// Measure for a fifth of a second each
    #[arg(long)]
    quick: bool,

    /// Print one JSON object per result, one per line
    #[arg(long)]
    json: bool,

    /// Compare with earlier results, as written by `gpumon bench --json`
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    compare: Option<PathBuf>,

    /// Exit with code 4 if any result falls below this ratio, as 0.9 or 90%: of the earlier result with --compare, else of
    /// the theoretical peak
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    fail_below: Option<f64>,
}

const NOTES: &str = "\
Examples:
  gpumon bench
      All workloads that run here.
  gpumon bench triad trig --backend both
      Two of them, on the GPU and on the CPU.
  gpumon bench h2d-pinned h2d-pageable --size 1GiB
      Bandwidth of copies to the GPU.
  gpumon bench peer peer-latency --pairs
      Bandwidth and latency between all pairs of GPUs, every copy verified.
  gpumon bench --json | jq 'select(.verify.ok) | [.id, .rate.bytes_per_second]'
      For scripts.
  gpumon bench --json > before.json; gpumon bench --compare before.json --fail-below 0.95
      Regressions, for example after a driver update.

Environment:
  GPUMON_LIBCUDA  path of libcuda.so.1, where the loader does not find it
  CUDA_VISIBLE_DEVICES  visible GPUs and their order
  GPUMON_LIBCUBLAS  path of cuBLAS for --engine cublas, where it is not found
  RAYON_NUM_THREADS  threads on the CPU
  GPUMON_LOCKS  directory of the locks, where neither /run/lock nor /tmp is writable by all

Exit codes: 0 all results verified, 1 mismatch or failure, 2 bad argument, 3 no GPU or no driver for a workload that \
needs one, 4 below --fail-below, 5 refused: not enough memory, or the GPU is in use by others, 130 interrupted";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineChoice {
    /// gpumon's own kernels
    Own,
    /// NVIDIA's library, found in the Python in use or where `GPUMON_LIBCUBLAS` says
    Cublas,
}

impl BenchArgs {
    fn engine(&self) -> Engine {
        if self.engine == EngineChoice::Cublas { Engine::Cublas } else { Engine::Own }
    }
}

pub(crate) fn run(source: &SourceArgs, args: &BenchArgs) -> Result<(), Failure> {
    if args.ids.first().is_some_and(|id| id == "list") {
        return list::print(args.json);
    }
    source.source.check()?;
    let earlier = args.compare.as_deref().map(Earlier::read).transpose()?;
    let job = Job::Bench(BenchJob {
        ids: args.ids.clone(),
        place: args.place.place(),
        dtype: args.dtype.map(Into::into),
        size: args.size,
        engine: args.engine(),
        pairs: args.pairs,
        quick: args.quick,
    });
    let mut results = Results::new(args.json, earlier, args.fail_below);
    let code = run::follow(source, &job, args.place.time_limit, &mut results)?;
    let is_below = results.finish(code == 0)?;
    match code {
        0 if is_below => Err(Failure::reported(BELOW)),
        0 => Ok(()),
        code => Err(Failure::reported(code)),
    }
}

/// What can stand for [`BenchArgs::ids`].
pub(crate) fn names() -> Vec<&'static str> {
    let ids = gpumon_workload::catalogue::all().iter().map(|workload| workload.about().id);
    std::iter::once("list").chain(ids).collect()
}
