//! The worker process as seen by its parent, which starts it with a job, reads its lines, and ends
//! it if it takes too long or is no longer needed. A terminal and a server only differ in their
//! [`Listener`].
//!
//! [`line_splitter`] splits the output into lines, and [`signals`] defines the signals that end the
//! process.

pub mod line_splitter;
mod signals;

use std::{
    ffi::OsString,
    io::{self, Read},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, ExitStatus, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use gpumon_probe::child;
use rustix::process::{Pid, Signal, kill_process};

use self::{
    line_splitter::LineSplitter,
    signals::{Due, Signals},
};
pub use self::{line_splitter::LineTooLong, signals::StopReason};
use crate::protocol::{Job, Line, NotAReport, Report};

/// How often time limits and requests to stop are checked.
const TICK: Duration = Duration::from_millis(50);
/// How often the end of the process is checked after it has closed its output.
const SHORT_TICK: Duration = Duration::from_millis(5);
/// The maximum time for which the pipes of an ended process may stay open, because its children can
/// still have them.
const DRAIN: Duration = Duration::from_secs(1);
/// How long to wait for a killed process if there is no listener anymore.
const BURIAL: Duration = Duration::from_secs(1);

/// The command that starts the worker process.
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    /// The path of gpumon's own program.
    pub program: PathBuf,
    /// The arguments up to `work`. The parent's PID and the job are added to them.
    pub arguments: Vec<OsString>,
}

/// The use of the worker's standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardError {
    /// The worker writes to the same standard error as this process.
    Inherit,
    /// Only the last line is kept.
    KeepLastLine,
}

/// The consumer of a worker's lines.
pub trait Listener {
    /// The reason why the listener stops.
    type Error;

    /// Handles a line, given as text and as its parsed form.
    ///
    /// # Errors
    /// Returns the reason why the listener stops. The process is then killed.
    fn on_line(&mut self, raw: &str, line: Result<Line, NotAReport>) -> Result<(), Self::Error>;

    /// Called at short intervals. Returns the reason if the process should stop.
    fn on_tick(&mut self) -> Option<StopReason>;
}

/// The end of a worker process.
#[derive(Debug, Default)]
pub struct End {
    /// Why it was stopped; `None` if it ended by itself.
    pub stopped: Option<StopReason>,
    /// Whether it had to be killed.
    pub is_killed: bool,
    /// The exit code that it reported.
    pub code: Option<u8>,
    /// The exit status; `None` if the process did not even end when it was killed, because it is
    /// stuck in the driver.
    pub status: Option<ExitStatus>,
    /// The last line of standard error, if it is kept.
    pub last_error_line: Option<String>,
}

/// The reason why running a worker process failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError<E> {
    /// The process cannot be started.
    #[error("cannot start {}: {error}", .program.display())]
    Start { program: PathBuf, error: io::Error },
    /// The output of the process does not consist of lines.
    #[error(transparent)]
    LineTooLong(#[from] LineTooLong),
    /// The listener has stopped.
    #[error("nobody listens any more")]
    Listener(E),
}

