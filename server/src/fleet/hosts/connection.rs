//! The connection to a host: an ssh process that reads the host, and is started again when it ends.

use std::{collections::VecDeque, io, process::Stdio, sync::Arc, time::Duration};

use futures_util::StreamExt;
use gpumon_fleet::hosts::{MAX_LINE_BYTES, Reader, ssh};
use gpumon_probe::{child, model::now_ms, untrusted::escape_untrusted};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    process::{Child, ChildStderr, ChildStdout, Command},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout},
};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use super::{
    HostsSettings,
    node::{ConnectionStatus, HostNode},
};
use crate::{
    collector::{RequestWriter, take_pipes},
    frame::CollectorState,
    supervisor::CollectorRequest,
};

/// The time limit until the remote program has started. ssh's own limit is shorter.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The time limit for the remote program's first record. Without persistence mode, the driver needs
/// up to half a minute to open its GPUs.
const FIRST_RECORD_TIMEOUT: Duration = Duration::from_mins(1);
/// A remote program is considered to hang if it has sent no record for this number of sampling
/// intervals, and for at least `MIN_SILENCE`.
const SILENT_INTERVALS: u32 = 5;
const MIN_SILENCE: Duration = Duration::from_secs(10);
/// The interval at which the reader checks whether a record is complete. Some records are complete
/// only after a certain time.
const TICK_INTERVAL: Duration = Duration::from_millis(200);
/// How long ssh may take to send its last messages and exit.
pub(super) const GRACE_PERIOD: Duration = Duration::from_secs(1);
/// The number of ssh's last messages that are kept. `MAX_MESSAGE_BYTES` limits the length of each.
const MAX_MESSAGES: usize = 20;
const MAX_MESSAGE_BYTES: usize = 2048;

/// The end of a connection and its reason.
struct ConnectionEnd {
    /// The reason and its remedy, as a sentence.
    reason: String,
    /// Whether the host responded.
    reached: bool,
}

/// A running ssh process.
struct SshConnection {
    child: Child,
    group: Option<Pid>,
    requests: RequestWriter,
    lines: FramedRead<ChildStdout, LinesCodec>,
    messages: JoinHandle<String>,
    sent_interval: Duration,
}

impl SshConnection {
    fn start(node: &HostNode, settings: &HostsSettings) -> io::Result<Self> {
        let (program, first_arguments) = &settings.tether;
        let interval = *node.sampling_interval.subscribe_interval().borrow();
        let mut command = Command::from(child::new_command(program));
        command.args(first_arguments).arg(&settings.ssh.program);
        command.args(settings.ssh.build_arguments(&node.host, interval));
        // The process group ensures that programs started by ssh, such as a proxy, end together
        // with ssh, and that an interrupt of the terminal does not reach them.
        command.process_group(0).kill_on_drop(true);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (requests, stdout, stderr) = take_pipes(&mut child)?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let lines = FramedRead::new(stdout, LinesCodec::new_with_max_length(MAX_LINE_BYTES));
        let messages = tokio::spawn(collect_last_messages(stderr));
        Ok(Self {
            child,
            group,
            requests,
            lines,
            messages,
            sent_interval: interval,
        })
    }

    /// Reads records until the connection ends or a problem occurs. `turn` is the permit to
    /// establish a connection. It is released as soon as the connection is established, or after
    /// `turn_for`.
    async fn monitor_output(
        &mut self,
        node: &HostNode,
        turn: OwnedSemaphorePermit,
        turn_for: Duration,
    ) -> ConnectionEnd {
        let mut reader = Reader::new(&node.host.name, self.sent_interval);
        let broken = self.read_records(node, &mut reader, turn, turn_for).await;
        let reached = reader.is_connected();
        match broken {
            Some(end) => end,
            None => ConnectionEnd {
                reason: self.describe_last_messages(node).await,
                reached,
            },
        }
    }

