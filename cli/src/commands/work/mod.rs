//! `gpumon work`: the process that works. It takes one [`Job`], says how it goes as a [`Report`] a line, and ends with
//! the exit code that the last of them tells.
//!
//! Whoever starts it, a command or a server, never enters CUDA itself: a driver that crashes or hangs takes this process
//! along and nothing else, and the kernel gives back what it held. It ends with its parent.
//!
//! - [`plan`] is what is asked of a bench; [`floor`] is where a job runs, with its locks and refusals.
//! - [`watch`] reads the GPUs meanwhile, [`load`] is what those readings say, [`others`] who else is there.
//! - [`bench`] and [`burn`] do the work, each a function of [`Around`] and of whom to tell.

mod bench;
mod burn;
mod floor;
mod load;
mod oom;
mod others;
mod plan;
mod seeds;
mod selftest;
mod watch;

use std::{
    io::{self, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use anyhow::{Context, anyhow};
use gpumon_probe::model::now_ms;
use gpumon_workload::{
    Backend,
    job::{BackendChoice, Job},
    report::{self, Line},
};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};

pub(crate) use self::load::Load;
use crate::{exit::Failure, options::SourceArgs};

/// What this process says.
pub(crate) type Report = report::Report<Load>;

/// A result is wrong, or could not be had.
pub(crate) const FAILED: u8 = 1;
/// There is no GPU or no driver.
pub(crate) const NO_GPU: u8 = 3;
/// Refused, for the sake of whoever else uses the machine.
pub(crate) const REFUSED: u8 = 5;
/// As shells count it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Run one job of the workload runner, and report its progress as one JSON object per line
#[derive(Debug, clap::Args)]
pub(crate) struct WorkArgs {
    /// Job as JSON; `-` reads standard input
    job: String,

    /// Exit if this is not the PID of the parent process
    #[arg(long, value_name = "PID")]
    parent: Option<u32>,
}

/// What a job needs to know beside itself.
pub(super) struct Around<'a> {
    /// Where NVML is.
    source: &'a SourceArgs,
    /// Whether somebody wants to stop.
    interrupted: &'a AtomicBool,
}

impl Around<'_> {
    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }
}

pub(crate) fn run(source: &SourceArgs, args: &WorkArgs) -> Result<(), Failure> {
    source.source.check()?;
    end_with_parent(args.parent)?;
    let job = read(&args.job)?;
    let interrupted = heed_signals()?;
    let around = Around { source, interrupted: &interrupted };
    let mut say = |report: Report| {
        let written = write_line(&Line { at_ms: now_ms(), report });
        if written.is_err() {
            // Nobody listens any more.
            interrupted.store(true, Relaxed);
        }
    };
    let code = match perform(&job, &around, &mut say) {
        Ok(code) => code,
        Err(failure) => {
            let (id, backend) = (kind(&job).to_owned(), backend(job.place().backend));
            say(Report::Failed { id, backend, error: failure.message().unwrap_or_default(), code: failure.code() });
            failure.code()
        }
    };
    say(Report::Ended { code });
    if code == 0 { Ok(()) } else { Err(Failure::told(code)) }
}

/// Does a job. An error is one of the job itself, before anything of it has begun.
fn perform(job: &Job, around: &Around<'_>, say: &mut dyn FnMut(Report)) -> Result<u8, Failure> {
    match job {
        Job::Bench(job) => bench::run(job, around, say),
        Job::Burn(job) => burn::run(job, around, say),
        Job::Seeds(job) => seeds::run(job, around, say),
        Job::Oom(job) => oom::run(job, around, say),
        Job::Selftest(job) => selftest::run(job, around, say),
    }
}

fn kind(job: &Job) -> &'static str {
    match job {
        Job::Bench(_) => "bench",
        Job::Burn(_) => "burn",
        Job::Seeds(_) => "seeds",
        Job::Oom(_) => "oom",
        Job::Selftest(_) => "selftest",
    }
}

/// Where a job of this choice runs first.
fn backend(choice: BackendChoice) -> Backend {
    if choice == BackendChoice::Cpu { Backend::Cpu } else { Backend::Cuda }
}

fn read(typed: &str) -> Result<Job, Failure> {
    let mut text = typed.to_owned();
    if typed == "-" {
        text.clear();
        io::stdin().read_to_string(&mut text).context("cannot read the job from standard input")?;
    }
    let example = "give JSON, as {\"kind\":\"bench\",\"ids\":[\"copy\"]}";
    serde_json::from_str(&text).map_err(|error| Failure::usage(anyhow!("this is no job: {error}; {example}")))
}

/// The kernel ends this process when its parent ends, and gives back what it held.
fn end_with_parent(parent: Option<u32>) -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)?;
    let is_gone = |parent: &u32| getppid().is_none_or(|now| now.as_raw_nonzero().get().cast_unsigned() != *parent);
    match parent.filter(is_gone) {
        Some(parent) => Err(anyhow!("process {parent}, which wanted this work, has ended").into()),
        None => Ok(()),
    }
}

/// However often somebody asks to stop: whoever started this decides when it has been long enough.
fn heed_signals() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}

/// A line is written whole, so that a reader never waits for the rest of one.
fn write_line(line: &Line<Load>) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&text)?;
    out.flush()
}
