//! `gpumon oom`: memory that runs out, shown safely.
//!
//! [`page`] makes of the worker's lines what people read, with [`bar`] for how full the device is.

mod bar;
mod page;

use std::{
    io::{self, Write},
    time::Duration,
};

use anyhow::anyhow;
use gpumon_probe::units::Accepted;
use gpumon_workload::{
    oom,
    protocol::{Job, Line, OomJob},
};
use rustix::process::{Signal, set_parent_process_death_signal};

use self::page::Page;
use crate::{
    exit::Failure,
    options::SourceArgs,
    run::{self, View, WhereArgs},
};

/// Demonstrate out-of-memory errors safely, with cause and fix
///
/// A demo allocates GPU memory as an application would, shows the error of the driver, and explains its cause and fix.
/// 3 % of the memory, at least 512 MiB, stay free for other processes at all times: the error is provoked by a request
/// larger than the GPU, never by exhausting it. All memory is released at the end, on Ctrl+C, and if gpumon is killed.
/// Without a GPU, the demo runs on a model of GPU memory.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct OomArgs {
    /// Demo to run; `list` lists them
    #[arg(value_name = "DEMO", default_value = LIST, hide_default_value = true)]
    scenario: String,

    #[command(flatten)]
    place: WhereArgs,

    /// Time to hold the memory, for example 500ms, 3s or 2m, up to 10m; each step takes a third of it, at most a second
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = |text: &str| HOLD.parse(text))]
    hold: Duration,

    /// Print one JSON object per report and line
    #[arg(long)]
    json: bool,

    /// Run as the second process on the GPU with this UUID, and allocate what standard input requests
    #[arg(long, value_name = "UUID", hide = true)]
    second: Option<String>,
}

const NOTES: &str = "\
Examples:
  gpumon oom list
      List the demos.
  gpumon oom fill --hold 30s
      Fill GPU memory up to the reserve, and hold it for 30 seconds.
  gpumon oom fragment --backend cpu
      Run on the model, without a GPU.
  gpumon oom leak --json | jq -r 'select(.report == \"said\") | .text'
      Print the explanations as text.

Environment:
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1
  CUDA_VISIBLE_DEVICES  GPUs visible to CUDA, in this order

Exit codes: 0 success, 1 failure or unexpected result, 2 invalid argument, 3 no such GPU or no driver, 5 refused (other \
processes need the memory), 130 interrupted";

/// What stands for no demonstration.
const LIST: &str = "list";

pub(crate) fn run(source: &SourceArgs, args: &OomArgs) -> Result<(), Failure> {
    if let Some(uuid) = &args.second {
        return as_second(uuid);
    }
    if args.scenario == LIST {
        return run::print_list(oom::all(), args.json, |scenario| {
            format!("{:12}{}", scenario.id, scenario.shows)
        });
    }
    source.source.check()?;
    let job = OomJob {
        scenario: args.scenario.clone(),
        place: args.place.place(),
        hold_seconds: args.hold.as_secs_f64(),
    };
    let mut reader = if args.json {
        Reader::Program
    } else {
        Reader::Person(Page::new())
    };
    let code = run::follow(
        source,
        &Job::Oom(job),
        args.place.time_limit,
        None,
        &mut reader,
    )?;
    Failure::unless_success(code)
}

/// Works as the other process. It ends with its parent, also where the driver holds it up.
fn as_second(uuid: &str) -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| anyhow!("cannot follow the parent: {error}"))?;
    oom::second::work(uuid).map_err(|error| anyhow!(error).into())
}

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

/// At most ten minutes, since others may be waiting for the GPU.
const HOLD: Accepted<Duration> = Accepted::accept_durations(
    Duration::from_millis(10),
    Duration::from_mins(10),
    "a time from 10ms to 10m, such as 500ms, 3s or 2m",
);

/// What can stand for [`OomArgs::scenario`].
pub(crate) fn names() -> Vec<&'static str> {
    let ids = oom::all().iter().map(|scenario| scenario.id);
    std::iter::once(LIST).chain(ids).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_and_a_bound() {
        for (text, seconds) in [("500ms", 0.5), ("3s", 3.0), ("0.5s", 0.5), ("10m", 600.0)] {
            assert_eq!(
                HOLD.parse(text),
                Ok(Duration::from_secs_f64(seconds)),
                "{text}"
            );
        }
        for text in [
            "", "3", "s", "0s", "-1s", "11m", "1h", "1ms", "nans", "infs", "3 apples",
        ] {
            assert!(
                HOLD.parse(text).unwrap_err().contains("10ms to 10m"),
                "{text}"
            );
        }
    }
}
