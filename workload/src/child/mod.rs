//! The worker process, which takes one [`Job`], writes a [`Line`] for each [`Report`] to standard
//! output, and exits with the code of the last report.
//!
//! CUDA is used only in this process. A driver that crashes or hangs therefore affects no other
//! process, and the operating system releases its memory. The process ends with its parent.
//!
//! - [`placement`] reserves the GPUs of a job, or refuses the job; [`bench_plan`] selects the
//!   workloads of a benchmark.
//! - [`readings`] collects the driver's readings of the GPUs during the work. The caller provides
//!   the code that reads them ([`ReadDriver`]). [`load`] summarizes the readings, and
//!   [`other_processes`] finds the other processes on a GPU.
//! - [`bench`], [`burn`], [`oom`], [`selftest`] and [`tutorials`] perform one kind of job each.

mod bench;
mod bench_plan;
mod burn;
mod failure;
mod load;
mod oom;
mod other_processes;
mod placement;
mod readings;
mod selftest;
mod tutorials;

use std::{
    io::{self, Read, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use gpumon_probe::model::now_ms;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};

pub use self::{failure::JobFailure, readings::ReadDriver};
use crate::{
    beside::{Failure, Frameworks},
    protocol::{Backend, BackendChoice, Job, Line, Report, exit_code},
    suggest::did_you_mean,
};

type Reporter<'a> = dyn FnMut(Report) + 'a;

pub(crate) struct Context<'a> {
    driver: &'a Arc<dyn ReadDriver>,
    interrupted: &'a AtomicBool,
    /// The interpreter with frameworks for comparison.
    python: Option<&'a Path>,
}

impl Context<'_> {
    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }

    /// Returns the frameworks for comparison, if any were requested.
    fn frameworks(&self) -> Result<Option<Frameworks<'_>>, JobFailure> {
        let find = |python: &Path| {
            Frameworks::find(python, self.interrupted).map_err(|error| match error {
                Failure::Interrupted => JobFailure::new(error, exit_code::INTERRUPTED),
                error => JobFailure::usage(format!(
                    "cannot list the frameworks of {}: {error}: name a Python interpreter with --python",
                    python.display()
                )),
            })
        };
        self.python.map(find).transpose()
    }
}

/// Performs the job in `argument`, which is JSON, or `-` for standard input. Returns the exit code
/// that was reported. Nothing is done if `parent` is no longer the parent process. `python` is the
/// interpreter with frameworks for comparison.
///
/// # Errors
/// Returns an error if there is no job to perform. In this case, nothing was reported.
pub fn run(
    argument: &str,
    parent: Option<u32>,
    python: Option<&Path>,
    driver: &Arc<dyn ReadDriver>,
) -> Result<u8, JobFailure> {
    end_with_parent(parent)?;
    let job = read_job(argument)?;
    let interrupted = install_signal_handlers().map_err(JobFailure::failed)?;
    let context = Context {
        driver,
        interrupted: &interrupted,
        python,
    };
    let mut report = |report: Report| {
        if write_line(&Line {
            at_ms: now_ms(),
            report,
        })
        .is_err()
        {
            // Nobody reads the reports anymore.
            interrupted.store(true, Relaxed);
        }
    };
    let code = match perform(&job, &context, &mut report) {
        Ok(code) => code,
        Err(JobFailure { message, code }) => {
            let (id, backend) = (job.kind().1.to_owned(), first_backend(job.place().backend));
            report(Report::Failed {
                id,
                backend,
                gpu: None,
                error: message,
                code,
            });
            code
        }
    };
    report(Report::Ended { code });
    Ok(code)
}

/// Performs a job. An error means that no part of the job was started.
fn perform(job: &Job, context: &Context<'_>, report: &mut Reporter<'_>) -> Result<u8, JobFailure> {
    match job {
        Job::Bench(job) => bench::run(job, context, report),
        Job::Burn(job) => burn::run(job, context, report),
        Job::Tutorials(job) => tutorials::run(job, context, report),
        Job::Oom(job) => oom::run(job, context, report),
        Job::Selftest(job) => selftest::run(job, context, report),
    }
}

fn first_backend(choice: BackendChoice) -> Backend {
    if choice == BackendChoice::Cpu {
        Backend::Cpu
    } else {
        Backend::Cuda
    }
}

fn read_job(argument: &str) -> Result<Job, JobFailure> {
    let mut text = argument.to_owned();
    if argument == "-" {
        text.clear();
        let read = io::stdin().read_to_string(&mut text);
        read.map_err(|error| {
            JobFailure::failed(format!("cannot read the job from standard input: {error}"))
        })?;
    }
    let example = "give JSON, as {\"kind\":\"bench\",\"ids\":[\"copy\"]}";
    Job::parse(text.as_bytes())
        .map_err(|error| JobFailure::usage(format!("invalid job: {error}; {example}")))
}

/// Makes the operating system kill this process when its parent ends, which also releases its
/// memory.
fn end_with_parent(parent: Option<u32>) -> Result<(), JobFailure> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| JobFailure::failed(format!("cannot follow the parent: {error}")))?;
    let is_gone = |parent: &u32| {
        getppid().is_none_or(|now| now.as_raw_nonzero().get().cast_unsigned() != *parent)
    };
    match parent.filter(is_gone) {
        Some(parent) => Err(JobFailure::failed(format!(
            "process {parent}, which wanted this work, has ended"
        ))),
        None => Ok(()),
    }
}

/// Makes each signal set a flag and do nothing else, however often it is sent. The parent decides
/// when to kill this process.
fn install_signal_handlers() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}

/// Writes a line as a whole, so that a reader never waits for the rest of it.
fn write_line(line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&text)?;
    out.flush()
}

/// Returns the worse of two exit codes: a wrong result is worse than a missing one.
fn worse(so_far: u8, code: u8) -> u8 {
    if so_far == exit_code::FAILED || code == 0 {
        so_far
    } else {
        code
    }
}

/// Returns each named item once, in the order of the names, or all items if there are no names.
fn named_once<T>(
    ids: &[String],
    all: &'static [T],
    id_of: impl Fn(&T) -> &'static str,
    kind: &str,
    otherwise: &str,
) -> Result<Vec<&'static T>, JobFailure> {
    let mut found: Vec<&T> = Vec::new();
    for id in ids {
        let one = all.iter().find(|one| id_of(one) == id).ok_or_else(|| {
            let fix = did_you_mean(id, all.iter().map(&id_of), otherwise);
            JobFailure::usage(format!("unknown {kind} '{id}': {fix}"))
        })?;
        if !found.iter().any(|other| id_of(other) == id) {
            found.push(one);
        }
    }
    Ok(if ids.is_empty() {
        all.iter().collect()
    } else {
        found
    })
}
