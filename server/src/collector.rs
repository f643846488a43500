//! A collector process, from its start to its end, and killed collectors that do not exit.

use std::{io, process::Stdio, time::Duration};

use gpumon_probe::{child, model::KnownGpu};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

use crate::{
    hub::Hub,
    supervisor::{CollectorCommand, CollectorInstructions, CollectorRequest},
};

/// The time limit for the collector's first line. Without persistence mode, the driver needs up to
/// half a minute to open its GPUs.
const FIRST_LINE_TIMEOUT: Duration = Duration::from_mins(1);
/// A collector is considered to hang if it has written no line for this number of sampling
/// intervals, and for at least `MIN_SILENCE`.
const SILENT_INTERVALS: u32 = 5;
const MIN_SILENCE: Duration = Duration::from_secs(5);
/// How long the server waits for a collector to exit after its output has closed, and for a
/// collector to read a line from its standard input.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// How a collector ended.
pub(crate) enum CollectorEnd {
    /// The collector reported why there are no readings, and exited before its first record.
    NothingToRead(String),
    /// Another server provides the readings.
    NotNeeded,
    /// The collector does not read some GPUs that a restarted collector would read. The message
    /// describes these GPUs.
    Outdated(String),
    /// The collector crashed, is hanging, or wrote a line that is not a record.
    Broken {
        /// The description of the problem.
        message: String,
        /// Whether the collector had written at least one record.
        had_begun: bool,
    },
}

/// A running collector process.
pub(crate) struct RunningCollector {
    pub(crate) child: Child,
    requests: RequestWriter,
    lines: Lines<BufReader<ChildStdout>>,
    last_message: JoinHandle<Option<String>>,
    /// The current instructions for the collector. The fields `sent_interval` and `sent_watched`
    /// are the values that were last sent to the collector.
    instructions: CollectorInstructions,
    sent_interval: Duration,
    sent_watched: bool,
    /// The known GPUs, which are sent to the collector before anything else. Nothing is sent if the
    /// list is empty.
    known_gpus: Vec<KnownGpu>,
    lines_read: u64,
}

impl RunningCollector {
    pub(crate) fn start(
        collector: &CollectorCommand,
        instructions: CollectorInstructions,
        known_gpus: Vec<KnownGpu>,
    ) -> io::Result<Self> {
        let mut child = Command::from(child::new_command(&collector.program))
            .args(&collector.arguments)
            .args((!known_gpus.is_empty()).then_some("--known-gpus"))
            // The collector ends when this pipe is closed, even if this process is killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (requests, stdout, stderr) = take_pipes(&mut child)?;
        let last_message = tokio::spawn(log_stderr(BufReader::new(stderr).lines()));
        let lines = BufReader::new(stdout).lines();
        Ok(Self {
            child,
            requests,
            lines,
            last_message,
            instructions,
            sent_interval: collector.interval,
            sent_watched: true,
            known_gpus,
            lines_read: 0,
        })
    }

    /// Returns `true` if the collector has written at least one record.
    pub(crate) fn has_written_record(&self) -> bool {
        self.lines_read > 0
    }

    /// Passes on the collector's records until it ends or a problem occurs.
    pub(crate) async fn monitor_output(&mut self, hub: &Hub) -> CollectorEnd {
        match self.exchange_lines_until_end(hub).await {
            Some(message) => CollectorEnd::Broken {
                message,
                had_begun: self.has_written_record(),
            },
            None => self.wait_for_exit_reason().await,
        }
    }

