//! The worker process. It receives one [`Job`], writes a [`ReportLine`] for each [`Report`] to
//! standard output, and exits with the code of the last report.
//!
//! CUDA is used only in this process. A driver that crashes or hangs therefore affects no other
//! process, and the operating system releases its memory. The process ends together with its
//! parent.
//!
//! - [`placement`] reserves the GPUs for a job, or refuses the job. [`bench_plan`] selects the
//!   workloads of a benchmark.
//! - [`readings`] collects and summarizes the driver's readings of the GPUs during the work, and
//!   finds the other processes on a GPU. The caller provides the code that reads the GPUs
//!   ([`DriverReader`]).
//! - [`mod@bench`], [`burn`], [`oom`], [`selftest`] and [`tutorials`] each perform one kind of job.

mod bench;
mod bench_plan;
mod burn;
mod oom;
mod placement;
mod readings;
mod selftest;
mod tutorials;

use std::{
    fmt,
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

use crate::{
    cuda::CudaError,
    error::RunError,
    frameworks::{FrameworkError, Frameworks},
    protocol::{
        Backend, BackendChoice, Job, Report, ReportLine,
        report::{EXIT_FAILED, EXIT_INTERRUPTED, EXIT_NO_GPU, EXIT_REFUSED, EXIT_USAGE},
    },
    suggest::suggest_word,
};

pub use self::readings::DriverReader;

type Reporter<'a> = dyn FnMut(Report) + 'a;

pub(crate) struct JobContext<'a> {
    driver: &'a Arc<dyn DriverReader>,
    interrupted: &'a AtomicBool,
    /// The Python interpreter with other frameworks for comparison.
    python: Option<&'a Path>,
}

impl JobContext<'_> {
    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }

    /// Returns the other frameworks for comparison, if a Python interpreter was given.
    fn frameworks(&self) -> Result<Option<Frameworks<'_>>, JobFailure> {
        let find = |python: &Path| {
            Frameworks::detect_with_python(python, self.interrupted).map_err(|error| match error {
                FrameworkError::Interrupted => JobFailure::new(error, EXIT_INTERRUPTED),
                error => JobFailure::usage_error(format!(
                    "cannot list the frameworks of {}: {error}; choose a Python interpreter with \
                     --python",
                    python.display()
                )),
            })
        };
        self.python.map(find).transpose()
    }
}

/// Performs a job, and returns the exit code that was reported. `argument` is the job as JSON, or
/// `-` to read it from standard input. Nothing is done if `parent` is not the parent process.
/// `python` is the Python interpreter with other frameworks for comparison.
///
/// # Errors
/// Returns an error if there is no job to perform. In this case, nothing was reported.
pub fn run_job(
    argument: &str,
    parent: Option<u32>,
    python: Option<&Path>,
    driver: &Arc<dyn DriverReader>,
) -> Result<u8, JobFailure> {
    bind_lifetime_to_parent(parent)?;
    let job = read_job(argument)?;
    let interrupted = install_signal_handlers().map_err(JobFailure::general_error)?;
    let context = JobContext {
        driver,
        interrupted: &interrupted,
        python,
    };
    let mut report = |report: Report| {
        if write_line(&ReportLine {
            at_ms: now_ms(),
            report,
        })
        .is_err()
        {
            // A failed write means that nobody reads the reports, so the work is stopped.
            interrupted.store(true, Relaxed);
        }
    };
    let code = match perform_job(&job, &context, &mut report) {
        Ok(code) => code,
        Err(JobFailure { message, code }) => {
            let (id, backend) = (
                job.kind_and_name().1.to_owned(),
                first_backend(job.backend_and_device().backend),
            );
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
fn perform_job(
    job: &Job,
    context: &JobContext<'_>,
    report: &mut Reporter<'_>,
) -> Result<u8, JobFailure> {
    match job {
        Job::Bench(job) => bench::run_bench(job, context, report),
        Job::Burn(job) => burn::run_burn(job, context, report),
        Job::Tutorials(job) => tutorials::run_tutorials(job, context, report),
        Job::Oom(job) => oom::run_oom(job, context, report),
        Job::Selftest(job) => selftest::run_selftest(job, context, report),
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
            JobFailure::general_error(format!("cannot read the job from standard input: {error}"))
        })?;
    }
    let example = "use JSON such as {\"kind\":\"bench\",\"ids\":[\"copy\"]}";
    Job::parse(text.as_bytes())
        .map_err(|error| JobFailure::usage_error(format!("invalid job: {error}; {example}")))
}

/// Makes the operating system kill this process when its parent ends, so that no process is left
/// behind that holds GPU memory.
fn bind_lifetime_to_parent(parent: Option<u32>) -> Result<(), JobFailure> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| {
        JobFailure::general_error(format!(
            "cannot make this process end with its parent process: {error}"
        ))
    })?;
    let is_gone = |parent: &u32| {
        getppid().is_none_or(|now| now.as_raw_nonzero().get().cast_unsigned() != *parent)
    };
    match parent.filter(is_gone) {
        Some(parent) => Err(JobFailure::general_error(format!(
            "the parent process {parent} has ended"
        ))),
        None => Ok(()),
    }
}

