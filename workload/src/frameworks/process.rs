//! Python processes that respond to requests. Requests and responses are one JSON object per line.

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

use super::shared_data::{Operation, SharedData, SharedMemory};
use crate::{
    error::RunError,
    measure::{MAX_RUNS, MIN_RUNS, MeasureLimits, STEADY_DEVIATION},
    parent::{LineTooLong, read_last_line_on_thread, read_lines_on_thread},
};

const SCRIPT: &str = include_str!("frameworks.py");
const TICK: Duration = Duration::from_millis(100);
/// The maximum time to wait until the pipes of an ended process are closed. Its children may have
/// inherited them.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason why there is no response from a framework.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameworkError {
    #[error("the process could not be started: {0}")]
    Start(io::Error),
    /// The error message that the framework returned.
    #[error("{0}")]
    Told(String),
    #[error("the process ended: {0}")]
    Ended(String),
    #[error("no response after {} s", .0.as_secs())]
    Hung(Duration),
    #[error("the response cannot be parsed: {0}")]
    Unclear(#[from] serde_json::Error),
    #[error(transparent)]
    LineTooLong(#[from] LineTooLong),
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    NoRoom(#[from] RunError),
    #[error("data could not be transferred: {0}")]
    Io(#[from] io::Error),
}

/// A request to a framework's process.
#[derive(Debug, Serialize)]
pub(super) struct FrameworkRequest<'a> {
    #[serde(flatten)]
    operation: &'a Operation,
    inputs: Vec<String>,
    /// The path of the file that receives the last result.
    out: String,
    /// The path of the file that receives the times in us, as 64-bit floating-point numbers.
    times: String,
    warm_up_s: f64,
    least_s: f64,
    time_s: f64,
    fewest: usize,
    most: usize,
    steady: f64,
}

impl<'a> FrameworkRequest<'a> {
    pub(super) fn new(
        of: &'a SharedData,
        out: &SharedMemory,
        times: &SharedMemory,
        limits: &MeasureLimits,
    ) -> Self {
        Self {
            operation: &of.operation,
            inputs: of.inputs.iter().map(SharedMemory::path).collect(),
            out: out.path(),
            times: times.path(),
            warm_up_s: limits.warm_up.as_secs_f64(),
            least_s: limits.least.as_secs_f64(),
            time_s: limits.time.as_secs_f64(),
            fewest: MIN_RUNS,
            most: MAX_RUNS,
            steady: STEADY_DEVIATION,
        }
    }
}

/// The message of a process that is ready for requests.
#[derive(Debug, Deserialize)]
pub(super) struct ReadyMessage {
    pub(super) version: String,
}

#[derive(Debug, Deserialize)]
struct FrameworkResponse {
    /// Whether the framework has the operation and could run it as requested.
    #[serde(default)]
    ran: bool,
    error: Option<String>,
}

/// The process of a framework, which is killed when dropped.
pub(super) struct FrameworkProcess {
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<Result<String, LineTooLong>>,
    last_error_line: Option<Receiver<Option<String>>>,
    /// The version that the framework reports.
    pub(super) version: String,
}

impl FrameworkProcess {
    pub(super) fn start<'a>(
        python: &Path,
        arguments: &[&str],
        variables: impl IntoIterator<Item = (&'a str, &'a OsStr)>,
    ) -> Result<Self, FrameworkError> {
        let mut command = child::new_command(python);
        command
            .arg("-c")
            .arg(SCRIPT)
            .args(arguments)
            .envs(variables);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(FrameworkError::Start)?;
        let answers = read_lines_on_thread(child.stdout.take());
        let last_error_line = read_last_line_on_thread(child.stderr.take());
        Ok(Self {
            requests: child.stdin.take(),
            child,
            answers,
            last_error_line,
            version: String::new(),
        })
    }

    /// Sends a request, and returns `true` if the framework ran the operation.
    pub(super) fn send_request(
        &mut self,
        request: &FrameworkRequest<'_>,
        patience: Duration,
        interrupted: &AtomicBool,
    ) -> Result<bool, FrameworkError> {
        let line = serde_json::to_string(request)?;
        // If the process has ended, this fails, and waiting for the response returns the reason.
        let _ = self
            .requests
            .as_mut()
            .map(|requests| writeln!(requests, "{line}"));
        let FrameworkResponse { ran, error } = self.receive(patience, interrupted)?;
        error.map_or(Ok(ran), |error| Err(FrameworkError::Told(error)))
    }

    /// Waits for the next line that the process writes, and parses it.
    pub(super) fn receive<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
        interrupted: &AtomicBool,
    ) -> Result<T, FrameworkError> {
        let deadline = Instant::now() + patience;
        loop {
            match self.answers.recv_timeout(TICK) {
                Ok(line) => return Ok(serde_json::from_str(&line?)?),
                // Ctrl+C in a terminal interrupts both this process and the framework's.
                Err(_) if interrupted.load(Relaxed) => return Err(FrameworkError::Interrupted),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(FrameworkError::Ended(self.describe_end()));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                    return Err(FrameworkError::Hung(patience));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Returns the last line of standard error or, if there is none, the exit status.
    fn describe_end(&mut self) -> String {
        let last_line = self
            .last_error_line
            .take()
            .and_then(|line| line.recv_timeout(DRAIN_TIMEOUT).ok())
            .flatten();
        let status = || {
            self.child
                .wait()
                .map_or_else(|error| error.to_string(), |status| status.to_string())
        };
        last_line.unwrap_or_else(status)
    }
}

impl Drop for FrameworkProcess {
    fn drop(&mut self) {
        // Killing fails if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
