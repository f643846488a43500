//! `gpumon seeds`: the small programs of tutorials, in all their variants, as one report.
//!
//! [`text`] is what a person reads of it.

mod text;

use gpumon_workload::{
    job::{Job, SeedsJob},
    report::{Line, Report},
    seeds::ROWS,
};

use self::text::Text;
use super::work::Load;
use crate::{
    exit::Failure,
    options::SourceArgs,
    worker::{self, Listener, Printer, WhereArgs},
};

/// Run the small programs that tutorials show, each in all its variants, and say what one learns from them
///
/// The rows are those of CUDA.jl, Flux, CuPy, Numba, JAX and D2L: matrix products, sums, training, transfers, fused
/// operations, batches, devices. Each variant is timed by the GPU's clock and by the host's, its result is checked, and
/// its time by the host's clock is compared with what a framework took on one H200, or on 16 cores beside it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct SeedsArgs {
    /// Which rows, a to k5; all without one
    #[arg(value_name = "ROW")]
    rows: Vec<String>,

    #[command(flatten)]
    place: WhereArgs,

    /// With small arrays, for a fifth of a second each, and without comparing times
    #[arg(long)]
    quick: bool,

    /// Print one JSON object a line and variant
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon seeds
      Everything, in about two minutes.
  gpumon seeds c f
      What copies between host and GPU cost.
  gpumon seeds --json | jq -r 'select(.share_of_framework > 1) | [.row, .variant] | @tsv'
      What is slower than a framework.

Environment:
  GPUMON_LIBCUDA  CUDA's library, where the loader does not find libcuda.so.1 by itself

Exit codes: 0 done and right, 1 a result is wrong or could not be had, 2 bad argument, 3 no GPU or no driver where one \
was asked for, 5 refused since memory would not do, 130 interrupted";

pub(crate) fn run(source: &SourceArgs, args: &SeedsArgs) -> Result<(), Failure> {
    source.source.check()?;
    let job = Job::Seeds(SeedsJob { rows: args.rows.clone(), place: args.place.place(), quick: args.quick });
    let mut page = Page { text: Text::new(), printer: Printer::new(args.json) };
    let code = worker::follow(source, &job, args.place.time_limit, &mut page);
    page.printer.last(|| page.text.end())?;
    let code = code?;
    if code == 0 { Ok(()) } else { Err(Failure::told(code)) }
}

/// What can stand for [`SeedsArgs::rows`].
pub(crate) fn names() -> Vec<&'static str> {
    ROWS.iter().map(|row| row.id).collect()
}

/// What is printed.
struct Page {
    text: Text,
    printer: Printer,
}

impl Listener for Page {
    fn hear(&mut self, raw: &str, line: Line<Load>) -> Result<(), Failure> {
        match &line.report {
            Report::Seed { seed } => self.printer.line(raw, || self.text.lines(seed))?,
            report => self.printer.beside(report),
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
