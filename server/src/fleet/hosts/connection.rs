//! An ssh process that reads a host, from its start to its end.

use std::{collections::VecDeque, io, process::Stdio, time::Duration};

use futures_util::StreamExt;
use gpumon_fleet::hosts::{LONGEST_LINE, Progress, Reader, complaint};
use gpumon_probe::{child, model::now_ms, untrusted::escaped};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::OwnedSemaphorePermit,
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout},
};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use super::{
    HostsSettings,
    node::{HostNode, Status},
};
use crate::supervisor::Request;

/// The time limit until the remote program starts. ssh itself has a shorter limit.
const CONNECTED_WITHIN: Duration = Duration::from_secs(20);
/// The time limit for the first record. Without persistence mode, the driver needs up to half a
/// minute to open its GPUs.
const FIRST_RECORD: Duration = Duration::from_mins(1);
/// The number of intervals without a record after which the remote program is considered to hang,
/// and the minimum time.
const SILENT_INTERVALS: u32 = 5;
const MIN_SILENCE: Duration = Duration::from_secs(10);
/// The interval at which the reader checks whether a record is complete, if this depends on time
/// alone.
const TICK: Duration = Duration::from_millis(200);
/// The time limit for ssh to end, and to read a line.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// The maximum number of lines of ssh's messages, and of bytes per line.
const MESSAGES: usize = 20;
const LONGEST_MESSAGE: usize = 2048;

/// The reason for the end of a connection.
pub(super) struct End {
    /// The reason with its cure, as a sentence.
    pub(super) reason: String,
    /// Whether the host responded.
    pub(super) reached: bool,
}

/// A running ssh process.
pub(super) struct Connection {
    child: Child,
    group: Option<Pid>,
    stdin: ChildStdin,
    lines: FramedRead<ChildStdout, LinesCodec>,
    messages: JoinHandle<String>,
    sent_interval: Duration,
}

impl Connection {
    pub(super) fn start(node: &HostNode, settings: &HostsSettings) -> io::Result<Self> {
        let (program, first_arguments) = &settings.tether;
        let interval = *node.sampling_interval.interval().borrow();
        let mut command = Command::from(child::command(program));
        command.args(first_arguments).arg(&settings.ssh.program);
        command.args(settings.ssh.arguments(&node.host, interval));
        // The process group ensures that programs started by ssh, such as a proxy, end with it, and
        // that an interrupt of the terminal does not reach them.
        command.process_group(0).kill_on_drop(true);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let missing = || io::Error::other("it has no pipes");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let lines = FramedRead::new(stdout, LinesCodec::new_with_max_length(LONGEST_LINE));
        let messages = tokio::spawn(last_messages(stderr));
        Ok(Self {
            child,
            group,
            stdin,
            lines,
            messages,
            sent_interval: interval,
        })
    }

    /// Reads records until the connection ends or a problem occurs. `turn` is released when the
    /// connection is established, or after `turn_for`.
    pub(super) async fn monitor(
        &mut self,
        node: &HostNode,
        turn: OwnedSemaphorePermit,
        turn_for: Duration,
    ) -> End {
        let mut reader = Reader::new(&node.host.name, self.sent_interval);
        let broken = self.read(node, &mut reader, turn, turn_for).await;
        let reached = reader.progress() == Progress::Connected;
        match broken {
            Some(end) => end,
            None => End {
                reason: self.last_words(node).await,
                reached,
            },
        }
    }

