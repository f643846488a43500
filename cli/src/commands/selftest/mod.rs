//! `gpumon selftest`: known loads, and whether gpumon's readings of them agree.
//!
//! [`text`] prints the comparison for people.

mod text;

use std::time::Duration;

use gpumon_workload::protocol::{BackendChoice, Job, SelftestJob, Where};

use self::text::Text;
use crate::{
    exit::Failure,
    options::{SourceArgs, parse_time},
    run,
};

/// Verify gpumon's readings against known GPU loads
///
/// The loads hold memory, keep half of the multiprocessors busy, run kernels half of the time, read memory, multiply
/// matrices, and copy over PCIe and NVLink, for five seconds each. What a load does is counted independently of the
/// driver: by bytes, operations, and host and device clocks. Each reading of the probe is compared with that count.
///
/// The self-test takes about 75 seconds per GPU and up to 8 GiB beside the matrices. It refuses a GPU on which another
/// user computes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct SelftestArgs {
    /// GPU to test: CUDA index, UUID or its prefix, or PCI bus ID, as listed by `gpumon info`;
    /// nvidia:0; or `all`
    #[arg(long, value_name = "GPU", default_value = "0")]
    device: String,

    /// Run each load for 1.5 seconds, and skip energy, which needs more time
    #[arg(long)]
    quick: bool,

    /// Stop after this time, for example 30s or 2h; by default, after ten minutes
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    time_limit: Option<Duration>,

    /// Print one JSON object per reading and line
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon selftest
      Test GPU 0 and its links to the next GPU.
  gpumon selftest --device all --json | jq -r 'select(.verdict == \"mismatch\") | [.gpu, .load, .reading] | @tsv'
      List the mismatches.

Environment:
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1
  GPUMON_NVML_LIB  path of the NVML library, if the loader does not find libnvidia-ml.so.1

Exit codes: 0 all readings verified, 1 mismatch, a load failed or nothing could be compared, 2 invalid argument, \
3 no such GPU or no driver, 5 refused (not enough memory, or GPU in use by another user), 130 interrupted";

pub(crate) fn run(source: &SourceArgs, args: &SelftestArgs) -> Result<(), Failure> {
    source.source.check()?;
    let place = Where {
        backend: BackendChoice::Cuda,
        device: Some(args.device.clone()),
        share: false,
    };
    let job = Job::Selftest(SelftestJob {
        place,
        quick: args.quick,
    });
    run::print(
        source,
        &job,
        args.time_limit,
        None,
        &mut Text::new(),
        args.json,
    )
}
