//! `gpumon selftest`: known loads, and whether what gpumon shows of them is what they are.
//!
//! [`text`] is what a person reads of it.

mod text;

use gpumon_workload::{
    job::{BackendChoice, Job, SelftestJob, Where},
    report::{Line, Report},
};

use self::text::Text;
use super::work::Load;
use crate::{
    exit::Failure,
    options::{SourceArgs, Time, parse_time},
    worker::{self, Listener, Printer},
};

/// Put known loads on a GPU, and check what gpumon reports of them
///
/// Memory is held, half of the multiprocessors are kept busy, kernels run for half of the time, memory is read, matrices
/// are multiplied and bytes are copied over PCIe and NVLink, each for five seconds. What a load made is counted without
/// the driver's readings: by bytes, operations, and the clocks of host and device. Meanwhile the probe, the same one that
/// feeds page, panel and terminal, reads the GPU. Each reading is then held against what was made.
///
/// It takes a GPU on which nobody of another user computes, about 75 seconds, and 8 GiB at most beside the matrices.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct SelftestArgs {
    /// Which GPU: CUDA's index, or a UUID or its beginning, as `gpumon info` says them; or `all`
    #[arg(long, value_name = "GPU", default_value = "0")]
    device: String,

    /// With loads of a second and a half each, and without energy, which takes longer to be counted
    #[arg(long)]
    quick: bool,

    /// End it after this time, as 30s or 2h; without it, after ten minutes
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    time_limit: Option<Time>,

    /// Print one JSON object a line and reading
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon selftest
      The first GPU, and the links to the next one.
  gpumon selftest --device all --json | jq -r 'select(.verdict == \"differs\") | [.gpu, .load, .reading] | @tsv'
      What is not to be believed on this machine.

Environment:
  GPUMON_LIBCUDA  CUDA's library, where the loader does not find libcuda.so.1 by itself
  GPUMON_NVML_LIB  NVML's library, likewise

Exit codes: 0 every reading that there is agrees, 1 one differs, none could be compared, or a load came out wrong, \
2 bad argument, 3 no GPU or no driver, 5 refused since memory would not do or somebody else is there, 130 interrupted";

pub(crate) fn run(source: &SourceArgs, args: &SelftestArgs) -> Result<(), Failure> {
    source.source.check()?;
    let place = Where { backend: BackendChoice::Cuda, device: args.device.clone(), share: false };
    let job = Job::Selftest(SelftestJob { place, quick: args.quick });
    let mut page = Page { text: Text::default(), printer: Printer::new(args.json) };
    let code = worker::follow(source, &job, args.time_limit, &mut page);
    page.printer.last(|| page.text.end())?;
    let code = code?;
    if code == 0 { Ok(()) } else { Err(Failure::told(code)) }
}

/// What is printed.
struct Page {
    text: Text,
    printer: Printer,
}

impl Listener for Page {
    fn hear(&mut self, raw: &str, line: Line<Load>) -> Result<(), Failure> {
        match &line.report {
            Report::Check { check } => self.printer.line(raw, || self.text.lines(check))?,
            report => {
                if let Report::Begun { devices, .. } = report {
                    self.text.devices(devices);
                }
                self.printer.beside(report);
            }
        }
        Ok(())
    }

    fn tick(&mut self) {
        self.printer.tick();
    }

    fn end(&mut self) {
        self.printer.end();
    }
}
