//! A client of a server's stream, on its own thread.

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

use super::{decode, driver::StandIn, usage::UsageReader, way::Way};
use crate::{
    options::SourceArgs,
    top::{input::Input, model::Update},
};

/// How long a server may be silent before it counts as dead. Servers send a heartbeat every five
/// seconds.
const DEAD: Duration = Duration::from_secs(15);
/// The minimum silence before a server whose samples are due counts as dead. A shorter one may only
/// mean that the machine is busy.
const SHORTEST_SILENCE: Duration = Duration::from_secs(2);
/// How often the client checks for a changed interval.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The delay between two attempts to reconnect.
const AGAIN: Duration = Duration::from_secs(1);

struct Left;

// The flags are independent of each other.
#[allow(clippy::struct_excessive_bools)]
struct Client {
    way: Way,
    interval: Duration,
    asked: Receiver<Duration>,
    inputs: SyncSender<Input>,
    /// The source to read while the server is lost, or `None` if the server is on another machine.
    source: Option<SourceArgs>,
    /// Whether the server has ever been reached.
    was_reached: bool,
    opened: Arc<OnceLock<Arc<dyn Source>>>,
    /// The sampler that reads the driver while the server is lost.
    stand_in: Option<StandIn>,
    shared: Arc<SharedInterval>,
    usage: UsageReader,
    heard: Instant,
    /// Whether samples are due, so that silence indicates a fault.
    is_running: bool,
    /// Whether the server has released the driver on purpose, so that this program must not open it
    /// in place of the server.
    is_paused: bool,
    is_simulated: bool,
    is_played: bool,
}

/// Forwards the server's updates until the screen is closed. `stream` is an existing connection.
/// Without one, a failure of the first attempt to connect ends the program.
pub(super) fn follow(
    way: Way,
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
        while let Ok(()) = client.attend(stream.take()) {}
    };
    if let Err(error) = thread::Builder::new().name("server".to_owned()).spawn(body) {
        let _ = failed.send(Input::Failed(error.into()));
    }
}

impl Client {
    /// Runs one connection from beginning to end, and waits before the next one.
    fn attend(&mut self, stream: Option<UnixStream>) -> Result<(), Left> {
        let stream = stream
            .map_or_else(|| self.way.connect(), Ok)
            .map_err(|error| error.to_string());
        let ended = match stream.and_then(|stream| self.way.handshake(stream, POLL_INTERVAL)) {
            Ok(mut socket) => self.converse(&mut socket)?,
            Err(cause) if !self.was_reached => {
                let failure = anyhow!("{}: {cause}", self.way);
                let _ = self.inputs.send(Input::Failed(failure.into()));
                return Err(Left);
            }
            Err(cause) => cause,
        };
        let lost = format!("no connection to {} ({ended})", self.way);
        let patience = (self.interval * 2).saturating_sub(self.heard.elapsed());
        let has_no_other = self.stand_in.is_some() || self.is_paused || self.is_simulated;
        let other = self.source.clone().filter(|_| !has_no_other);
        let wait = if other.is_some() && !patience.is_zero() {
            patience.min(AGAIN)
        } else {
            AGAIN
        };
        match other {
            None => self.tell_failure(&lost)?,
            Some(source) if patience.is_zero() => {
                self.shared.set(self.interval);
                let (opened, shared) = (Arc::clone(&self.opened), Arc::clone(&self.shared));
                self.stand_in = Some(StandIn::start(source, opened, shared, self.inputs.clone()));
                self.tell(Update::Direct(format!(
                    "reading the driver directly: {lost}; trying again"
                )))?;
            }
            Some(_) => self.tell(Update::Silent(format!("{lost}; trying again")))?,
        }
        match self.asked.recv_timeout(wait) {
            Ok(interval) => {
                self.interval = interval;
                self.shared.set(interval);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Left),
        }
        Ok(())
    }

    /// Reports why there are no readings if the sampler cannot replace the server either.
    fn tell_failure(&self, lost: &str) -> Result<(), Left> {
        match &self.stand_in {
            None => self.tell(Update::Silent(format!("{lost}; trying again"))),
            Some(stand_in) => match stand_in.failure() {
                Some(why) => self.tell(Update::Silent(format!(
                    "{lost}; the driver cannot be read either: {why}"
                ))),
                None => Ok(()),
            },
        }
    }

    /// Returns how long a live server may be silent.
    fn longest_silence(&self) -> Duration {
        if self.is_running {
            (self.interval * 2).clamp(SHORTEST_SILENCE, DEAD)
        } else {
            DEAD
        }
    }

    /// Updates the known state of the server from one of its updates.
    fn learn(&mut self, update: &Update) {
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
        // A replay may be paused.
        self.is_running = status.state == CollectorState::Running && !self.is_played;
        self.is_paused = status.state == CollectorState::Paused;
    }

    /// Handles frames until the connection ends, and returns the reason for its end.
    fn converse(&mut self, socket: &mut WebSocket<UnixStream>) -> Result<String, Left> {
        (self.heard, self.was_reached) = (Instant::now(), true);
        let asked = self
            .ask(socket)
            .and_then(|()| send(socket, decode::history()));
        if let Err(error) = asked {
            return Ok(error.to_string());
        }
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => {
                    self.heard = Instant::now();
                    if let Some(update) = decode::frame(&text) {
                        self.learn(&update);
                        self.tell_usage(&update)?;
                        self.tell(update)?;
                    }
                }
                Ok(Message::Close(_)) => return Ok("it has ended".to_owned()),
                Ok(_) => self.heard = Instant::now(),
                Err(Error::Io(error))
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if self.heard.elapsed() > self.longest_silence() {
                        return Ok("it says nothing".to_owned());
                    }
                }
                Err(error) => return Ok(error.to_string()),
            }
            match self.asked.try_recv() {
                Ok(interval) => {
                    self.interval = interval;
                    if let Err(error) = self.ask(socket) {
                        return Ok(error.to_string());
                    }
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Err(Left),
            }
        }
    }

    /// Sends the CPU usage of the processes of an update's sample, if they run on this machine.
    fn tell_usage(&mut self, update: &Update) -> Result<(), Left> {
        let Some(sample) = update.sample().filter(|_| self.source.is_some()) else {
            return Ok(());
        };
        let usage = self.usage.read(sample, Instant::now());
        self.tell(Update::Usage(usage))
    }

    fn ask(&self, socket: &mut WebSocket<UnixStream>) -> Result<(), Box<Error>> {
        send(socket, decode::interval(self.interval.as_millis() as u32))
    }

    fn tell(&self, update: Update) -> Result<(), Left> {
        self.inputs.send(Input::Update(update)).map_err(|_| Left)
    }
}

fn send(socket: &mut WebSocket<UnixStream>, request: Option<String>) -> Result<(), Box<Error>> {
    request
        .map_or(Ok(()), |request| socket.send(Message::text(request)))
        .map_err(Box::new)
}
