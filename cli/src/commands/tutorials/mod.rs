//! `gpumon tutorials`: tutorial benchmarks, small programs in all their variants.
//!
//! [`text`] prints them for people.

mod text;

use gpumon_workload::{
    protocol::{Job, TutorialsJob},
    tutorials::CASES,
};

use self::text::Text;
use crate::{
    exit::Failure,
    options::SourceArgs,
    run::{self, BesideArgs, WhereArgs},
};

/// Run tutorial benchmarks in several variants, and compare them with frameworks
///
/// The cases come from the tutorials of CUDA.jl, Flux, CuPy, Numba, JAX and D2L: matrix products, sums, training,
/// transfers, fused operations, batches, devices. Each variant is timed by the GPU and by the host, its result is
/// verified. Beside it stands the time of a framework on an H200, or on CPU cores of its host; on such a device, the host
/// times are compared.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct TutorialsArgs {
    /// Cases to run, a to k5; by default, all
    #[arg(value_name = "CASE")]
    cases: Vec<String>,

    #[command(flatten)]
    place: WhereArgs,

    #[command(flatten)]
    beside: BesideArgs,

    /// Use small arrays, whose sizes the table names, measure each variant for 0.2 seconds, and skip the comparison with
    /// known figures of frameworks
    #[arg(long)]
    quick: bool,

    /// Print one JSON object per variant and line
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon tutorials
      Run all cases, in about two minutes.
  gpumon tutorials c f
      Measure what copies between host and device cost.
  gpumon tutorials --beside --python ~/venv/bin/python3
      Compare with the frameworks that are installed there.
  gpumon tutorials --json | jq -r 'select(.framework.same_device and .share_of_framework > 1) | [.row, .variant] | @tsv'
      List the variants that are slower than a framework.

Environment:
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1

Exit codes: 0 all results verified, 1 mismatch or error, 2 invalid argument, 3 no such GPU or no driver although requested, \
5 refused (not enough memory), 130 interrupted";

pub(crate) fn run(source: &SourceArgs, args: &TutorialsArgs) -> Result<(), Failure> {
    source.source.check()?;
    let job = Job::Tutorials(TutorialsJob {
        cases: args.cases.clone(),
        place: args.place.place(),
        quick: args.quick,
    });
    run::print(
        source,
        &job,
        args.place.time_limit,
        Some(&args.beside),
        &mut Text::new(args.quick),
        args.json,
    )
}

/// What can stand for [`TutorialsArgs::cases`].
pub(crate) fn names() -> Vec<&'static str> {
    CASES.iter().map(|case| case.id).collect()
}
