//! `gpumon selftest`: known loads, and whether gpumon's readings of them agree.
//!
//! [`text`] prints the comparison for people.

mod text;

use gpumon_workload::protocol::{BackendChoice, Job, Line, Report, SelftestJob, Where};

use self::text::Text;
use crate::{
    exit::Failure,
    options::{SourceArgs, Time, parse_time},
    run::{self, Printer, View},
};

/// Self-test: run known loads on a GPU, and compare gpumon's readings with them
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

    /// Loads of a second and a half each, without energy, which takes longer to be counted
    #[arg(long)]
    quick: bool,

    /// End it after this time, as 30s or 2h; without it, after ten minutes
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    time_limit: Option<Time>,

    /// Print one JSON object per reading, one per line
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon selftest
      The first GPU, and the links to the next one.
  gpumon selftest --device all --json | jq -r 'select(.verdict == \"differs\") | [.gpu, .load, .reading] | @tsv'
      Readings that are wrong on this machine.

Environment:
  GPUMON_LIBCUDA  path of libcuda.so.1, where the loader does not find it
  GPUMON_NVML_LIB  path of libnvidia-ml.so.1, likewise

Exit codes: 0 all readings agree, 1 a reading differs, none could be compared, or the result of a load is a mismatch, \
2 bad argument, 3 no GPU or no driver, 5 refused: not enough memory, or the GPU is in use by others, 130 interrupted";

pub(crate) fn run(source: &SourceArgs, args: &SelftestArgs) -> Result<(), Failure> {
    source.source.check()?;
    let place = Where { backend: BackendChoice::Cuda, device: args.device.clone(), share: false };
    let job = Job::Selftest(SelftestJob { place, quick: args.quick });
    let mut page = Page { text: Text::default(), printer: Printer::new(args.json) };
    let code = run::follow(source, &job, args.time_limit, &mut page);
    page.printer.last(|| page.text.end())?;
    let code = code?;
    if code == 0 { Ok(()) } else { Err(Failure::reported(code)) }
}

/// What is printed.
struct Page {
    text: Text,
    printer: Printer,
}

impl View for Page {
    fn on_line(&mut self, raw: &str, line: Line) -> Result<(), Failure> {
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

    fn on_tick(&mut self) {
        self.printer.on_tick();
    }

    fn end(&mut self) {
        self.printer.end();
    }
}
