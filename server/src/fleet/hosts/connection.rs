//! One ssh, from its start to its end.

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

/// How long it may take from the start until something runs there; ssh itself gives up sooner.
const CONNECTED_WITHIN: Duration = Duration::from_secs(20);
/// A driver without persistence mode opens its GPUs for up to half a minute before the first record
/// comes.
const FIRST_RECORD: Duration = Duration::from_mins(1);
/// So many intervals without a record, and at least so much time, mean that what runs there hangs.
const SILENT_INTERVALS: u32 = 5;
const MIN_SILENCE: Duration = Duration::from_secs(10);
/// How often silence is looked at, where the time alone makes records.
const TICK: Duration = Duration::from_millis(200);
/// How long ssh may take to end, or to take in a line.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// Lines of ssh's messages, and bytes of each.
const MESSAGES: usize = 20;
const LONGEST_MESSAGE: usize = 2048;

/// How a connection ended.
pub(super) struct End {
    /// Why, in a sentence with the cure.
    pub(super) reason: String,
    /// Whether the host itself answered.
    pub(super) reached: bool,
}

/// An ssh that was started.
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
        // A group of its own: whatever ssh starts, as a proxy, ends with it, and an interrupt of
        // the terminal does not reach it.
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

    /// Takes in what comes back until it ends, or something is wrong with it. `turn` is given back
    /// when it has connected, or has taken so long.
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
        // Log lines about the host's GPUs name the host.
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
            // One that does not take it in has ended or hangs, which its output tells.
            let _ = timeout(GRACE, self.stdin.write_all((line + "\n").as_bytes())).await;
        }
    }

    /// What ssh, or what ran there, said last.
    async fn last_words(&mut self, node: &HostNode) -> String {
        let messages = timeout(GRACE, &mut self.messages)
            .await
            .ok()
            .and_then(Result::ok)
            .unwrap_or_default();
        complaint::sentence(&node.host.name, &messages)
    }

    /// Ends ssh and what it started, which ends what runs there. It is asked first, so that it can
    /// end its own.
    pub(super) async fn end(mut self) {
        self.signal(Signal::TERM);
        if timeout(GRACE, self.child.wait()).await.is_err() {
            self.signal(Signal::KILL);
            let _ = timeout(GRACE, self.child.wait()).await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that all of it has ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Connection {
    /// Also where nobody has waited for its end, as at the end of the server.
    fn drop(&mut self) {
        self.messages.abort();
        // A process that has been waited for has no number, which another group may have by now.
        if self.child.id().is_some() {
            self.signal(Signal::KILL);
        }
    }
}

/// The last lines of a connection's messages, however many there are.
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