    async fn read_records(
        &mut self,
        node: &HostNode,
        reader: &mut Reader,
        turn: OwnedSemaphorePermit,
        turn_for: Duration,
    ) -> Option<ConnectionEnd> {
        let name = &node.host.name;
        // The span adds the host's name to log lines about its GPUs.
        let span = tracing::info_span!("host", name = %escape_untrusted(name));
        let mut turn = Some(turn);
        let turn_ends = Instant::now() + turn_for;
        let mut last = Instant::now();
        let mut records = 0_u64;
        let mut wanted_interval = node.sampling_interval.subscribe_interval();
        let mut answers_requests = node.hub.subscribe_answer_requests();
        let mut slowest = self.sent_interval;
        let mut ticks = interval(TICK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (patience, what) = if !reader.is_connected() {
                (CONNECT_TIMEOUT, "the host has not responded")
            } else if records == 0 {
                (
                    FIRST_RECORD_TIMEOUT,
                    "the host responds, but has sent no readings",
                )
            } else {
                (
                    (slowest * SILENT_INTERVALS).max(MIN_SILENCE),
                    "the host responded earlier, but has sent nothing",
                )
            };
            let mut refused = None;
            let mut ingest = |record: &str| match span.in_scope(|| node.hub.ingest(record)) {
                Ok(()) => records += 1,
                Err(error) => refused = Some(error),
            };
            tokio::select! {
                line = self.lines.next() => match line {
                    Some(Ok(line)) => {
                        let was_connected = reader.is_connected();
                        if let Err(reason) = reader.handle_line(&line, now_ms(), &mut ingest) {
                            return Some(ConnectionEnd { reason, reached: true });
                        }
                        if !was_connected && reader.is_connected() {
                            node.set_status(ConnectionStatus::Connected);
                            turn = None;
                        }
                        if reader.is_connected() {
                            (last, slowest) = (Instant::now(), self.sent_interval);
                        }
                    }
                    Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                        let reason = format!("{name}: the host sends lines that are longer than \
                                              any gpumon record; check what runs on the host");
                        return Some(ConnectionEnd { reason, reached: true });
                    }
                    Some(Err(LinesCodecError::Io(_))) | None => return None,
                },
                _ = ticks.tick(), if reader.needs_ticks() => reader.tick(now_ms(), &mut ingest),
                Ok(()) = wanted_interval.changed(), if reader.accepts_requests() => {
                    self.sent_interval = *wanted_interval.borrow_and_update();
                    slowest = slowest.max(self.sent_interval);
                    let interval_ms = self.sent_interval.as_millis() as u32;
                    self.requests.send(CollectorRequest::IntervalMs(interval_ms)).await;
                }
                Ok(()) = answers_requests.changed(), if reader.accepts_requests() => {
                    self.requests.send(CollectorRequest::Answers).await;
                }
                () = sleep_until(turn_ends), if turn.is_some() => turn = None,
                () = sleep_until(last + patience) => {
                    let reason = format!("{name}: {what} for {} s; retrying", patience.as_secs());
                    return Some(ConnectionEnd { reason, reached: reader.is_connected() });
                }
            }
            if let Some(error) = refused {
                let reason = format!(
                    "{name}: gpumon on the host sends data that this gpumon cannot parse \
                     ({error}); install the same version on both machines"
                );
                return Some(ConnectionEnd {
                    reason,
                    reached: true,
                });
            }
        }
    }

    /// Returns a sentence about the last messages of ssh or of the remote program.
    async fn describe_last_messages(&mut self, node: &HostNode) -> String {
        let messages = timeout(GRACE_PERIOD, &mut self.messages)
            .await
            .ok()
            .and_then(Result::ok)
            .unwrap_or_default();
        ssh::describe_failure(&node.host.name, &messages)
    }

    /// Ends ssh and its child processes, and thereby the remote program. SIGTERM is sent first, so
    /// that ssh can end its own children.
    async fn end_processes(mut self) {
        self.send_signal(Signal::TERM);
        if timeout(GRACE_PERIOD, self.child.wait()).await.is_err() {
            self.send_signal(Signal::KILL);
            let _ = timeout(GRACE_PERIOD, self.child.wait()).await;
        }
    }

    fn send_signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that all processes of the group have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for SshConnection {
    /// Kills the processes if nobody has waited for their end, for example when the server exits.
    fn drop(&mut self) {
        self.messages.abort();
        // If the process was already waited for, its ID may belong to another group.
        if self.child.id().is_some() {
            self.send_signal(Signal::KILL);
        }
    }
}