    async fn read(
        &mut self,
        node: &HostNode,
        reader: &mut Reader,
        turn: OwnedSemaphorePermit,
        turn_for: Duration,
    ) -> Option<End> {
        let name = &node.host.name;
        // Log lines about the host's GPUs should contain the host's name.
        let span = tracing::info_span!("host", name = %escaped(name));
        let mut turn = Some(turn);
        let turn_ends = Instant::now() + turn_for;
        let mut last = Instant::now();
        let mut records = 0_u64;
        let mut wanted_interval = node.sampling_interval.interval();
        let mut answers_requests = node.hub.answers_requests();
        let mut slowest = self.sent_interval;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (patience, what) = match reader.progress() {
                Progress::Connecting => (CONNECTED_WITHIN, "it does not answer: nothing came back"),
                Progress::Connected if records == 0 => {
                    (FIRST_RECORD, "it answers, and nothing is read there")
                }
                Progress::Connected => (
                    (slowest * SILENT_INTERVALS).max(MIN_SILENCE),
                    "it answered, and fell silent: nothing came",
                ),
            };
            let mut refused = None;
            let mut ingest = |record: &str| match span.in_scope(|| node.hub.ingest(record)) {
                Ok(()) => records += 1,
                Err(error) => refused = Some(error),
            };
            tokio::select! {
                line = self.lines.next() => match line {
                    Some(Ok(line)) => {
                        let was = reader.progress();
                        if let Err(reason) = reader.line(&line, now_ms(), &mut ingest) {
                            return Some(End { reason, reached: true });
                        }
                        if was != reader.progress() {
                            node.set_status(Status::Connected);
                            turn = None;
                        }
                        if was == Progress::Connected || was != reader.progress() {
                            (last, slowest) = (Instant::now(), self.sent_interval);
                        }
                    }
                    Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                        let reason = format!("{name}: it writes lines longer than any record; look at what runs there");
                        return Some(End { reason, reached: true });
                    }
                    Some(Err(LinesCodecError::Io(_))) | None => return None,
                },
                _ = ticks.tick(), if reader.ticks() => reader.tick(now_ms(), &mut ingest),
                Ok(()) = wanted_interval.changed(), if reader.takes_requests() => {
                    self.sent_interval = *wanted_interval.borrow_and_update();
                    slowest = slowest.max(self.sent_interval);
                    self.send(Request::IntervalMs(self.sent_interval.as_millis() as u32)).await;
                }
                Ok(()) = answers_requests.changed(), if reader.takes_requests() => self.send(Request::Answers).await,
                () = sleep_until(turn_ends), if turn.is_some() => turn = None,
                () = sleep_until(last + patience) => {
                    let reason = format!("{name}: {what} for {} s; it is tried again", patience.as_secs());
                    return Some(End { reason, reached: reader.progress() == Progress::Connected });
                }
            }
            if let Some(error) = refused {
                let reason = format!(
                    "{name}: its gpumon writes what is not understood here ({error}); have the same version on both sides"
                );
                return Some(End {
                    reason,
                    reached: true,
                });
            }
        }
    }

    async fn send(&mut self, request: Request) {
        if let Ok(line) = serde_json::to_string(&request) {
            // If the remote program does not read the line, it has ended or hangs, which is
            // detected by its output.
            let _ = timeout(GRACE, self.stdin.write_all((line + "\n").as_bytes())).await;
        }
    }

    /// Returns a sentence about the last messages of ssh or of the remote program.
    async fn last_words(&mut self, node: &HostNode) -> String {
        let messages = timeout(GRACE, &mut self.messages)
            .await
            .ok()
            .and_then(Result::ok)
            .unwrap_or_default();
        complaint::sentence(&node.host.name, &messages)
    }

    /// Ends ssh and its child processes, and with them the remote program. SIGTERM comes first, so
    /// that ssh can end its own children.
    pub(super) async fn end(mut self) {
        self.signal(Signal::TERM);
        if timeout(GRACE, self.child.wait()).await.is_err() {
            self.signal(Signal::KILL);
            let _ = timeout(GRACE, self.child.wait()).await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that all processes of the group have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Connection {
    /// Kills the processes if nobody has waited for their end, for example at the end of the
    /// server.
    fn drop(&mut self) {
        self.messages.abort();
        // After a process was waited for, its ID can belong to another group.
        if self.child.id().is_some() {
            self.signal(Signal::KILL);
        }
    }
}

/// Returns the last lines of ssh's messages.
async fn last_messages(stderr: ChildStderr) -> String {
    let mut lines = FramedRead::new(stderr, LinesCodec::new_with_max_length(LONGEST_MESSAGE));
    let mut last: VecDeque<String> = VecDeque::new();
    loop {
        match lines.next().await {
            Some(Ok(line)) => {
                tracing::debug!("ssh: {line}");
                if last.len() == MESSAGES {
                    last.pop_front();
                }
                last.push_back(line);
            }
            Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {}
            Some(Err(LinesCodecError::Io(_))) | None => return Vec::from(last).join("\n"),
        }
    }
}
