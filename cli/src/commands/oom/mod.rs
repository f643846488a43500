//! `gpumon oom`: memory that runs out, shown safely.
//!
//! [`page`] makes of the worker's lines what people read, with [`bar`] for how full the device is. [`hold`] is a time as it
//! is typed, and [`list`] prints what there is.

mod bar;
mod hold;
mod list;
mod page;

use std::io::{self, Write};

use anyhow::anyhow;
use gpumon_workload::{
    oom,
    protocol::{Job, Line, OomJob},
};
use rustix::process::{Signal, set_parent_process_death_signal};

use self::{hold::parse_hold, page::Page};
use crate::{
    exit::Failure,
    options::SourceArgs,
    run::{self, View, WhereArgs},
};

/// Out-of-memory demos: show safely how GPU memory runs out, with cause and fix
///
/// A demo allocates memory as a program would, shows the driver's error when there is no more, and explains cause and fix.
/// 3 % of the memory, 512 MiB at least, stay free for others at all times; the real error comes from a request for more
/// than there is, never from draining the GPU; and all memory is freed at the end, on Ctrl+C, and when gpumon is killed.
/// Without a GPU the demo runs on a model with the same accounting.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct OomArgs {
    /// Demo to run, by name; `list` lists all of them
    #[arg(value_name = "SCENARIO", default_value = LIST, hide_default_value = true)]
    scenario: String,

    #[command(flatten)]
    place: WhereArgs,

    /// How long memory is held, as 500ms, 3s or 2m, up to 10m; each step takes a third of it, a second at most
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_hold)]
    hold: f64,

    /// Print each report as one JSON object per line
    #[arg(long)]
    json: bool,

    /// Work as the other process on the GPU with this UUID: asks for what standard input says
    #[arg(long, value_name = "UUID", hide = true)]
    second: Option<String>,
}

const NOTES: &str = "\
Examples:
  gpumon oom list
      All demos.
  gpumon oom fill --hold 30s
      Fill a GPU up to the reserve for others, and watch it in the dashboard.
  gpumon oom fragment --backend cpu
      On the model, without a GPU.
  gpumon oom leak --json | jq -r 'select(.report == \"said\") | .text'
      For scripts.

Environment:
  GPUMON_LIBCUDA  path of libcuda.so.1, where the loader does not find it
  CUDA_VISIBLE_DEVICES  visible GPUs and their order

Exit codes: 0 shown, 1 failed or not reproduced, 2 bad argument, 3 no GPU or no driver, 5 refused: others need the \
memory, 130 interrupted";

/// What stands for no demonstration.
const LIST: &str = "list";

pub(crate) fn run(source: &SourceArgs, args: &OomArgs) -> Result<(), Failure> {
    if let Some(uuid) = &args.second {
        return as_second(uuid);
    }
    if args.scenario == LIST {
        return list::print(args.json);
    }
    source.source.check()?;
    let job = OomJob { scenario: args.scenario.clone(), place: args.place.place(), hold_seconds: args.hold };
    let mut reader = if args.json { Reader::Program } else { Reader::Person(Page::new()) };
    let code = run::follow(source, &Job::Oom(job), args.place.time_limit, &mut reader)?;
    if code == 0 { Ok(()) } else { Err(Failure::reported(code)) }
}

/// Works as the other process. It ends with its parent, also where the driver holds it up.
fn as_second(uuid: &str) -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| anyhow!("cannot follow the parent: {error}"))?;
    oom::second::work(uuid).map_err(|error| anyhow!(error).into())
}

/// Who reads what is reported.
enum Reader {
    Person(Page),
    Program,
}

impl View for Reader {
    fn on_line(&mut self, raw: &str, line: Line) -> Result<(), Failure> {
        match self {
            Self::Person(page) => page.line(line)?,
            Self::Program => {
                let mut out = io::stdout().lock();
                writeln!(out, "{raw}")?;
                out.flush()?;
            }
        }
        Ok(())
    }
}

/// What can stand for [`OomArgs::scenario`].
pub(crate) fn names() -> Vec<&'static str> {
    let ids = oom::all().iter().map(|scenario| scenario.about().id);
    std::iter::once(LIST).chain(ids).collect()
}
