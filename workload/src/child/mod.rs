//! The process that works: it takes one [`Job`], writes how it goes to standard output, a [`Line`]
//! for each [`Report`], and ends with the exit code that the last of them carries.
//!
//! CUDA is entered here and nowhere else: a driver that crashes or hangs takes this process along
//! and nothing else, and the kernel gives back what it held. It ends with its parent.
//!
//! - [`placement`] is where a job runs, with its locks and refusals; [`bench_plan`] which workloads
//!   a bench runs.
//! - [`readings`] collects the driver's readings of the GPUs meanwhile. Who reads them is handed in
//!   ([`ReadDriver`]). [`load`] is what they come to, [`other_processes`] who else is on a GPU.
//! - [`bench`], [`burn`], [`oom`], [`selftest`] and [`tutorials`] each do one kind of job.

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
    /// The interpreter whose frameworks run beside workloads.
    python: Option<&'a Path>,
}

impl Context<'_> {
    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }

    /// The frameworks that run beside workloads.
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

/// Does the job that `argument` is as JSON (`-` for standard input), and returns the exit code that
/// was reported. Where `parent` is not the parent any more, nothing is done. `python` is the
/// interpreter whose frameworks run beside workloads.
///
/// # Errors
/// Where there is no job to do; nothing was reported then.
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
            // Nobody reads any more.
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

/// Does a job. An error is one of the job itself, before anything of it has begun.
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

/// The kernel ends this process when its parent ends, and gives back what it held.
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

/// However often somebody asks to stop: the parent decides when it has been long enough.
fn install_signal_handlers() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}

/// A line is written whole, so that a reader never waits for the rest of one.
fn write_line(line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&text)?;
    out.flush()
}

/// The worse of two exit codes: a wrong result counts more than one that could not be had.
fn worse(so_far: u8, code: u8) -> u8 {
    if so_far == exit_code::FAILED || code == 0 {
        so_far
    } else {
        code
    }
}

/// Each of what is named once, in the order in which it is named; all where nothing is.
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
