//! The worker process, as seen by its parent. The parent starts it with a job, reads its lines, and
//! ends it if it takes too long or is no longer needed. Terminals and servers only differ in their
//! [`Listener`].

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

use crate::protocol::{InvalidReport, Job, Report, ReportLine};

/// The interval at which time limits and stop requests are checked.
const TICK: Duration = Duration::from_millis(50);
/// The interval at which the end of the process is checked, after it has closed its output.
const SHORT_TICK: Duration = Duration::from_millis(5);
/// The maximum time to wait until the pipes of an ended process are closed. Its children may have
/// inherited them.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum time to wait for the end of a worker process that is killed because it is dropped.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// The command that starts the worker process.
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    /// The path of gpumon's own executable.
    pub program: PathBuf,
    /// The arguments up to and including `work`. The parent's PID and the job are appended.
    pub arguments: Vec<OsString>,
}

/// The handling of the worker's standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardError {
    /// The worker writes to the standard error of this process.
    Inherit,
    /// Only the last line of the worker's standard error is kept.
    KeepLastLine,
}

/// A consumer of a worker's report lines.
pub trait Listener {
    /// The reason why the listener stops.
    type Error;

    /// Handles a line, given as text and in parsed form.
    ///
    /// # Errors
    /// Returns the reason why the listener stopped. The process is then killed.
    fn on_line(
        &mut self,
        raw: &str,
        line: Result<ReportLine, InvalidReport>,
    ) -> Result<(), Self::Error>;

    /// Is called at short intervals. Returns the reason to stop the process, if there is one.
    fn on_tick(&mut self) -> Option<StopReason>;
}

/// Information about how a worker process ended.
#[derive(Debug, Default)]
pub struct WorkerEnd {
    /// The reason why the process was stopped; `None` if it ended on its own.
    pub stopped: Option<StopReason>,
    /// Whether the process had to be killed.
    pub is_killed: bool,
    /// The exit code that the process reported.
    pub code: Option<u8>,
    /// The exit status; `None` if the process did not end even after it was killed, because it is
    /// stuck in the driver.
    pub status: Option<ExitStatus>,
    /// The last line of standard error, if it was kept.
    pub last_error_line: Option<String>,
}

/// The reason why running a worker process failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError<E> {
    /// The process could not be started.
    #[error("cannot start {}: {error}", .program.display())]
    Start { program: PathBuf, error: io::Error },
    /// The process wrote a line that is too long for a report.
    #[error(transparent)]
    LineTooLong(#[from] LineTooLong),
    /// The listener returned an error.
    #[error("the receiver of the reports has ended")]
    Listener(E),
}