/// Makes signals set a flag, and have no other effect. They do not kill this process even if they
/// are sent repeatedly, because the parent decides when to kill it.
fn install_signal_handlers() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}

/// Writes a whole line at a time, so that a reader never has to wait for the rest of it.
fn write_line(line: &ReportLine) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&text)?;
    out.flush()
}

/// Returns the worse of two exit codes. A wrong result is worse than a missing one.
fn worse_code(so_far: u8, code: u8) -> u8 {
    if so_far == EXIT_FAILED || code == 0 {
        so_far
    } else {
        code
    }
}

/// Returns each named item once, in the order of the names, or all items if there are no names.
fn select_items<T>(
    ids: &[String],
    all: &'static [T],
    id_of: impl Fn(&T) -> &'static str,
    kind: &str,
    otherwise: &str,
) -> Result<Vec<&'static T>, JobFailure> {
    let mut found: Vec<&T> = Vec::new();
    for id in ids {
        let one = all.iter().find(|one| id_of(one) == id).ok_or_else(|| {
            let fix = suggest_word(id, all.iter().map(&id_of), otherwise);
            JobFailure::usage_error(format!("unknown {kind} '{id}': {fix}"))
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

/// The reason why a job was not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JobFailure {
    /// The message, which contains the subject, the cause and the remedy.
    pub message: String,
    /// The exit code for this failure.
    pub code: u8,
}

impl JobFailure {
    pub(crate) fn new(error: impl fmt::Display, code: u8) -> Self {
        Self {
            message: error.to_string(),
            code,
        }
    }

    /// Returns the failure of a job that requests something impossible.
    pub(crate) fn usage_error(error: impl fmt::Display) -> Self {
        Self::new(error, EXIT_USAGE)
    }

    pub(crate) fn general_error(error: impl fmt::Display) -> Self {
        Self::new(error, EXIT_FAILED)
    }

    pub(crate) fn refusal(error: impl fmt::Display) -> Self {
        Self::new(error, EXIT_REFUSED)
    }

    /// Returns the failure of a job that finds no working GPU.
    pub(crate) fn no_gpu_error(error: impl Into<RunError>) -> Self {
        Self::new(error.into(), EXIT_NO_GPU)
    }
}

pub(crate) fn exit_code_of(error: &RunError) -> u8 {
    match error {
        RunError::TooLarge { .. } | RunError::TooLittle { .. } => EXIT_REFUSED,
        _ => EXIT_FAILED,
    }
}

impl From<CudaError> for JobFailure {
    fn from(error: CudaError) -> Self {
        Self::no_gpu_error(error)
    }
}
