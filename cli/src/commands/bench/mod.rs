//! `gpumon bench`: measured and verified workloads on GPUs and on the CPU, run by a worker process.
//!
//! [`results`] prints outcomes in a [`table`], or as a matrix for pairs of GPUs. [`baseline`]
//! stores the results of each GPU, and compares outcomes with earlier results.

mod baseline;
mod results;
mod table;

use std::path::PathBuf;

use gpumon_probe::{model::fields::Unit, units};
use gpumon_workload::{
    WorkloadDescription, catalogue,
    protocol::{Amount, BenchJob, Dtype, Engine, Job, Shape},
};

use self::baseline::BaselineArgs;
use crate::{
    exit::{Failure, Result, print_message},
    options::SourceArgs,
    workload_run::{self, FrameworkArgs, RunTargetArgs, parse_share},
};

pub(crate) use self::baseline::EarlierResults;
pub(super) use self::{
    baseline::format_time_with_date,
    results::Results,
    table::{
        Layout, TableKind, format_framework_comparison_row, format_median, format_microseconds,
        format_problem_size, format_remarks, format_verdict,
    },
};

const BELOW_THRESHOLD_CODE: u8 = 4;

/// Benchmark GPUs and CPU with verified workloads
///
/// Without an ID, all workloads that the device supports are run. Each result is verified on random
/// data against a reference of higher precision, before and after timing. Times are medians of at
/// least ten iterations, measured by the GPU and by the host; a workload is repeated until its
/// times vary by at most 0.5 % or two seconds have passed. Clocks, power and throttle reasons are
/// recorded at the same time. The NVIDIA driver is required, the CUDA toolkit is not. 3 % of the
/// GPU memory, at least 512 MiB, stay free for other processes.
///
/// Only one run at a time uses a GPU. A GPU on which another user computes is refused; --share
/// overrides this.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct BenchArgs {
    /// IDs of workloads to run; `list` lists all workloads
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    #[command(flatten)]
    place: RunTargetArgs,

    /// Data type; by default, the first that `list` shows for the workload
    #[arg(long, value_enum)]
    dtype: Option<Dtype>,

    /// Problem size: elements per array or rows per matrix (4096, 1e7, 64Mi), or bytes per array
    /// (256MiB); by default, chosen for the device
    #[arg(long, value_name = "SIZE", value_parser = parse_amount)]
    size: Option<Amount>,

    /// Shape of `matmul` instead of a size, on a GPU: rows and columns of the product, and the
    /// number of terms of each element
    #[arg(
        long, value_name = "MxNxK",
        conflicts_with_all = ["size", "beside", "pairs", "save_baseline", "baseline"]
    )]
    shape: Option<Shape>,

    /// Kernel implementation on a GPU: gpumon's own kernels, or cuBLAS for comparison
    #[arg(long, value_enum, default_value_t = Engine::Own)]
    engine: Engine,

    /// Run copies between every pair of GPUs and print matrices; without an ID, run peer, peer-both
    /// and peer-latency
    #[arg(long, conflicts_with_all = ["device", "beside"])]
    pairs: bool,

    #[command(flatten)]
    beside: FrameworkArgs,

    /// Measure each workload for 0.2 seconds
    #[arg(long)]
    quick: bool,

    /// Print one JSON object per line for each result
    #[arg(long)]
    json: bool,

    /// Compare with earlier results, written by `gpumon bench --json`
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    compare: Option<PathBuf>,

    #[command(flatten)]
    baseline: BaselineArgs,

    /// Exit with code 4 if any result falls below this ratio (0.9 or 90%) of the earlier result
    /// (with --compare), of the baseline (with --baseline) or of the theoretical peak
    #[arg(long, value_name = "RATIO", value_parser = parse_share)]
    fail_below: Option<f64>,
}

const NOTES: &str = "\
Examples:
  gpumon bench
      Run every workload that this machine supports.
  gpumon bench triad trig --backend both
      Run two workloads on the GPU and on the CPU.
  gpumon bench h2d-pinned h2d-pageable --size 1GiB
      Measure copies from host to device.
  gpumon bench peer peer-latency --pairs
      Measure bandwidth and latency between every pair of GPUs.
  gpumon bench matmul --shape 5000x3000x7000 --dtype bf16
      Multiply a 5000x7000 by a 7000x3000 matrix.
  gpumon bench matmul trig --dtype fp32 --beside
      Compare with the frameworks that are installed.
  gpumon bench --json | jq 'select(.verify.ok) | [.id, .rate.bytes_per_second]'
      Print verified bandwidths as JSON.
  gpumon bench --json > before.json; gpumon bench --compare before.json --fail-below 0.95
      Find regressions, for example after a driver update.
  gpumon bench --save-baseline --device all
      Store the speed of each GPU while the GPU is new.
  gpumon bench --baseline --device all --fail-below 0.9
      Find a GPU that is slower than its stored baseline or than GPUs of the same model.

Environment:
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1
  CUDA_VISIBLE_DEVICES  GPUs visible to CUDA, in this order
  GPUMON_LIBCUBLAS  path of cuBLAS for --engine cublas, if the loader does not find cuBLAS
  RAYON_NUM_THREADS  number of CPU threads
  GPUMON_LOCKS  folder of the lock files, if neither /run/lock nor /tmp is writable by all users

Files:
  DIR/benchmarks.json
      Baselines and latest results, by GPU, in the data directory.