/// Runs a job in a worker process, and waits until the process has ended. Each of its lines is
/// passed to the listener. The process is stopped after `limit`.
///
/// The worker process ends together with the thread that calls this function, even if this process
/// is killed.
///
/// # Errors
/// Returns a [`WorkerError`]. In this case, the process has ended too.
pub fn run_worker<L: Listener>(
    command: &WorkerCommand,
    job: &Job,
    limit: Duration,
    standard_error: StandardError,
    listener: &mut L,
) -> Result<WorkerEnd, WorkerError<L::Error>> {
    let mut worker =
        WorkerProcess::start(command, job, standard_error).map_err(|error| WorkerError::Start {
            program: command.program.clone(),
            error,
        })?;
    let lines = read_lines_on_thread(worker.child.stdout.take());
    let last_error_line = read_last_line_on_thread(worker.child.stderr.take());
    let deadline = Instant::now() + limit;
    let (mut end, mut signals) = (WorkerEnd::default(), None::<SignalSequence>);
    let (mut is_output_open, mut drained_by) = (true, None);
    loop {
        if is_output_open {
            match lines.recv_timeout(TICK) {
                Ok(raw) => {
                    let raw = raw?;
                    let line = ReportLine::parse(&raw);
                    if let Ok(ReportLine {
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
            let drained_by = *drained_by.get_or_insert_with(|| Instant::now() + DRAIN_TIMEOUT);
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
            signals = Some(SignalSequence::new(reason));
        }
        if let Some(signals) = &mut signals {
            match signals.next_action() {
                NextAction::Nothing => {}
                NextAction::Signal(signal) => {
                    end.is_killed |= signal == Signal::KILL;
                    worker.send_signal(signal);
                }
                // The process did not end after all signals. Its pipes may never close, so they are
                // not waited for.
                NextAction::GiveUp => {
                    worker.is_given_up = true;
                    return Ok(end);
                }
            }
        }
    }
    end.last_error_line = last_error_line
        .and_then(|line| line.recv_timeout(DRAIN_TIMEOUT).ok())
        .flatten();
    Ok(end)
}

/// A request to stop a worker process, made by a client or a signal handler.
#[derive(Debug, Default)]
pub struct StopRequest(AtomicBool);

impl StopRequest {
    /// Requests that the worker process stops.
    pub fn request_stop(&self) {
        self.0.store(true, Relaxed);
    }

    /// Returns the reason to stop, if a stop was requested.
    pub fn reason(&self) -> Option<StopReason> {
        self.0.load(Relaxed).then_some(StopReason::Canceled)
    }
}

/// A worker process. If dropped before the process has ended, the process is killed.
struct WorkerProcess {
    child: Child,
    is_given_up: bool,
}

impl WorkerProcess {
    fn start(
        command: &WorkerCommand,
        job: &Job,
        standard_error: StandardError,
    ) -> io::Result<Self> {
        let mut started = child::new_command(&command.program);
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

    fn send_signal(&self, signal: Signal) {
        // The child has not been waited for yet, so its PID cannot have been reused.
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // Killing fails if the process has already ended.
        let _ = self.child.kill();
        let given_up_at = Instant::now() + KILL_TIMEOUT;
        while !self.is_given_up && self.try_wait().is_none() && Instant::now() < given_up_at {
            thread::sleep(SHORT_TICK);
        }
    }
}

/// Returns a channel with the lines of a pipe. They are read on a separate thread, which ends when
/// the pipe is closed.
pub(crate) fn read_lines_on_thread(
    out: Option<impl Read + Send + 'static>,
) -> Receiver<Result<String, LineTooLong>> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let result = for_each_line(out, |line| {
            // Sending fails if nobody is listening anymore. The remaining lines are then read and
            // discarded.
            let _ = sender.send(Ok(line.to_owned()));
        });
        if let Err(too_long) = result {
            let _ = sender.send(Err(too_long));
        }
    });
    lines
}

/// Returns a channel that receives the last line of a pipe after the pipe was closed.
pub(crate) fn read_last_line_on_thread(
    out: Option<impl Read + Send + 'static>,
) -> Option<Receiver<Option<String>>> {
    let out = Some(out?);
    let (sender, last_line) = mpsc::channel();
    thread::spawn(move || {
        let mut last = None;
        let _ = for_each_line(out, |line| last = Some(line.to_owned()));
        let _ = sender.send(last);
    });
    Some(last_line)
}

fn for_each_line(out: Option<impl Read>, mut on_line: impl FnMut(&str)) -> Result<(), LineTooLong> {
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

/// The maximum length of a line in bytes. A result with all its times is a few KB long.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// A splitter that divides an untrusted byte stream into lines.
#[derive(Debug, Default)]
pub struct LineSplitter {
    /// The bytes after the last line end.
    rest: Vec<u8>,
}

/// The error for a line that is longer than any report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than 64 KiB")]
pub struct LineTooLong;

impl LineSplitter {
    /// Adds bytes, and passes each complete line to `on_line`, without its line end.
    ///
    /// # Errors
    /// Returns [`LineTooLong`], or the error of `on_line`.
    pub fn push<E: From<LineTooLong>>(
        &mut self,
        bytes: &[u8],
        mut on_line: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.rest.len() + part.len() > MAX_LINE_BYTES {
                return Err(LineTooLong.into());
            }
            self.rest.extend_from_slice(part);
            if parts.peek().is_some() {
                let line = std::mem::take(&mut self.rest);
                on_line(String::from_utf8_lossy(&line).trim())?;
            }
        }
        Ok(())
    }
}

// The signals that end the worker process, and the time within which each must take effect.

/// The reason why a process is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The run was canceled by a user.
    Canceled,
    /// The time limit of the job was reached.
    TimeLimit,
    /// The parent process is exiting.
    ParentEnds,
}

type SignalStep = (Signal, Duration);

const SIGNAL_TIMEOUT: Duration = Duration::from_secs(5);
/// The signals that are sent to the worker process unless the parent is exiting. After the first
/// signal, the worker process releases its memory and reports its results.
const USUAL_STEPS: &[SignalStep] = &[
    (Signal::INT, SIGNAL_TIMEOUT),
    (Signal::TERM, SIGNAL_TIMEOUT),
    (Signal::KILL, SIGNAL_TIMEOUT),
];
/// The signals that are sent to the worker process when the parent is exiting. The parent waits at
/// most one second for the worker process to end.
const PARENT_END_STEPS: &[SignalStep] = &[
    (Signal::INT, Duration::from_millis(600)),
    (Signal::KILL, SIGNAL_TIMEOUT),
];

impl StopReason {
    /// Returns `true` if this reason replaces `before`, an earlier reason for which the process is
    /// already being stopped.
    fn overrides(self, before: Self) -> bool {
        self == Self::ParentEnds && before != Self::ParentEnds
    }
}

/// The next action for ending a process.
#[derive(Debug, PartialEq, Eq)]
enum NextAction {
    /// Nothing has to be done, because the last signal still has time to take effect.
    Nothing,
    /// This signal has to be sent to the process.
    Signal(Signal),
    /// All signals were sent without effect.
    GiveUp,
}

/// The signals that have not been sent yet.
struct SignalSequence {
    steps: std::slice::Iter<'static, SignalStep>,
    next_at: Instant,
}

impl SignalSequence {
    fn new(reason: StopReason) -> Self {
        let steps = if reason == StopReason::ParentEnds {
            PARENT_END_STEPS
        } else {
            USUAL_STEPS
        };
        Self {
            steps: steps.iter(),
            next_at: Instant::now(),
        }
    }

    /// Returns the action that is currently due. Each signal is returned only once.
    fn next_action(&mut self) -> NextAction {
        if Instant::now() < self.next_at {
            return NextAction::Nothing;
        }
        let step = self.steps.next();
        self.next_at = Instant::now() + step.map_or(SIGNAL_TIMEOUT, |(_, patience)| *patience);
        step.map_or(NextAction::GiveUp, |(signal, _)| {
            NextAction::Signal(*signal)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::protocol::BenchJob;

    /// A listener that keeps all lines, stops the process after a certain line, and returns an
    /// error for another.
    #[derive(Default)]
    struct TestListener {
        lines: Vec<String>,
        stop_at: Option<&'static str>,
    }

    impl Listener for TestListener {
        type Error = String;

        fn on_line(
            &mut self,
            raw: &str,
            line: Result<ReportLine, InvalidReport>,
        ) -> Result<(), String> {
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

    fn run_shell(
        script: &str,
        limit: Duration,
        stop_at: Option<&'static str>,
    ) -> (Result<WorkerEnd, WorkerError<String>>, TestListener) {
        // SIGINT may be ignored if the tests were started in the background, and child processes
        // inherit this setting. So its default action is restored.
        let words = ["--default-signal=INT", "/bin/sh", "-c", script, "worker"];
        let command = WorkerCommand {
            program: "env".into(),
            arguments: words.map(Into::into).to_vec(),
        };
        let mut kept = TestListener {
            stop_at,
            ..TestListener::default()
        };
        let end = run_worker(
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
    fn worker_gets_parent_and_job_and_reports_end() {
        let (end, kept) = run_shell(
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
    fn worker_is_stopped_at_time_limit() {
        let (end, kept) = run_shell("echo here; exec sleep 60", Duration::from_millis(300), None);
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
    fn worker_that_ignores_signals_is_killed() {
        let begun = Instant::now();
        let (end, _) = run_shell(
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
    fn last_error_line_of_crashed_worker_is_kept() {
        let (end, _) = run_shell("echo first >&2; echo last >&2; kill -9 $$", HOUR, None);
        let end = end.unwrap();
        assert_eq!(
            (end.last_error_line.as_deref(), end.code),
            (Some("last"), None)
        );
        assert_eq!(end.status.and_then(|status| status.signal()), Some(9));
    }

    #[test]
    fn invalid_or_endless_output_line_ends_worker() {
        let (refused, _) = run_shell("echo refuse; exec sleep 60", HOUR, None);
        assert!(matches!(refused, Err(WorkerError::Listener(why)) if why.contains("not a report")));
        let (endless, _) = run_shell(
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
        let missing = run_worker(
            &command,
            &job,
            HOUR,
            StandardError::Inherit,
            &mut TestListener::default(),
        )
        .unwrap_err();
        assert!(missing.to_string().contains("/nonexistent"), "{missing}");
    }
}

#[cfg(test)]
mod line_splitter_tests {
    use super::*;

    fn split_chunks(chunks: &[&[u8]]) -> Result<Vec<String>, LineTooLong> {
        let (mut lines, mut found) = (LineSplitter::default(), Vec::new());
        for chunk in chunks {
            lines.push(chunk, |line| {
                found.push(line.to_owned());
                Ok::<(), LineTooLong>(())
            })?;
        }
        Ok(found)
    }

    #[test]
    fn lines_split_across_chunks_are_joined() {
        assert_eq!(
            split_chunks(&[b"a\nb", b"", b"c\r\n\nd", b"e"]).unwrap(),
            ["a", "bc", ""]
        );
        assert_eq!(
            split_chunks(&[b"\xff\xfe\n"]).unwrap(),
            ["\u{fffd}\u{fffd}"]
        );
    }

    #[test]
    fn endless_line_is_refused() {
        let chunk = vec![b'x'; 40_000];
        assert_eq!(split_chunks(&[&chunk]).unwrap(), Vec::<String>::new());
        assert_eq!(split_chunks(&[&chunk, &chunk]), Err(LineTooLong));
        assert_eq!(
            split_chunks(&[&vec![b'x'; MAX_LINE_BYTES], b"\n"])
                .unwrap()
                .len(),
            1
        );
    }
}

#[cfg(test)]
mod signals_tests {
    use super::*;

    #[test]
    fn each_stop_signal_is_sent_once() {
        let mut signals = SignalSequence::new(StopReason::ParentEnds);
        assert_eq!(
            (signals.next_action(), signals.next_action()),
            (NextAction::Signal(Signal::INT), NextAction::Nothing)
        );
        signals.next_at = Instant::now();
        assert_eq!(signals.next_action(), NextAction::Signal(Signal::KILL));
        signals.next_at = Instant::now();
        assert_eq!(signals.next_action(), NextAction::GiveUp);
        assert!(StopReason::ParentEnds.overrides(StopReason::Canceled));
        assert!(!StopReason::Canceled.overrides(StopReason::TimeLimit));
    }
}
