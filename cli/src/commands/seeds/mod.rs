//! `gpumon seeds`: the small programs of tutorials, in all their variants, as one report.
//!
//! [`text`] is what a person reads of it.

mod text;

use std::io::{self, Write};

use gpumon_workload::{
    job::{Job, SeedsJob},
    report::{Line, Report},
    seeds::{ROWS, SeedReport},
};

use self::text::Text;
use super::work::Load;
use crate::{
    exit::{Failure, say},
    options::SourceArgs,
    worker::{self, Listener, Status, WhereArgs},
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
    let mut page = Page { text: (!args.json).then(Text::new), status: Status::new() };
    let code = worker::follow(source, &job, args.place.time_limit, &mut page)?;
    if let Some(text) = &page.text {
        anstream::stdout().write_all(text.end().as_bytes())?;
    }
    if code == 0 { Ok(()) } else { Err(Failure::told(code)) }
}

/// What can stand for [`SeedsArgs::rows`].
pub(crate) fn names() -> Vec<&'static str> {
    ROWS.iter().map(|row| row.id).collect()
}

/// What is printed.
struct Page {
    /// `None` where programs read it.
    text: Option<Text>,
    status: Status,
}

impl Listener for Page {
    fn hear(&mut self, raw: &str, line: Line<Load>) -> Result<(), Failure> {
        match &line.report {
            Report::Seed { seed } => {
                self.status.clear();
                self.write(raw, seed)?;
            }
            Report::Said { text, .. } | Report::Failed { error: text, .. } => {
                self.status.clear();
                say(text);
            }
            report => self.status.hear(report),
        }
        Ok(())
    }

    fn tick(&mut self) {
        self.status.show();
    }

    fn end(&mut self) {
        self.status.clear();
    }
}

impl Page {
    fn write(&mut self, raw: &str, seed: &SeedReport) -> io::Result<()> {
        let mut out = anstream::stdout();
        match &mut self.text {
            Some(text) => out.write_all(text.lines(seed).as_bytes())?,
            None => writeln!(out, "{raw}")?,
        }
        out.flush()
    }
}
