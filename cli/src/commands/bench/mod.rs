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
use gpumon_workload::{
    Engine,
    bench::Amount,
    job::{BenchJob, Job},
};

use self::{amount::parse_amount, compare::Earlier};
pub(super) use self::{results::Results, table::time};
use crate::{
    exit::Failure,
    options::SourceArgs,
    worker::{self, DtypeChoice, WhereArgs, parse_share},
};

/// Slower than was asked for.
const BELOW: u8 = 4;

/// Run work of a known size on a GPU or the CPU, and say how fast it was and whether the result is right
///
/// Without a name, everything runs that can. Each result is checked against a reference of higher precision, on random
/// data, before it is timed and after. Times are medians of at least ten runs, by the GPU's clock and by the host's,
/// until they deviate by half a percent or two seconds are over. It needs NVIDIA's driver and no toolkit, and leaves 3 %
/// of a GPU's memory to others, 512 MiB at least. What NVML says meanwhile of clocks, power and what holds them down
/// stands beside the times.
///
/// One run at a time works on a GPU, and none where somebody of another user computes, unless --share says so.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct BenchArgs {
    /// What to run, by name; `list` lists all that there is
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    #[command(flatten)]
    place: WhereArgs,

    /// With numbers of this type; without it, of the first that `list` names
    #[arg(long, value_enum)]
    dtype: Option<DtypeChoice>,

    /// With arrays of so many elements, or matrices of so many rows, as 4096, 1e7 or 64Mi, or so many bytes each, as
    /// 256MiB; chosen to suit without it
    #[arg(long, value_name = "SIZE", value_parser = parse_amount)]
    size: Option<Amount>,

    /// By what it runs on a GPU: gpumon's own kernels, or cuBLAS, where you have it, to compare with
    #[arg(long, value_enum, default_value_t = EngineChoice::Own)]
    engine: EngineChoice,

    /// Run what copies between two GPUs from each GPU to each other one, and print a matrix of it; all three, where none
    /// is named
    #[arg(long, conflicts_with = "device")]
    pairs: bool,

    /// Measure for a fifth of a second each
    #[arg(long)]
    quick: bool,

    /// Print one JSON object a line and result
    #[arg(long)]
    json: bool,

    /// Say how fast it is beside earlier results, as `gpumon bench --json` has written them
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    compare: Option<PathBuf>,

    /// End with 4 where something is slower than this share, as 0.9 or 90%: of the earlier result with --compare, else of
    /// what memory or chip are rated for
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    fail_below: Option<f64>,
}

const NOTES: &str = "\
Examples:
  gpumon bench
      Everything that runs here.
  gpumon bench triad trig --backend both
      Two of them, on the GPU and on the CPU.
  gpumon bench h2d-pinned h2d-pageable --size 1GiB
      What it costs to copy to the GPU.
  gpumon bench peer peer-latency --pairs
      Rate and latency from each GPU to each other one, every copy checked.
  gpumon bench --json | jq 'select(.verify.ok) | [.id, .rate.bytes_per_second]'
      For programs.
  gpumon bench --json > before.json; gpumon bench --compare before.json --fail-below 0.95
      What has become slower, say after an update of the driver.

Environment:
  GPUMON_LIBCUDA  CUDA's library, where the loader does not find libcuda.so.1 by itself
  CUDA_VISIBLE_DEVICES  the GPUs that there are, and their order
  GPUMON_LIBCUBLAS  cuBLAS, for --engine cublas, where it is not found by itself
  RAYON_NUM_THREADS  threads on the CPU
  GPUMON_LOCKS  folder of the locks, where neither /run/lock nor /tmp is open to all

Exit codes: 0 done and right, 1 a result is wrong or could not be had, 2 bad argument, 3 no GPU or no driver for what \
runs on no CPU, 4 slower than --fail-below, 5 refused since memory would not do or somebody else is there, \
130 interrupted";

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
    let code = worker::follow(source, &job, args.place.time_limit, &mut results)?;
    let is_below = results.finish(code == 0)?;
    match code {
        0 if is_below => Err(Failure::told(BELOW)),
        0 => Ok(()),
        code => Err(Failure::told(code)),
    }
}

/// What can stand for [`BenchArgs::ids`].
pub(crate) fn names() -> Vec<&'static str> {
    let ids = gpumon_workload::catalogue::all().iter().map(|workload| workload.about().id);
    std::iter::once("list").chain(ids).collect()
}