/// Returns the last lines of ssh's messages.
async fn collect_last_messages(stderr: ChildStderr) -> String {
    let mut lines = FramedRead::new(stderr, LinesCodec::new_with_max_length(MAX_MESSAGE_BYTES));
    let mut last: VecDeque<String> = VecDeque::new();
    loop {
        match lines.next().await {
            Some(Ok(line)) => {
                tracing::debug!("ssh: {line}");
                if last.len() == MAX_MESSAGES {
                    last.pop_front();
                }
                last.push_back(line);
            }
            Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {}
            Some(Err(LinesCodecError::Io(_))) | None => return Vec::from(last).join("\n"),
        }
    }
}

// Repeated connections to a host.

/// The maximum number of connections that are established at the same time. Each costs milliseconds
/// of CPU time on both sides, and a jump host refuses connections if there are too many.
const MAX_CONNECTING: usize = 16;

/// The time after which the next connection may be started although this one is still being
/// established.
const MAX_TURN_DURATION: Duration = Duration::from_millis(200);

/// The pause before the second attempt to connect. Each further failure doubles the pause, up to
/// `MAX_RETRY_PAUSE`.
const MIN_RETRY_PAUSE: Duration = Duration::from_secs(2);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(30);
/// The duration after which a connection counts as steady. When a steady connection ends, the next
/// pause is the shortest again.
const STEADY_DURATION: Duration = Duration::from_secs(30);

/// Returns the semaphore that limits the number of connections being established.
pub(super) fn new_connection_limit() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_CONNECTING))
}

/// Connects to a host again and again until [`HostNode::stop_reading`] is called.
pub(super) async fn keep_connected(
    node: Arc<HostNode>,
    settings: Arc<HostsSettings>,
    turns: Arc<Semaphore>,
) {
    let mut ended = node.end_signal();
    let mut pause = MIN_RETRY_PAUSE;
    loop {
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else {
            return;
        };
        let started = Instant::now();
        let end = connect_once(&node, &settings, turn, &mut ended).await;
        node.set_has_process(false);
        let Some(ConnectionEnd { reason, reached }) = end else {
            return;
        };
        if started.elapsed() >= STEADY_DURATION {
            pause = MIN_RETRY_PAUSE;
        }
        if node.status()
            != (ConnectionStatus::Failed {
                reason: reason.clone(),
                reached,
            })
        {
            tracing::info!("{reason}");
        }
        node.hub
            .set_collector_state(CollectorState::Unavailable, Some(reason.clone()));
        node.set_status(ConnectionStatus::Failed { reason, reached });
        tokio::select! {
            _ = ended.wait_for(|ended| *ended) => return,
            () = sleep(pause) => {}
        }
        pause = (pause * 2).min(MAX_RETRY_PAUSE);
    }
}

/// Connects to the host once, and returns the reason for the connection's end, or `None` if
/// [`HostNode::stop_reading`] was called.
async fn connect_once(
    node: &HostNode,
    settings: &HostsSettings,
    turn: OwnedSemaphorePermit,
    ended: &mut watch::Receiver<bool>,
) -> Option<ConnectionEnd> {
    let mut connection = match SshConnection::start(node, settings) {
        Ok(connection) => connection,
        Err(error) => {
            let program = settings.ssh.program.display();
            let reason = format!("cannot start {program}: {error}; install the OpenSSH client");
            return Some(ConnectionEnd {
                reason,
                reached: false,
            });
        }
    };
    node.set_has_process(true);
    let end = tokio::select! {
        biased;
        _ = ended.wait_for(|ended| *ended) => None,
        end = connection.monitor_output(node, turn, MAX_TURN_DURATION) => Some(end),
    };
    connection.end_processes().await;
    end
}
