//! The client of a server's stream, which runs on a separate thread, and the addresses to which it
//! connects.

use std::{
    fmt,
    io::{self, ErrorKind},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError},
    },
    time::{Duration, Instant},
};

use anyhow::anyhow;
use gpumon_history::span::MetricSelection;
use gpumon_probe::{
    model::{Inventory, Record},
    sampler::SharedInterval,
    vendor::Source,
};
use gpumon_server::{
    frame::{ClientFrame, CollectorState, ServerFrame},
    listen::Connector,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tungstenite::{Error, Message, WebSocket};

use super::sampling::{FallbackSampler, UsageReader};
use crate::{
    background::spawn_detached_thread,
    options::SourceArgs,
    top::{input::Input, model::Update},
};

/// The time without any message after which a server is considered dead. Servers send a heartbeat
/// every five seconds.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(15);
/// A running server is considered dead only if it has sent nothing for at least this time. A
/// shorter silence may only mean that the machine is busy.
const MIN_SILENCE: Duration = Duration::from_secs(2);
/// The interval at which the client checks whether the sampling interval has changed.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The delay between two attempts to reconnect.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

struct ScreenClosed;

// These fields are independent flags, so an enum would not be clearer.
#[allow(clippy::struct_excessive_bools)]
struct Client {
    address: ServerAddress,
    interval: Duration,
    interval_changes: Receiver<Duration>,
    inputs: SyncSender<Input>,
    /// The source to read while the server is lost, or `None` if the server is on another machine.
    source: Option<SourceArgs>,
    /// Whether the server has been reached at least once.
    was_reached: bool,
    opened: Arc<OnceLock<Arc<dyn Source>>>,
    /// The sampler that reads the driver while the server is lost.
    stand_in: Option<FallbackSampler>,
    shared: Arc<SharedInterval>,
    usage: UsageReader,
    last_message_at: Instant,
    /// Whether samples are expected, so that silence indicates a problem.
    is_running: bool,
    /// Whether the server has released the driver on purpose. If so, this program must not open the
    /// driver in the server's place.
    is_paused: bool,
    is_simulated: bool,
    is_played: bool,
}

/// Forwards the server's updates until the screen is closed. `stream` is an existing connection. If
/// it is `None`, the server must be reached at the first attempt; otherwise, the program ends.
pub(super) fn follow_server(
    address: ServerAddress,
    stream: Option<UnixStream>,
    source: Option<SourceArgs>,
    interval: Duration,
    interval_changes: Receiver<Duration>,
    inputs: SyncSender<Input>,
) {
    let failed = inputs.clone();
    let mut client = Client {
        address,
        interval,
        interval_changes,
        inputs,
        source,
        was_reached: stream.is_some(),
        opened: Arc::default(),
        stand_in: None,
        shared: Arc::new(SharedInterval::new(interval)),
        usage: UsageReader::new(),
        last_message_at: Instant::now(),
        is_running: false,
        is_paused: false,
        is_simulated: false,
        is_played: false,
    };
    let body = move || {
        let mut stream = stream;
        while let Ok(()) = client.run_connection(stream.take()) {}
    };
    if let Err(error) = spawn_detached_thread("server", body) {
        let _ = failed.send(Input::Failed(error.into()));
    }
}

impl Client {
    /// Runs one connection from start to end, and then waits until the next attempt.
    fn run_connection(&mut self, stream: Option<UnixStream>) -> Result<(), ScreenClosed> {
        let stream = stream
            .map_or_else(|| self.address.connect(), Ok)
            .map_err(|error| error.to_string());
        let ended = match stream.and_then(|stream| self.address.handshake(stream, POLL_INTERVAL)) {
            Ok(mut socket) => self.handle_frames(&mut socket)?,
            Err(cause) if !self.was_reached => {
                let failure = anyhow!("{}: {cause}", self.address);
                let _ = self.inputs.send(Input::Failed(failure.into()));
                return Err(ScreenClosed);
            }
            Err(cause) => cause,
        };
        let lost = format!("no connection to {} ({ended})", self.address);
        let patience = (self.interval * 2).saturating_sub(self.last_message_at.elapsed());
        let has_no_other = self.stand_in.is_some() || self.is_paused || self.is_simulated;
        let other = self.source.clone().filter(|_| !has_no_other);
        let wait = if other.is_some() && !patience.is_zero() {
            patience.min(RECONNECT_DELAY)
        } else {
            RECONNECT_DELAY
        };
        match other {
            None => self.report_lost_server(&lost)?,
            Some(source) if patience.is_zero() => {
                self.shared.set(self.interval);
                let (opened, shared) = (Arc::clone(&self.opened), Arc::clone(&self.shared));
                self.stand_in = Some(FallbackSampler::start(
                    source,
                    opened,
                    shared,
                    self.inputs.clone(),
                ));
                self.send_update(Update::Direct(format!(
                    "reading the driver directly: {lost}; trying again"
                )))?;
            }
            Some(_) => self.send_update(Update::Silent(format!("{lost}; trying again")))?,
        }
        match self.interval_changes.recv_timeout(wait) {
            Ok(interval) => {
                self.interval = interval;
                self.shared.set(interval);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(ScreenClosed),
        }
        Ok(())
    }

    /// Reports that the server is lost. While a sampler reads the driver in the server's place, the
    /// loss is reported only if the sampler has failed as well.
    fn report_lost_server(&self, lost: &str) -> Result<(), ScreenClosed> {
        match &self.stand_in {
            None => self.send_update(Update::Silent(format!("{lost}; trying again"))),
            Some(stand_in) => match stand_in.take_failure() {
                Some(why) => self.send_update(Update::Silent(format!(
                    "{lost}; the driver cannot be read either: {why}"
                ))),
                None => Ok(()),
            },
        }
    }

    /// Returns how long the server may send nothing before it is considered dead.
    fn silence_timeout(&self) -> Duration {
        if self.is_running {
            (self.interval * 2).clamp(MIN_SILENCE, HEARTBEAT_TIMEOUT)
        } else {
            HEARTBEAT_TIMEOUT
        }
    }

    /// Updates the recorded state of the server from an update that the server sent.
    fn update_state(&mut self, update: &Update) {
        let status = match update {
            Update::Hello(hello) => {
                self.stand_in = None;
                let is_real =
                    |known: &Inventory| !known.platform.is_simulated && known.playback.is_none();
                self.is_played = hello
                    .inventory
                    .as_ref()
                    .is_some_and(|known| known.playback.is_some());
                self.is_simulated = hello
                    .inventory
                    .as_ref()
                    .is_some_and(|known| !is_real(known));
                &hello.collector
            }
            Update::Collector(status) => status,
            _ => return,
        };
        // No samples are expected from a server that plays a recording, because the playback may be
        // paused.
        self.is_running = status.state == CollectorState::Running && !self.is_played;
        self.is_paused = status.state == CollectorState::Paused;
    }

    /// Handles frames until the connection ends, and returns the reason why it ended.
    fn handle_frames(
        &mut self,
        socket: &mut WebSocket<UnixStream>,
    ) -> Result<String, ScreenClosed> {
        (self.last_message_at, self.was_reached) = (Instant::now(), true);
        let requested = self.request_interval(socket).and_then(|()| {
            let metrics = MetricSelection::select_charts().ids();
            send_frame(socket, &ClientFrame::History { metrics })
        });
        if let Err(error) = requested {
            return Ok(error.to_string());
        }
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => {
                    self.last_message_at = Instant::now();
                    if let Some(update) = decode_frame(&text) {
                        self.update_state(&update);
                        self.send_usage(&update)?;
                        self.send_update(update)?;
                    }
                }
                Ok(Message::Close(_)) => return Ok("connection closed".to_owned()),
                Ok(_) => self.last_message_at = Instant::now(),
                Err(Error::Io(error))
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if self.last_message_at.elapsed() > self.silence_timeout() {
                        return Ok("no response".to_owned());
                    }
                }
                Err(error) => return Ok(error.to_string()),
            }
            match self.interval_changes.try_recv() {
                Ok(interval) => {
                    self.interval = interval;
                    if let Err(error) = self.request_interval(socket) {
                        return Ok(error.to_string());
                    }
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Err(ScreenClosed),
            }
        }
    }

    /// Sends the CPU usage of the processes in the update's sample if these processes run on this
    /// machine.
    fn send_usage(&mut self, update: &Update) -> Result<(), ScreenClosed> {
        let Some(sample) = update.sample().filter(|_| self.source.is_some()) else {
            return Ok(());
        };
        let usage = self.usage.read_host_usage(sample, Instant::now());
        self.send_update(Update::Usage(usage))
    }

    fn request_interval(&self, socket: &mut WebSocket<UnixStream>) -> Result<(), Box<Error>> {
        let ms = self.interval.as_millis() as u32;
        send_frame(socket, &ClientFrame::Interval { ms })
    }

    fn send_update(&self, update: Update) -> Result<(), ScreenClosed> {
        self.inputs
            .send(Input::Update(update))
            .map_err(|_| ScreenClosed)
    }
}

