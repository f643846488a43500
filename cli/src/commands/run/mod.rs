//! `gpumon run`: runs a command and reports its use of GPUs.

mod child;
mod report;

use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::mpsc::{self, Receiver},
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use gpumon_probe::{
    model::{Cost, CostMark, Gpu, Record},
    safe_file,
    usage::cost::CostMeter,
};

use self::child::{Child, Ended, Pipe};
use crate::{
    commands::mark::Forwarder,
    exit::{Failure, Result, say},
    feed::{Feed, Input},
    local::ServerArgs,
    options::SourceArgs,
    process_tree::ProcessTree,
    terminal::{columns::terminal_columns, output::print_json},
    wait,
};

/// Run a command and report its GPU time, memory and energy
///
/// At the end of the command, gpumon reports its duration, the time in which its kernels ran (GPU
/// time), mean and peak of SM active, Tensor active and DRAM bandwidth utilization, the peak
/// memory, the energy, the traffic over PCIe and NVLink, and conditions and driver errors (Xids),
/// for each GPU that the command or a process started by it held. Energy is exact if the command
/// held the GPU alone; otherwise, it is a range with an estimate. Activity, links and conditions
/// are of the whole GPU while the command held it.
///
/// The command has the terminal, standard input and output, and signals as without gpumon; the
/// report is written to standard error. Readings come ten times a second from a running server, or
/// else from the driver. The command starts at once, and also runs on machines without a GPU.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct RunArgs {
    /// Write the report to this file as JSON instead of printing it; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Name of the measurement in the report [default: the command]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    /// Read marks from a pipe whose path the command finds in `GPUMON_MARKS`, one per line
    ///
    /// The marks are part of the report, and on the charts of a running server.
    #[arg(long)]
    mark: bool,

    #[command(flatten)]
    server: ServerArgs,

    /// Command to run and measure
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

const NOTES: &str = "\
Examples:
  gpumon run -- python train.py
      Print the report at the end.
  gpumon run --json cost.json -- torchrun --nproc-per-node 4 train.py
      Keep the report as JSON, as of a job or a test.
  gpumon run --mark -- sh -c 'for epoch in 1 2 3; do echo epoch $epoch > $GPUMON_MARKS; ./train; done'
      Mark moments.

Environment:
  GPUMON_CONTROL  default of --control
  GPUMON_MARKS    set for the command with --mark: path of the pipe

Exit codes: those of the command; if a signal has ended it, gpumon ends by the same signal. 1 report cannot be written, \
2 invalid argument, 126 command cannot be started, 127 command not found";

/// The sampling interval, which is the interval at which the driver updates its readings.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// The time limit for reading marks after the command's end, sufficient even on a busy machine. The
/// limit is reached only if a process that the command left running still has the pipe open.
const LAST_MARKS: Duration = Duration::from_secs(1);

/// The maximum number of events in the queue.
const WAITING: usize = 256;

/// An event during the run.
enum Happening {
    Fed(Input),
    Started(Result<Feed<Self>>),
    Mark(CostMark),
    NoMoreMarks,
    Ended(io::Result<Ended>),
}

impl From<Input> for Happening {
    fn from(input: Input) -> Self {
        Self::Fed(input)
    }
}

pub(crate) fn run(source: &SourceArgs, args: &RunArgs) -> Result {
    source.source.check()?;
    wait::check(&args.command)?;
    if let Some(path) = args.json.as_ref().filter(|path| path.as_os_str() != "-") {
        // A path that cannot be written is reported before a long run. The file's content is kept
        // until the end.
        safe_file::create(path).map_err(|error| cannot_write(path, &error))?;
    }
    let words: Vec<_> = args
        .command
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let name = args.name.clone().unwrap_or_else(|| words.join(" "));
    let (happenings, waiting) = mpsc::sync_channel(WAITING);
    let marks = args
        .mark
        .then(|| Pipe::new(happenings.clone()))
        .transpose()?;
    let child = Child::start(&args.command, marks.as_ref().map(Pipe::path))?;
    let mut measurement = Measurement {
        meter: CostMeter::new(Some(name), child.started_ms),
        // Orphans of the command become children of this process.
        tree: ProcessTree::new(process::id()),
        gpus: Vec::new(),
        feed: None,
        forwarder: Forwarder::new(&args.server),
    };
    Feed::start_in_background(
        source,
        &args.server,
        INTERVAL,
        happenings.clone(),
        Happening::Started,
    )?;
    child.wait_in_background(happenings)?;
    let ended = measurement
        .follow(&waiting)
        .context("cannot wait for the command")?;
    if let Some(pipe) = marks {
        measurement.take_last_marks(pipe, &waiting, ended.at_ms as u64);
    }
    measurement.meter.end(ended.at_ms);
    let cost = measurement.meter.into_cost(&measurement.gpus);
    let reported = report(args, &cost);
    if let Some(message) = reported.as_ref().err().and_then(Failure::message) {
        say(&message);
    }
    // The exit code of the command takes precedence over the failure to write the report.
    ended.pass_on()?;
    reported.map_err(|_| Failure::reported(1))
}

