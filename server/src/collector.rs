//! A collector process, from its start to its end.

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
    supervisor::{Collector, Instructions, Request},
};

/// The time limit for the first line. Without persistence mode, the driver needs up to half a
/// minute to open its GPUs.
const FIRST_LINE: Duration = Duration::from_mins(1);
/// The number of intervals without a line after which the collector is considered to hang, and the
/// minimum time.
const SILENT_INTERVALS: u32 = 5;
const MIN_SILENCE: Duration = Duration::from_secs(5);
/// The time limit for a collector to end after it has closed its output, and to read a line.
const GRACE: Duration = Duration::from_secs(1);

/// The way in which a collector ended.
pub(crate) enum End {
    /// The collector reported why there is nothing to read, and exited before its first record.
    NothingToRead(String),
    /// Another server provides the readings.
    NotNeeded,
    /// Some GPUs, which the message describes, are not read. A new collector would read them.
    Outdated(String),
    /// The collector crashed, hangs, or wrote something that is not a record.
    Broken {
        /// The description of the problem.
        message: String,
        /// Whether the collector had written a record before.
        had_begun: bool,
    },
}

/// A running collector process.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    last_message: JoinHandle<Option<String>>,
    /// The current instructions for the collector, followed by those that were sent to it.
    instructions: Instructions,
    sent_interval: Duration,
    sent_watched: bool,
    /// The GPUs that are sent to the collector first, if there are any.
    known_gpus: Vec<KnownGpu>,
    lines_read: u64,
}

impl Running {
    pub(crate) fn start(
        collector: &Collector,
        instructions: Instructions,
        known_gpus: Vec<KnownGpu>,
    ) -> io::Result<Self> {
        let mut child = Command::from(child::command(&collector.program))
            .args(&collector.arguments)
            .args((!known_gpus.is_empty()).then_some("--known-gpus"))
            // The collector ends when this pipe is closed, even if this process is killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let missing = || io::Error::other("it has no pipes");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let last_message = tokio::spawn(forward_stderr(BufReader::new(stderr).lines()));
        let lines = BufReader::new(stdout).lines();
        Ok(Self {
            child,
            stdin,
            lines,
            last_message,
            instructions,
            sent_interval: collector.interval,
            sent_watched: true,
            known_gpus,
            lines_read: 0,
        })
    }

    /// Returns `true` if the collector has written a record.
    pub(crate) fn has_begun(&self) -> bool {
        self.lines_read > 0
    }

    /// Passes on the collector's records until it ends or a problem occurs.
    pub(crate) async fn monitor(&mut self, hub: &Hub) -> End {
        match self.read_lines(hub).await {
            Some(message) => End::Broken {
                message,
                had_begun: self.has_begun(),
            },
            None => self.exit_reason().await,
        }
    }

    /// Reads the collector's output. Returns the problem, or `None` if the output was closed.
    async fn read_lines(&mut self, hub: &Hub) -> Option<String> {
        let mut last_line = Instant::now();
        let known_gpus = std::mem::take(&mut self.known_gpus);
        if !known_gpus.is_empty() {
            self.send(Request::KnownGpus(known_gpus)).await;
        }
        if !self.instructions.allocations.borrow().is_empty() {
            self.instructions.allocations.mark_changed();
        }
        let mut answers_requests = hub.answers_requests();
        // After a change of the interval, the collector may still use the previous one until its
        // next line. The longer of the two decides.
        let mut slowest = self.sent_interval;
        loop {
            let wanted = *self.instructions.interval.borrow_and_update();
            if wanted != self.sent_interval {
                self.sent_interval = wanted;
                self.send(Request::IntervalMs(wanted.as_millis() as u32))
                    .await;
                slowest = slowest.max(wanted);
            }
            let is_watched = *self.instructions.watchers.borrow_and_update() > 0;
            if is_watched != self.sent_watched {
                self.sent_watched = is_watched;
                self.send(Request::Watched(is_watched)).await;
            }
            let patience = if self.lines_read == 0 {
                FIRST_LINE
            } else {
                (slowest * SILENT_INTERVALS).max(MIN_SILENCE)
            };
            tokio::select! {
                line = self.lines.next_line() => match line {
                    Ok(Some(line)) => {
                        if let Err(error) = hub.ingest(&line) {
                            return Some(format!("the collector wrote what is not a record: {error}"));
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
                    self.send(Request::Allocations(known)).await;
                }
                Ok(()) = answers_requests.changed() => self.send(Request::Answers).await,
                () = sleep_until(last_line + patience) => {
                    let seconds = patience.as_secs();
                    return Some(format!("the collector hangs: nothing came from it for {seconds} s"));
                }
            }
        }
    }

    async fn send(&mut self, request: Request) {
        let line = serde_json::to_string(&request).expect("a request is JSON") + "\n";
        // If the collector does not read the line, it has ended or hangs, which is detected by its
        // output.
        let _ = timeout(GRACE, self.stdin.write_all(line.as_bytes())).await;
    }

    async fn exit_reason(&mut self) -> End {
        let had_begun = self.has_begun();
        let Ok(Ok(status)) = timeout(GRACE, self.child.wait()).await else {
            let message = "the collector closed its output and does not end".to_owned();
            return End::Broken { message, had_begun };
        };
        let last_message = timeout(GRACE, &mut self.last_message)
            .await
            .ok()
            .and_then(Result::ok)
            .flatten();
        match (status.code(), last_message) {
            (Some(_), Some(message)) if !had_begun => End::NothingToRead(message),
            (_, Some(message)) => End::Broken {
                message: format!("the collector ended ({status}): {message}"),
                had_begun,
            },
            (_, None) => End::Broken {
                message: format!("the collector ended ({status})"),
                had_begun,
            },
        }
    }
}

/// Logs the collector's messages, and returns the last one.
async fn forward_stderr(mut lines: Lines<BufReader<ChildStderr>>) -> Option<String> {
    let mut last = None;
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::debug!("collector: {line}");
        last = Some(line.trim_start_matches("gpumon: ").to_owned());
    }
    last
}