/// Runs a job in a worker process, passes each of its lines to the listener, and returns when the
/// process has ended. The process is stopped after `limit`.
///
/// The worker process ends with the thread that calls this function, even if this process is
/// killed.
///
/// # Errors
/// Returns a [`WorkerError`]. The process has ended in this case, too.
pub fn run<L: Listener>(
    command: &WorkerCommand,
    job: &Job,
    limit: Duration,
    standard_error: StandardError,
    listener: &mut L,
) -> Result<End, WorkerError<L::Error>> {
    let mut worker =
        Worker::start(command, job, standard_error).map_err(|error| WorkerError::Start {
            program: command.program.clone(),
            error,
        })?;
    let lines = split_lines(worker.child.stdout.take());
    let last_error_line = keep_last_line(worker.child.stderr.take());
    let deadline = Instant::now() + limit;
    let (mut end, mut signals) = (End::default(), None::<Signals>);
    let (mut is_output_open, mut drained_by) = (true, None);
    loop {
        if is_output_open {
            match lines.recv_timeout(TICK) {
                Ok(raw) => {
                    let raw = raw?;
                    let line = Line::parse(&raw);
                    if let Ok(Line {
                        report: Report::Ended { code },
                        ..
                    }) = line
                    {
                        end.code = Some(code);
                    }
                    listener
                        .on_line(&raw, line)
                        .map_err(WorkerError::Listener)?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => is_output_open = false,
            }
        } else if drained_by.is_none() {
            thread::sleep(SHORT_TICK);
        }
        if end.status.is_none() {
            end.status = worker.try_wait();
        }
        if end.status.is_some() {
            let drained_by = *drained_by.get_or_insert_with(|| Instant::now() + DRAIN);
            if !is_output_open || Instant::now() >= drained_by {
                break;
            }
            continue;
        }
        let time_limit = (Instant::now() >= deadline).then_some(StopReason::TimeLimit);
        if let Some(reason) = listener.on_tick().or(time_limit)
            && end.stopped.is_none_or(|before| reason.overrides(before))
        {
            end.stopped = Some(reason);
            signals = Some(Signals::new(reason));
        }
        if let Some(signals) = &mut signals {
            match signals.due() {
                Due::Nothing => {}
                Due::Signal(signal) => {
                    end.is_killed |= signal == Signal::KILL;
                    worker.signal(signal);
                }
                // Nothing can end the process. Its pipes are as stuck as it is.
                Due::GiveUp => {
                    worker.is_given_up = true;
                    return Ok(end);
                }
            }
        }
    }
    end.last_error_line = last_error_line
        .and_then(|line| line.recv_timeout(DRAIN).ok())
        .flatten();
    Ok(end)
}

/// A request to stop that comes from elsewhere, such as a client or a signal handler.
#[derive(Debug, Default)]
pub struct StopRequest(AtomicBool);

impl StopRequest {
    /// Requests that the process stops.
    pub fn request(&self) {
        self.0.store(true, Relaxed);
    }

    /// Returns the reason to stop, if a stop was requested.
    pub fn reason(&self) -> Option<StopReason> {
        self.0.load(Relaxed).then_some(StopReason::Canceled)
    }
}

/// A worker process, which is killed if this is dropped before it has ended.
struct Worker {
    child: Child,
    is_given_up: bool,
}

impl Worker {
    fn start(
        command: &WorkerCommand,
        job: &Job,
        standard_error: StandardError,
    ) -> io::Result<Self> {
        let mut started = child::command(&command.program);
        started
            .arg0(job.command_line())
            .args(&command.arguments)
            .args(["--parent", &std::process::id().to_string()]);
        started
            .arg(serde_json::to_string(job)?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if standard_error == StandardError::KeepLastLine {
            started.stderr(Stdio::piped());
        }
        Ok(Self {
            child: started.spawn()?,
            is_given_up: false,
        })
    }

    fn try_wait(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    fn signal(&self, signal: Signal) {
        // The child has not been waited for, so its PID cannot have been reused.
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Killing the process fails if it has already ended.
        let _ = self.child.kill();
        let given_up_at = Instant::now() + BURIAL;
        while !self.is_given_up && self.try_wait().is_none() && Instant::now() < given_up_at {
            thread::sleep(SHORT_TICK);
        }
    }
}

/// Returns the lines of a pipe, which are read on a thread that ends with the pipe.
pub(crate) fn split_lines(
    out: Option<impl Read + Send + 'static>,
) -> Receiver<Result<String, LineTooLong>> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let result = each_line(out, |line| {
            // Sending fails if nobody listens anymore. The remaining lines are read and discarded.
            let _ = sender.send(Ok(line.to_owned()));
        });
        if let Err(too_long) = result {
            let _ = sender.send(Err(too_long));
        }
    });
    lines
}

/// Returns the last line of a pipe, after the pipe has ended.
pub(crate) fn keep_last_line(
    out: Option<impl Read + Send + 'static>,
) -> Option<Receiver<Option<String>>> {
    let out = Some(out?);
    let (sender, last_line) = mpsc::channel();
    thread::spawn(move || {
        let mut last = None;
        let _ = each_line(out, |line| last = Some(line.to_owned()));
        let _ = sender.send(last);
    });
    Some(last_line)
}