struct Measurement {
    meter: CostMeter,
    tree: ProcessTree,
    gpus: Vec<Gpu>,
    feed: Option<Feed<Happening>>,
    forwarder: Forwarder,
}

impl Measurement {
    /// Measures until the command has ended.
    fn follow(&mut self, waiting: &Receiver<Happening>) -> io::Result<Ended> {
        loop {
            match waiting.recv().map_err(io::Error::other)? {
                Happening::Ended(ended) => return ended,
                Happening::Mark(mark) => self.mark(mark),
                Happening::NoMoreMarks => {}
                Happening::Started(Ok(feed)) => self.feed = Some(feed),
                Happening::Started(Err(failure)) | Happening::Fed(Input::Failed(failure)) => {
                    self.lose(&failure);
                }
                Happening::Fed(input) => self.take(input),
            }
        }
    }

    fn mark(&mut self, mark: CostMark) {
        self.forwarder.send(&mark);
        self.meter.add_mark(mark);
    }

    /// Reads the marks that are still in the pipe. A process that the command left running may keep
    /// the pipe open.
    fn take_last_marks(&mut self, pipe: Pipe, waiting: &Receiver<Happening>, ended_ms: u64) {
        drop(pipe);
        let until = Instant::now() + LAST_MARKS;
        while let Ok(happening) =
            waiting.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            match happening {
                Happening::Mark(CostMark { at_ms, text }) => self.mark(CostMark {
                    at_ms: at_ms.min(ended_ms),
                    text,
                }),
                Happening::NoMoreMarks => break,
                _ => {}
            }
        }
        self.forwarder.finish();
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Record { text, .. } => match Record::decode(&text) {
                Ok(Record::Inventory(inventory)) => self.gpus = inventory.gpus,
                Ok(record) => {
                    self.tree.remember();
                    self.tree.measure(&mut self.meter, &record);
                }
                Err(_) => {}
            },
            Input::Remark(remark) | Input::NoReadings(remark) => self.meter.lose(&remark),
            Input::ServerEnded => {
                let continued = self
                    .feed
                    .as_mut()
                    .map(|feed| feed.continue_without_server(INTERVAL));
                if let Some(Err(failure)) = continued {
                    self.lose(&failure);
                }
            }
            // Missed samples need no handling: the meter detects gaps by the samples' times.
            Input::Missed(_) | Input::Failed(_) | Input::Stop => {}
        }
    }

    fn lose(&mut self, failure: &Failure) {
        self.meter.lose(&failure.describe());
    }
}

fn report(args: &RunArgs, cost: &Cost) -> Result {
    let Some(path) = &args.json else {
        // If standard error is closed, the report cannot be shown anywhere.
        let _ = io::Write::write_all(
            &mut anstream::stderr(),
            report::draw(cost, terminal_columns()).as_bytes(),
        );
        return Ok(());
    };
    if path.as_os_str() == "-" {
        return print_json(cost);
    }
    let mut text = serde_json::to_string(cost).map_err(io::Error::from)?;
    text.push('\n');
    safe_file::create_empty(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| {
            say(&report::sentence(cost));
            cannot_write(path, &error)
        })
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    anyhow!(
        "cannot write the report to {}: {error}; choose another file with --json",
        path.display()
    )
    .into()
}