fn send_frame(socket: &mut WebSocket<UnixStream>, frame: &ClientFrame) -> Result<(), Box<Error>> {
    let text = serde_json::to_string(frame).map_err(|error| Error::Io(error.into()))?;
    Ok(socket.send(Message::text(text))?)
}

/// Decodes a frame from a server. Returns `None` if the screen does not use the frame, or if only
/// newer servers send it.
fn decode_frame(text: &str) -> Option<Update> {
    let record = match ServerFrame::decode(text).ok()?? {
        ServerFrame::Hello(hello) => return Some(Update::Hello(Box::new(hello))),
        ServerFrame::History(past) => return Some(Update::History(past)),
        ServerFrame::Collector(status) => return Some(Update::Collector(status)),
        ServerFrame::Sample(sample) => Record::Sample(sample),
        ServerFrame::Details(details) => Record::Details(details),
        ServerFrame::Inventory(inventory) => Record::Inventory(inventory),
        ServerFrame::Event(event) => Record::Event(event),
        _ => return None,
    };
    Some(Update::Record(Box::new(record)))
}

/// The address of a server, to which connections can be opened repeatedly.
#[derive(Debug, Clone)]
pub(in crate::top) enum ServerAddress {
    /// A server on this machine, addressed by its socket.
    Socket(PathBuf),
    /// A node's server. Connections go through the fleet server in this program, which knows the
    /// addresses and credentials of the nodes.
    Node(String, Connector),
}

