//! Python processes that answer requests, one JSON object per line.

use std::{
    ffi::OsStr,
    io::{self, Write},
    path::Path,
    process::{Child, ChildStdin, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use gpumon_probe::child;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::shared::{HandedOver, Memory, Operation};
use crate::{
    error::RunError,
    measure::{FEWEST, Limits, MOST, STEADY},
    parent::{keep_last_line, line_splitter::LineTooLong, split_lines},
};

const SCRIPT: &str = include_str!("frameworks.py");
const TICK: Duration = Duration::from_millis(100);
/// The maximum time for which the pipes of an ended process may stay open.
const DRAIN: Duration = Duration::from_secs(1);

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("it does not start: {0}")]
    Start(io::Error),
    /// The error message of the framework.
    #[error("{0}")]
    Told(String),
    #[error("the process ended: {0}")]
    Ended(String),
    #[error("no answer after {} s", .0.as_secs())]
    Hung(Duration),
    #[error("its answer is not understood: {0}")]
    Unclear(#[from] serde_json::Error),
    #[error(transparent)]
    LineTooLong(#[from] LineTooLong),
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    NoRoom(#[from] RunError),
    #[error("data cannot be handed over: {0}")]
    Io(#[from] io::Error),
}

/// A request to a process.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    #[serde(flatten)]
    operation: &'a Operation,
    inputs: Vec<String>,
    /// The path of the file for the last result.
    out: String,
    /// The path of the file for the times in us, as 64-bit numbers.
    times: String,
    warm_up_s: f64,
    least_s: f64,
    time_s: f64,
    fewest: usize,
    most: usize,
    steady: f64,
}

impl<'a> Request<'a> {
    pub(super) fn new(of: &'a HandedOver, out: &Memory, times: &Memory, limits: &Limits) -> Self {
        Self {
            operation: &of.operation,
            inputs: of.inputs.iter().map(Memory::path).collect(),
            out: out.path(),
            times: times.path(),
            warm_up_s: limits.warm_up.as_secs_f64(),
            least_s: limits.least.as_secs_f64(),
            time_s: limits.time.as_secs_f64(),
            fewest: FEWEST,
            most: MOST,
            steady: STEADY,
        }
    }
}

/// The message of a process that is ready.
#[derive(Debug, Deserialize)]
pub(super) struct Ready {
    pub(super) version: String,
}

#[derive(Debug, Deserialize)]
struct Answer {
    /// Whether the framework has the operation, and could run it as requested.
    #[serde(default)]
    ran: bool,
    error: Option<String>,
}

/// A process that is killed when this is dropped.
pub(super) struct Process {
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<Result<String, LineTooLong>>,
    last_error_line: Option<Receiver<Option<String>>>,
    /// The version of the framework.
    pub(super) version: String,
}

impl Process {
    pub(super) fn start<'a>(
        python: &Path,
        arguments: &[&str],
        variables: impl IntoIterator<Item = (&'a str, &'a OsStr)>,
    ) -> Result<Self, Failure> {
        let mut command = child::command(python);
        command
            .arg("-c")
            .arg(SCRIPT)
            .args(arguments)
            .envs(variables);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Failure::Start)?;
        let answers = split_lines(child.stdout.take());
        let last_error_line = keep_last_line(child.stderr.take());
        Ok(Self {
            requests: child.stdin.take(),
            child,
            answers,
            last_error_line,
            version: String::new(),
        })
    }

    /// Sends a request, and returns whether the framework ran it.
    pub(super) fn ask(
        &mut self,
        request: &Request<'_>,
        patience: Duration,
        interrupted: &AtomicBool,
    ) -> Result<bool, Failure> {
        let line = serde_json::to_string(request)?;
        // If the process has ended, waiting for the answer returns the reason.
        let _ = self
            .requests
            .as_mut()
            .map(|requests| writeln!(requests, "{line}"));
        let Answer { ran, error } = self.receive(patience, interrupted)?;
        error.map_or(Ok(ran), |error| Err(Failure::Told(error)))
    }

    /// Returns the next line that the process writes.
    pub(super) fn receive<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
        interrupted: &AtomicBool,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + patience;
        loop {
            match self.answers.recv_timeout(TICK) {
                Ok(line) => return Ok(serde_json::from_str(&line?)?),
                // Ctrl+C in a terminal interrupts both processes.
                Err(_) if interrupted.load(Relaxed) => return Err(Failure::Interrupted),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Ended(self.last_words()));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                    return Err(Failure::Hung(patience));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Returns the last line of standard error, or how the process ended.
    fn last_words(&mut self) -> String {
        let last_line = self
            .last_error_line
            .take()
            .and_then(|line| line.recv_timeout(DRAIN).ok())
            .flatten();
        let status = || {
            self.child
                .wait()
                .map_or_else(|error| error.to_string(), |status| status.to_string())
        };
        last_line.unwrap_or_else(status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Killing the process fails if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