    /// Reads the collector's output. Returns a description of the problem, or `None` if the output
    /// was closed.
    async fn exchange_lines_until_end(&mut self, hub: &Hub) -> Option<String> {
        let mut last_line = Instant::now();
        let known_gpus = std::mem::take(&mut self.known_gpus);
        if !known_gpus.is_empty() {
            self.requests
                .send(CollectorRequest::KnownGpus(known_gpus))
                .await;
        }
        if !self.instructions.allocations.borrow().is_empty() {
            self.instructions.allocations.mark_changed();
        }
        let mut answers_requests = hub.subscribe_answer_requests();
        // After a change of the interval, the collector may use the previous interval until its
        // next line. The longer of the two therefore determines how long the collector may be
        // silent.
        let mut slowest = self.sent_interval;
        loop {
            let wanted = *self.instructions.interval.borrow_and_update();
            if wanted != self.sent_interval {
                self.sent_interval = wanted;
                self.requests
                    .send(CollectorRequest::IntervalMs(wanted.as_millis() as u32))
                    .await;
                slowest = slowest.max(wanted);
            }
            let is_watched = *self.instructions.watchers.borrow_and_update() > 0;
            if is_watched != self.sent_watched {
                self.sent_watched = is_watched;
                self.requests
                    .send(CollectorRequest::Watched(is_watched))
                    .await;
            }
            let patience = if self.lines_read == 0 {
                FIRST_LINE_TIMEOUT
            } else {
                (slowest * SILENT_INTERVALS).max(MIN_SILENCE)
            };
            tokio::select! {
                line = self.lines.next_line() => match line {
                    Ok(Some(line)) => {
                        if let Err(error) = hub.ingest(&line) {
                            return Some(format!("the collector wrote an invalid record: {error}"));
                        }
                        self.lines_read += 1;
                        (last_line, slowest) = (Instant::now(), self.sent_interval);
                    }
                    Ok(None) | Err(_) => return None,
                },
                Ok(()) = self.instructions.interval.changed() => {}
                Ok(()) = self.instructions.watchers.changed() => {}
                Ok(()) = self.instructions.allocations.changed() => {
                    let known = self.instructions.allocations.borrow_and_update().clone();
                    self.requests.send(CollectorRequest::Allocations(known)).await;
                }
                Ok(()) = answers_requests.changed() => {
                    self.requests.send(CollectorRequest::Answers).await;
                }
                () = sleep_until(last_line + patience) => {
                    let seconds = patience.as_secs();
                    return Some(format!("the collector hangs: it has sent nothing for {seconds} s"));
                }
            }
        }
    }

    async fn wait_for_exit_reason(&mut self) -> CollectorEnd {
        let had_begun = self.has_written_record();
        let Ok(Ok(status)) = timeout(GRACE_PERIOD, self.child.wait()).await else {
            let message = "the collector closed its output, but has not ended".to_owned();
            return CollectorEnd::Broken { message, had_begun };
        };
        let last_message = timeout(GRACE_PERIOD, &mut self.last_message)
            .await
            .ok()
            .and_then(Result::ok)
            .flatten();
        let message = match (status.code(), last_message) {
            (Some(_), Some(message)) if !had_begun => return CollectorEnd::NothingToRead(message),
            (_, Some(message)) => format!("the collector ended ({status}): {message}"),
            (_, None) => format!("the collector ended ({status})"),
        };
        CollectorEnd::Broken { message, had_begun }
    }
}

/// A writer of requests to the standard input of a collector, or of ssh with a collector on a host.
pub(crate) struct RequestWriter(ChildStdin);

impl RequestWriter {
    pub(crate) async fn send(&mut self, request: CollectorRequest) {
        let line = serde_json::to_string(&request).expect("a request is JSON") + "\n";
        // The result is ignored. A collector that does not read the line has ended or is hanging,
        // and its output will show that.
        let _ = timeout(GRACE_PERIOD, self.0.write_all(line.as_bytes())).await;
    }
}

/// Returns the standard input, output and error of a process that was started with pipes.
pub(crate) fn take_pipes(
    child: &mut Child,
) -> io::Result<(RequestWriter, ChildStdout, ChildStderr)> {
    let missing = || io::Error::other("the process has no pipes");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    Ok((RequestWriter(stdin), stdout, stderr))
}

/// Logs the collector's messages until the end of its output, and returns the last message.
async fn log_stderr(mut lines: Lines<BufReader<ChildStderr>>) -> Option<String> {
    let mut last = None;
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::debug!("collector: {line}");
        last = Some(line.trim_start_matches("gpumon: ").to_owned());
    }
    last
}

/// The time after which a killed collector counts as stuck.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Killed collectors that do not exit, because they are stuck in the driver. They may still hold
/// the GPUs.
#[derive(Debug, Default)]
pub(crate) struct StuckCollectors(Vec<Child>);

impl StuckCollectors {
    /// Kills a collector, and waits briefly for its end. A collector that does not end is kept as
    /// stuck.
    pub(crate) async fn kill(&mut self, mut child: Child) {
        // An error means that the process has already ended.
        let _ = child.start_kill();
        if timeout(KILL_TIMEOUT, child.wait()).await.is_err() {
            self.0.push(child);
        }
    }

    pub(crate) fn list_running_pids(&mut self) -> Vec<u32> {
        self.0
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        self.0.iter().filter_map(Child::id).collect()
    }
}
