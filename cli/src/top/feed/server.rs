//! Client for a server's stream, which runs on a separate thread.

use std::{
    io::ErrorKind,
    os::unix::net::UnixStream,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use gpumon_probe::{model::Inventory, sampler::SharedInterval, vendor::Source};
use gpumon_server::frame::CollectorState;
use tungstenite::{Error, Message, WebSocket};

use super::{decode, driver::FallbackSampler, usage::UsageReader, way::ServerAddress};
use crate::{
    options::SourceArgs,
    top::{input::Input, model::Update},
};

/// The time without any message after which a server is considered dead. Servers send a heartbeat
/// every five seconds.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(15);
/// The minimum time without a sample after which a running server is considered dead. A shorter
/// delay may only mean that the machine is busy.
const MIN_SILENCE: Duration = Duration::from_secs(2);
/// The interval at which the client checks whether the sampling interval has changed.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The delay between two attempts to reconnect.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

struct ScreenClosed;

// These fields are independent flags, so an enum would not be clearer.
#[allow(clippy::struct_excessive_bools)]
struct Client {
    way: ServerAddress,
    interval: Duration,
    asked: Receiver<Duration>,
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
    heard: Instant,
    /// Whether samples are expected, so that silence indicates a problem.
    is_running: bool,
    /// Whether the server has released the driver on purpose. This program must then not open the
    /// driver instead.
    is_paused: bool,
    is_simulated: bool,
    is_played: bool,
}

/// Forwards the server's updates until the screen is closed. `stream` is an existing connection. If
/// it is `None` and the first attempt to connect fails, the program ends.
pub(super) fn follow_server(
    way: ServerAddress,
    stream: Option<UnixStream>,
    source: Option<SourceArgs>,
    interval: Duration,
    asked: Receiver<Duration>,
    inputs: SyncSender<Input>,
) {
    let failed = inputs.clone();
    let mut client = Client {
        way,
        interval,
        asked,
        inputs,
        source,
        was_reached: stream.is_some(),
        opened: Arc::default(),
        stand_in: None,
        shared: Arc::new(SharedInterval::new(interval)),
        usage: UsageReader::new(),
        heard: Instant::now(),
        is_running: false,
        is_paused: false,
        is_simulated: false,
        is_played: false,
    };
    let body = move || {
        let mut stream = stream;
        while let Ok(()) = client.run_connection(stream.take()) {}
    };
    if let Err(error) = thread::Builder::new().name("server".to_owned()).spawn(body) {
        let _ = failed.send(Input::Failed(error.into()));
    }
}

impl Client {
    /// Runs one connection from start to end, and then waits until the next attempt.
    fn run_connection(&mut self, stream: Option<UnixStream>) -> Result<(), ScreenClosed> {
        let stream = stream
            .map_or_else(|| self.way.connect(), Ok)
            .map_err(|error| error.to_string());
        let ended = match stream.and_then(|stream| self.way.handshake(stream, POLL_INTERVAL)) {
            Ok(mut socket) => self.handle_frames(&mut socket)?,
            Err(cause) if !self.was_reached => {
                let failure = anyhow!("{}: {cause}", self.way);
                let _ = self.inputs.send(Input::Failed(failure.into()));
                return Err(ScreenClosed);
            }
            Err(cause) => cause,
        };
        let lost = format!("no connection to {} ({ended})", self.way);
        let patience = (self.interval * 2).saturating_sub(self.heard.elapsed());
        let has_no_other = self.stand_in.is_some() || self.is_paused || self.is_simulated;
        let other = self.source.clone().filter(|_| !has_no_other);
        let wait = if other.is_some() && !patience.is_zero() {
            patience.min(RECONNECT_DELAY)
        } else {
            RECONNECT_DELAY
        };
        match other {
            None => self.report_failure(&lost)?,
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
        match self.asked.recv_timeout(wait) {
            Ok(interval) => {
                self.interval = interval;
                self.shared.set(interval);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(ScreenClosed),
        }
        Ok(())
    }

    /// Reports that the server is lost. If a sampler reads the driver instead, reports only that
    /// the sampler has failed as well.
    fn report_failure(&self, lost: &str) -> Result<(), ScreenClosed> {
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

    /// Returns how long a live server may be silent before it is considered dead.
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
        // During a replay, no samples are expected, because the replay may be paused.
        self.is_running = status.state == CollectorState::Running && !self.is_played;
        self.is_paused = status.state == CollectorState::Paused;
    }

    /// Handles frames until the connection ends, and returns the reason why it ended.
    fn handle_frames(
        &mut self,
        socket: &mut WebSocket<UnixStream>,
    ) -> Result<String, ScreenClosed> {
        (self.heard, self.was_reached) = (Instant::now(), true);
        let asked = self
            .request_interval(socket)
            .and_then(|()| send_request(socket, decode::encode_history_request()));
        if let Err(error) = asked {
            return Ok(error.to_string());
        }
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => {
                    self.heard = Instant::now();
                    if let Some(update) = decode::decode_frame(&text) {
                        self.update_state(&update);
                        self.send_usage(&update)?;
                        self.send_update(update)?;
                    }
                }
                Ok(Message::Close(_)) => return Ok("connection closed".to_owned()),
                Ok(_) => self.heard = Instant::now(),
                Err(Error::Io(error))
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if self.heard.elapsed() > self.silence_timeout() {
                        return Ok("no response".to_owned());
                    }
                }
                Err(error) => return Ok(error.to_string()),
            }
            match self.asked.try_recv() {
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
        let usage = self.usage.read(sample, Instant::now());
        self.send_update(Update::Usage(usage))
    }

    fn request_interval(&self, socket: &mut WebSocket<UnixStream>) -> Result<(), Box<Error>> {
        send_request(
            socket,
            decode::encode_interval(self.interval.as_millis() as u32),
        )
    }

    fn send_update(&self, update: Update) -> Result<(), ScreenClosed> {
        self.inputs
            .send(Input::Update(update))
            .map_err(|_| ScreenClosed)
    }
}

fn send_request(
    socket: &mut WebSocket<UnixStream>,
    request: Option<String>,
) -> Result<(), Box<Error>> {
    request
        .map_or(Ok(()), |request| socket.send(Message::text(request)))
        .map_err(Box::new)
}