Exit codes: 0 all results verified, 1 mismatch or error, 2 invalid argument, 3 no such GPU or no driver for a workload that needs one, 4 below --fail-below, 5 refused (not enough memory, or GPU in use by another user), 130 interrupted";

impl BenchArgs {
    /// Returns `true` if a selected workload may compute with integers.
    fn may_use_integers(&self) -> bool {
        let is_meant = |id| self.ids.is_empty() || self.ids.iter().any(|named| named == id);
        self.dtype.map_or_else(
            || {
                catalogue::list_workloads()
                    .any(|about| is_meant(about.id) && about.dtypes.contains(&Dtype::Int8))
            },
            |dtype| dtype == Dtype::Int8,
        )
    }
}

pub(crate) fn run(source: &SourceArgs, args: &BenchArgs) -> Result {
    if args.ids.first().is_some_and(|id| id == "list") {
        return workload_run::print_list(catalogue::list_workloads(), args.json, |about| {
            describe_workload(about)
        });
    }
    source.source.check_scenario_file()?;
    let mut job = BenchJob {
        ids: args.ids.clone(),
        place: args.place.to_target(),
        dtype: args.dtype,
        size: args.size,
        shape: args.shape,
        engine: args.engine,
        pairs: args.pairs,
        quick: args.quick,
        settle: false,
        works: Vec::new(),
    };
    let (stored, store) = args.baseline.open_store(&mut job)?.unzip();
    let earlier = match stored {
        Some(stored) => stored.map(EarlierResults::Baselines),
        None => args
            .compare
            .as_deref()
            .map(EarlierResults::read)
            .transpose()?,
    };
    let subject = match &earlier {
        None => TableKind::Workloads,
        Some(EarlierResults::Results(_)) => TableKind::Compared,
        Some(EarlierResults::Baselines(_)) => TableKind::Baselines,
    };
    let layout = Layout {
        subject,
        is_beside: args.beside.beside,
        has_integers: args.may_use_integers(),
    };
    let mut results = Results::new(layout, earlier, args.fail_below);
    results.store = store;
    let works = job.works.clone();
    let job = Job::Bench(job);
    let ran = workload_run::run_and_print(
        source,
        &job,
        args.place.time_limit,
        Some(&args.beside),
        &mut results,
        args.json,
    );
    // Results are stored even if another workload failed, because each stored result was verified.
    let stored = results.store.take().map_or(Ok(()), |store| {
        store.write_results(&results.devices, &works)
    });
    ran.and(stored)?;
    if results.lacks_comparison() {
        print_message(
            "--fail-below was not applied: no workload has an earlier result or a theoretical peak \
             for comparison",
        );
    }
    if results.is_below_threshold() {
        Err(Failure::from_printed_error(BELOW_THRESHOLD_CODE))
    } else {
        Ok(())
    }
}

/// Returns two lines: the workload with its backends and data types, and a sentence about what it
/// demonstrates.
fn describe_workload(about: &WorkloadDescription) -> String {
    let join = |names: Vec<String>| names.join(", ");
    let backends = join(about.backends.iter().map(ToString::to_string).collect());
    let dtypes = join(about.dtypes.iter().map(ToString::to_string).collect());
    let types = if dtypes.is_empty() {
        dtypes
    } else {
        format!("; {dtypes}")
    };
    let (id, does) = (about.id, about.does.trim_end_matches('.'));
    format!(
        "{id:20}{does} ({backends}{types})\n{:20}{}",
        "", about.teaches
    )
}

/// Returns the values that the argument [`BenchArgs::ids`] accepts.
pub(crate) fn list_accepted_ids() -> Vec<&'static str> {
    let ids = catalogue::list_workloads().map(|about| about.id);
    std::iter::once("list").chain(ids).collect()
}

/// The maximum number of elements or bytes. Above 2^53, about 9e15, an `f64` cannot represent every
/// integer.
const MAX_AMOUNT: f64 = 9e15;

fn parse_amount(text: &str) -> Result<Amount, String> {
    let expected = || {
        "expected a number of elements, such as 4096, 1e7 or 64Mi, or a size in bytes, such as \
         256MiB"
            .to_owned()
    };
    let mut typed = units::Amount::parse(text).ok_or_else(expected)?;
    let is_bytes = typed.unit.ends_with(['b', 'B']);
    if !is_bytes {
        typed.unit += "B";
    }
    let count = typed.convert_to(Unit::Bytes).ok_or_else(expected)?.round();
    match count {
        _ if !(1.0..=MAX_AMOUNT).contains(&count) => Err(expected()),
        _ if is_bytes => Ok(Amount::Bytes(count as u64)),
        _ => Ok(Amount::Count(count as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_without_byte_unit_counts_elements() {
        for (text, amount) in [
            ("4096", Amount::Count(4096)),
            ("1e7", Amount::Count(10_000_000)),
            ("64Mi", Amount::Count(64 << 20)),
            ("1.5k", Amount::Count(1500)),
            ("256MiB", Amount::Bytes(256 << 20)),
            ("160GB", Amount::Bytes(160_000_000_000)),
            ("1 GiB", Amount::Bytes(1 << 30)),
        ] {
            assert_eq!(parse_amount(text), Ok(amount), "{text}");
        }
        for text in [
            "",
            "0",
            "-1",
            "MiB",
            "1e",
            "10 apples",
            "nan",
            "inf",
            "1e99",
            "0.1B",
        ] {
            assert!(parse_amount(text).unwrap_err().contains("256MiB"), "{text}");
        }
    }
}
