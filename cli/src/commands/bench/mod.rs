//! `gpumon bench`: real work, measured and verified, on GPUs and on the CPU.
//!
//! - [`amount`] is a size as it is typed, [`plan`] what runs where, [`run`] runs it.
//! - [`list`] prints what there is, [`table`] what came of it, and [`watch`] reads the GPU meanwhile.

mod amount;
mod list;
mod plan;
mod run;
mod table;
mod watch;

use clap::ValueEnum;
use gpumon_workload::{Dtype, Engine, bench::Amount};

use self::{amount::parse_amount, plan::Plan};
use crate::{exit::Failure, options::SourceArgs};

/// Run work of a known size on a GPU or the CPU, and say how fast it was and whether the result is right
///
/// Without a name, everything runs that can. Each result is checked against a reference of higher precision, on random
/// data, before it is timed and after. Times are medians of at least ten runs, by the GPU's clock and by the host's,
/// until they deviate by half a percent or two seconds are over. It needs NVIDIA's driver and no toolkit, and leaves 3 %
/// of a GPU's memory to others, 512 MiB at least. As JSON, what NVML said meanwhile of clocks, power and temperature is
/// told, too.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct BenchArgs {
    /// What to run, by name; `list` lists all that there is
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    /// Where to run it
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto)]
    backend: BackendChoice,

    /// On which GPU: CUDA's index, or a UUID or its beginning, as `gpumon info` says them
    #[arg(long, value_name = "GPU", default_value = "0")]
    device: String,

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

    /// Measure for a fifth of a second each
    #[arg(long)]
    quick: bool,

    /// Print one JSON object a line and result
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon bench
      Everything that runs here.
  gpumon bench triad trig --backend both
      Two of them, on the GPU and on the CPU.
  gpumon bench h2d-pinned h2d-pageable --size 1GiB
      What it costs to copy to the GPU.
  gpumon bench --json | jq 'select(.verify.ok) | [.id, .rate.bytes_per_second]'
      For programs.

Environment:
  GPUMON_LIBCUDA  CUDA's library, where the loader does not find libcuda.so.1 by itself
  CUDA_VISIBLE_DEVICES  the GPUs that there are, and their order
  GPUMON_LIBCUBLAS  cuBLAS, for --engine cublas, where it is not found by itself
  RAYON_NUM_THREADS  threads on the CPU

Exit codes: 0 done and right, 1 a result is wrong or could not be had, 2 bad argument, 3 no GPU or no driver for what \
runs on no CPU, 5 refused since memory would not do, 130 interrupted";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum BackendChoice {
    /// On a GPU, or on the CPU where there is none
    Auto,
    /// On a GPU
    Cuda,
    /// On all threads of the CPU
    Cpu,
    /// On a GPU, then on the CPU
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineChoice {
    /// gpumon's own kernels
    Own,
    /// NVIDIA's library, found in the Python in use or where GPUMON_LIBCUBLAS says
    Cublas,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DtypeChoice {
    /// 64 bits, floating point
    #[value(alias = "f64")]
    Fp64,
    /// 32 bits, floating point
    #[value(alias = "f32")]
    Fp32,
    /// 32 bits, of which tensor cores multiply 19
    Tf32,
    /// 16 bits, floating point
    #[value(alias = "f16")]
    Fp16,
    /// 16 bits, floating point: the first half of 32
    Bf16,
    /// 8 bits, floating point: e4m3
    #[value(alias = "f8")]
    Fp8,
    /// 8 bits, whole numbers
    #[value(alias = "i8")]
    Int8,
}

impl BenchArgs {
    fn engine(&self) -> Engine {
        if self.engine == EngineChoice::Cublas { Engine::Cublas } else { Engine::Own }
    }

    fn dtype(&self) -> Option<Dtype> {
        self.dtype.map(|dtype| match dtype {
            DtypeChoice::Fp64 => Dtype::Fp64,
            DtypeChoice::Fp32 => Dtype::Fp32,
            DtypeChoice::Tf32 => Dtype::Tf32,
            DtypeChoice::Fp16 => Dtype::Fp16,
            DtypeChoice::Bf16 => Dtype::Bf16,
            DtypeChoice::Fp8 => Dtype::Fp8,
            DtypeChoice::Int8 => Dtype::Int8,
        })
    }
}

pub(crate) fn run(source: &SourceArgs, args: &BenchArgs) -> Result<(), Failure> {
    if args.ids.first().is_some_and(|id| id == "list") {
        return list::print(args.json);
    }
    source.source.check()?;
    run::all(source, args, &Plan::new(args)?)
}

/// What can stand for [`BenchArgs::ids`].
pub(crate) fn names() -> Vec<&'static str> {
    let ids = gpumon_workload::catalogue::all().iter().map(|workload| workload.about().id);
    std::iter::once("list").chain(ids).collect()
}