fn each_line(out: Option<impl Read>, mut on_line: impl FnMut(&str)) -> Result<(), LineTooLong> {
    let Some(mut out) = out else { return Ok(()) };
    let (mut splitter, mut chunk) = (LineSplitter::default(), vec![0; 16 * 1024]);
    loop {
        match out.read(&mut chunk) {
            Ok(length @ 1..) => splitter.push(&chunk[..length], |line| {
                if !line.is_empty() {
                    on_line(line);
                }
                Ok::<(), LineTooLong>(())
            })?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::protocol::BenchJob;

    /// A listener that keeps all lines, stops the process after a given line, and refuses a certain
    /// line.
    #[derive(Default)]
    struct Kept {
        lines: Vec<String>,
        stop_at: Option<&'static str>,
    }

    impl Listener for Kept {
        type Error = String;

        fn on_line(&mut self, raw: &str, line: Result<Line, NotAReport>) -> Result<(), String> {
            self.lines.push(raw.to_owned());
            if raw == "refuse" {
                Err(line.unwrap_err().to_string())
            } else {
                Ok(())
            }
        }

        fn on_tick(&mut self) -> Option<StopReason> {
            let stop_at = self.stop_at?;
            self.lines
                .iter()
                .any(|line| line == stop_at)
                .then_some(StopReason::ParentEnds)
        }
    }

    fn shell(
        script: &str,
        limit: Duration,
        stop_at: Option<&'static str>,
    ) -> (Result<End, WorkerError<String>>, Kept) {
        // Tests that were started in the background may have inherited that SIGINT is ignored.
        let words = ["--default-signal=INT", "/bin/sh", "-c", script, "worker"];
        let command = WorkerCommand {
            program: "env".into(),
            arguments: words.map(Into::into).to_vec(),
        };
        let mut kept = Kept {
            stop_at,
            ..Kept::default()
        };
        let end = run(
            &command,
            &Job::Bench(BenchJob::default()),
            limit,
            StandardError::KeepLastLine,
            &mut kept,
        );
        (end, kept)
    }

    const HOUR: Duration = Duration::from_hours(1);

    #[test]
    fn the_process_gets_its_parent_and_its_job_and_its_end_is_reported() {
        let (end, kept) = shell(
            r#"echo "$1 $2"; echo "$3"; echo '{"report":"ended","code":5}'; exit 5"#,
            HOUR,
            None,
        );
        let end = end.unwrap();
        assert_eq!(
            (end.code, end.stopped, end.is_killed),
            (Some(5), None, false)
        );
        assert_eq!(end.status.and_then(|status| status.code()), Some(5));
        assert_eq!(kept.lines[0], format!("--parent {}", std::process::id()));
        assert!(
            kept.lines[1].contains(r#""kind":"bench""#),
            "{:?}",
            kept.lines
        );
    }

    #[test]
    fn what_takes_longer_than_it_may_is_ended() {
        let (end, kept) = shell("echo here; exec sleep 60", Duration::from_millis(300), None);
        let end = end.unwrap();
        assert_eq!(
            (end.stopped, end.is_killed),
            (Some(StopReason::TimeLimit), false)
        );
        assert_eq!(
            end.status.and_then(|status| status.signal()),
            Some(Signal::INT.as_raw())
        );
        assert_eq!(kept.lines, ["here"]);
    }

    #[test]
    fn what_does_not_listen_is_killed() {
        let begun = Instant::now();
        let (end, _) = shell(
            "trap '' INT TERM; echo here; while :; do sleep 0.05; done",
            HOUR,
            Some("here"),
        );
        let end = end.unwrap();
        assert_eq!(
            (end.stopped, end.is_killed),
            (Some(StopReason::ParentEnds), true)
        );
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "{:?}",
            begun.elapsed()
        );
    }

    #[test]
    fn the_last_words_of_one_that_crashes_are_kept() {
        let (end, _) = shell("echo first >&2; echo last >&2; kill -9 $$", HOUR, None);
        let end = end.unwrap();
        assert_eq!(
            (end.last_error_line.as_deref(), end.code),
            (Some("last"), None)
        );
        assert_eq!(end.status.and_then(|status| status.signal()), Some(9));
    }

    #[test]
    fn a_listener_that_refuses_a_line_and_a_line_without_an_end_end_the_process() {
        let (refused, _) = shell("echo refuse; exec sleep 60", HOUR, None);
        assert!(matches!(refused, Err(WorkerError::Listener(why)) if why.contains("not a report")));
        let (endless, _) = shell(
            "head -c 100000 /dev/zero | tr '\\0' x; exec sleep 60",
            HOUR,
            None,
        );
        assert!(matches!(
            endless,
            Err(WorkerError::LineTooLong(LineTooLong))
        ));
        let command = WorkerCommand {
            program: "/nonexistent".into(),
            arguments: Vec::new(),
        };
        let job = Job::Bench(BenchJob::default());
        let missing = run(
            &command,
            &job,
            HOUR,
            StandardError::Inherit,
            &mut Kept::default(),
        )
        .unwrap_err();
        assert!(missing.to_string().contains("/nonexistent"), "{missing}");
    }
}
