//! A run as a terminal starts and shows it: `gpumon_workload::parent` has the process that works, and this its signals,
//! its printed results and the server that shows it, too.
//!
//! - [`arguments`] are common to commands that start a run.
//! - [`printer`] prints what is reported, with the progress below it on a terminal.
//! - [`announcer`] passes reports on to a server of this machine.

mod announcer;
mod arguments;
mod printer;

use std::{
    env, io,
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::{Context, anyhow};
use gpumon_workload::{
    parent::{self, End, Listener, StandardError, StopReason, WorkerCommand, WorkerError},
    protocol::{
        Job, Line, NotAReport,
        exit_code::{FAILED, INTERRUPTED},
    },
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};

use self::announcer::Announcer;
use crate::{
    exit::{Failure, Result, say},
    options::SourceArgs,
};

pub(crate) use self::{
    arguments::{BesideArgs, WhereArgs, parse_share},
    printer::{ForPeople, print, print_list},
};

pub(crate) trait View {
    /// A line, as it came and as what it means.
    fn on_line(&mut self, raw: &str, line: Line) -> Result;

    fn on_tick(&mut self) {}

    fn end(&mut self) {}
}

/// Has a job done, and returns the exit code that was reported. `limit` is how long it may take.
pub(crate) fn follow(
    source: &SourceArgs,
    job: &Job,
    limit: Option<Duration>,
    beside: Option<&BesideArgs>,
    view: &mut dyn View,
) -> Result<u8> {
    let interrupted = install_signal_handlers()?;
    let limit = limit.unwrap_or_else(|| {
        job.usual_limit() + beside.map(BesideArgs::usual_time).unwrap_or_default()
    });
    let program = env::current_exe().context("cannot find gpumon's own program")?;
    let beside = beside.map(BesideArgs::to_arguments).unwrap_or_default();
    let arguments = source
        .to_arguments()
        .into_iter()
        .chain(["work".into()])
        .chain(beside)
        .collect();
    let command = WorkerCommand { program, arguments };
    let mut terminal = Terminal {
        view,
        announcer: Announcer::new(source),
        interrupted: &interrupted,
    };
    let end = parent::run(&command, job, limit, StandardError::Inherit, &mut terminal);
    terminal.view.end();
    terminal.announcer.end();
    let end = end.map_err(|error| match error {
        WorkerError::Listener(failure) => failure,
        WorkerError::Start { .. } => anyhow!("{error}: are there too many processes?").into(),
        WorkerError::LineTooLong(error) => anyhow!(error).into(),
    })?;
    if end.is_killed {
        say("the worker process did not exit and was killed");
    }
    match end {
        End { status: None, .. } => {
            Err(anyhow!("the worker process cannot be killed: it is stuck in the driver").into())
        }
        End {
            stopped: Some(StopReason::TimeLimit),
            ..
        } => {
            let limit = limit.as_secs();
            Err(
                anyhow!("the run exceeded its time limit of {limit}s: raise it with --time-limit")
                    .into(),
            )
        }
        End {
            code: Some(code), ..
        } => Ok(code),
        End {
            stopped: Some(StopReason::Canceled | StopReason::ParentEnds),
            ..
        } => Ok(INTERRUPTED),
        End {
            stopped: None,
            status: Some(status),
            ..
        } => {
            let fix = "run `gpumon doctor`, and see the kernel log (`dmesg`)";
            let error = anyhow!(
                "the worker process ended unexpectedly ({}): {fix}",
                how(status)
            );
            Err(Failure::with_code(error, FAILED))
        }
    }
}

struct Terminal<'a> {
    view: &'a mut dyn View,
    announcer: Announcer,
    interrupted: &'a AtomicBool,
}

impl Listener for Terminal<'_> {
    type Error = Failure;

    fn on_line(&mut self, raw: &str, line: Result<Line, NotAReport>) -> Result {
        // What a driver may print by itself is no report.
        let Ok(line) = line else { return Ok(()) };
        self.announcer.pass_on(raw);
        self.view.on_line(raw, line)
    }

    fn on_tick(&mut self) -> Option<StopReason> {
        self.view.on_tick();
        self.interrupted
            .load(Relaxed)
            .then_some(StopReason::Canceled)
    }
}

/// What the first signal to end sets. A second one ends this process at once, and a worker with it.
pub(crate) fn install_signal_handlers() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked))?;
        flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}

fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(9), _) => "killed by signal 9, as the kernel does where memory runs out".to_owned(),
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, code) => format!("exit code {}", code.unwrap_or_default()),
    }
}