impl ServerAddress {
    pub(super) fn connect(&self) -> io::Result<UnixStream> {
        match self {
            Self::Socket(path) => UnixStream::connect(path),
            Self::Node(_, connector) => connector.connect(),
        }
    }

    /// Returns the path of an endpoint, such as `history`, at the server to which connections are
    /// opened.
    pub(super) fn endpoint_path(&self, name: &str) -> String {
        match self {
            Self::Socket(_) => format!("/api/v1/{name}"),
            Self::Node(node, _) => format!(
                "/nodes/{}/api/v1/{name}",
                utf8_percent_encode(node, NON_ALPHANUMERIC)
            ),
        }
    }

    /// Requests the stream on a new connection.
    ///
    /// # Errors
    /// Returns the reason why no stream was opened.
    fn handshake(
        &self,
        stream: UnixStream,
        poll: Duration,
    ) -> Result<WebSocket<UnixStream>, String> {
        let limit = Some(self.handshake_timeout());
        let limited = stream
            .set_read_timeout(limit)
            .and_then(|()| stream.set_write_timeout(limit));
        limited.map_err(|error| error.to_string())?;
        let opened = tungstenite::client(
            format!("ws://localhost{}", self.endpoint_path("stream")),
            stream,
        );
        let (socket, _) = opened.map_err(|error| match error {
            tungstenite::HandshakeError::Failure(error) => self.describe_error(error),
            tungstenite::HandshakeError::Interrupted(_) => {
                io::Error::from(ErrorKind::TimedOut).to_string()
            }
        })?;
        socket
            .get_ref()
            .set_read_timeout(Some(poll))
            .map_err(|error| error.to_string())?;
        Ok(socket)
    }

    /// Returns the maximum time for the handshake. It is longer for a node, because the fleet
    /// server has its own time limit and reports what took too long.
    fn handshake_timeout(&self) -> Duration {
        Duration::from_secs(if matches!(self, Self::Socket(_)) {
            5
        } else {
            20
        })
    }

    /// Describes a connection error. If the server's response contains a reason, the description is
    /// this reason. The fleet server puts the node's name before the reason; this name is removed.
    fn describe_error(&self, error: Error) -> String {
        let Error::Http(answer) = error else {
            return error.to_string();
        };
        let body =
            String::from_utf8_lossy(answer.body().as_deref().unwrap_or_default()).into_owned();
        let reported = body
            .trim()
            .strip_prefix(&format!("{self}: "))
            .unwrap_or(body.trim());
        if reported.is_empty() {
            format!("response status {}", answer.status())
        } else {
            reported.to_owned()
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "the server at {}", path.display()),
            Self::Node(node, _) => f.write_str(node),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_ignores_heartbeats_and_unknown_frames() {
        assert!(decode_frame(r#"{"type":"heartbeat","at_ms":5}"#).is_none());
        assert!(decode_frame(r#"{"type":"something_new","x":5}"#).is_none());
        let paused = r#"{"type":"collector","state":"paused","since_ms":1,"message":null}"#;
        assert!(matches!(decode_frame(paused), Some(Update::Collector(_))));
        assert_eq!(
            serde_json::to_string(&ClientFrame::Interval { ms: 500 }).unwrap(),
            r#"{"type":"interval","ms":500}"#
        );
    }
}
