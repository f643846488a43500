//! A client of a server's stream, over its local socket, on a thread of its own.

use std::{
    io::ErrorKind,
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use gpumon_probe::{model::Inventory, sampler::SharedInterval, vendor::Source};
use gpumon_server::frame::CollectorState;
use tungstenite::{Error, Message, WebSocket};

use super::{decode, driver::StandIn, usage::UsageReader};
use crate::{
    local::Server,
    options::SourceArgs,
    top::{input::Input, model::Update},
};

/// A server that says nothing for so long is dead: it sends a heartbeat every five seconds.
const DEAD: Duration = Duration::from_secs(15);
/// One whose samples are due is sooner, but not for a moment in which the machine is busy.
const SHORTEST_SILENCE: Duration = Duration::from_secs(2);
/// How long the handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How often it is looked whether another interval is wanted.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The time between two attempts to reach a server again.
const AGAIN: Duration = Duration::from_secs(1);

struct Left;

// Each is known by itself.
#[allow(clippy::struct_excessive_bools)]
struct Client {
    path: PathBuf,
    interval: Duration,
    asked: Receiver<Duration>,
    inputs: SyncSender<Input>,
    source: SourceArgs,
    opened: Arc<OnceLock<Arc<dyn Source>>>,
    /// Reads the driver while the server is gone.
    stand_in: Option<StandIn>,
    shared: Arc<SharedInterval>,
    usage: UsageReader,
    heard: Instant,
    /// Whether samples are due, so that silence means something.
    is_running: bool,
    /// What keeps the driver from being read instead: it was released, or the server's GPUs are simulated or recorded.
    is_paused: bool,
    is_simulated: bool,
    is_played: bool,
}

/// Passes on what the server says, until the screen is gone.
pub(super) fn follow(
    server: Server,
    source: SourceArgs,
    interval: Duration,
    asked: Receiver<Duration>,
    inputs: SyncSender<Input>,
) {
    let Server { stream, path } = server;
    let failed = inputs.clone();
    let mut client = Client {
        path,
        interval,
        asked,
        inputs,
        source,
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
        let mut stream = Some(stream);
        while let Ok(()) = client.attend(stream.take()) {}
    };
    if let Err(error) = thread::Builder::new().name("server".to_owned()).spawn(body) {
        let _ = failed.send(Input::Failed(error.into()));
    }
}

impl Client {
    /// One connection from its beginning to its end, and the wait for the next.
    fn attend(&mut self, stream: Option<UnixStream>) -> Result<(), Left> {
        let stream = stream.map_or_else(|| UnixStream::connect(&self.path), Ok);
        let ended = match stream.map_err(Error::Io).and_then(handshake) {
            Ok(mut socket) => self.converse(&mut socket)?,
            Err(error) => error.to_string(),
        };
        let place = self.path.display();
        let lost = format!("no connection to the server at {place} ({ended})");
        let patience = (self.interval * 2).saturating_sub(self.heard.elapsed());
        let has_other_way = self.stand_in.is_none() && !self.is_paused && !self.is_simulated;
        if !has_other_way {
            self.tell_failure(&lost)?;
        } else if patience.is_zero() {
            self.shared.set(self.interval);
            let (opened, shared) = (Arc::clone(&self.opened), Arc::clone(&self.shared));
            self.stand_in = Some(StandIn::start(self.source.clone(), opened, shared, self.inputs.clone()));
            self.tell(Update::Direct(format!("reading the driver directly: {lost}; trying again")))?;
        } else {
            self.tell(Update::Silent(format!("{lost}; trying again")))?;
        }
        let wait = if has_other_way && !patience.is_zero() { patience.min(AGAIN) } else { AGAIN };
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

    /// Says why there are no readings at all, once there are none.
    fn tell_failure(&self, lost: &str) -> Result<(), Left> {
        match &self.stand_in {
            None => self.tell(Update::Silent(format!("{lost}; trying again"))),
            Some(stand_in) => match stand_in.failure() {
                Some(why) => self.tell(Update::Silent(format!("{lost}, nor can the driver be read ({why})"))),
                None => Ok(()),
            },
        }
    }

    /// How long a server that lives may say nothing.
    fn longest_silence(&self) -> Duration {
        if self.is_running { (self.interval * 2).clamp(SHORTEST_SILENCE, DEAD) } else { DEAD }
    }

    /// What is known of the server from what it says.
    fn learn(&mut self, update: &Update) {
        let status = match update {
            Update::Hello(hello) => {
                self.stand_in = None;
                let is_real = |known: &Inventory| !known.platform.is_simulated() && known.playback.is_none();
                self.is_played = hello.inventory.as_ref().is_some_and(|known| known.playback.is_some());
                self.is_simulated = hello.inventory.as_ref().is_some_and(|known| !is_real(known));
                &hello.collector
            }
            Update::Collector(status) => status,
            _ => return,
        };
        // A recording may be paused.
        self.is_running = status.state == CollectorState::Running && !self.is_played;
        self.is_paused = status.state == CollectorState::Paused;
    }

    /// Listens until the connection ends, and says why it did.
    fn converse(&mut self, socket: &mut WebSocket<UnixStream>) -> Result<String, Left> {
        self.heard = Instant::now();
        let asked = self.ask(socket).and_then(|()| send(socket, decode::history()));
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
                Err(Error::Io(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if self.heard.elapsed() > self.longest_silence() {
                        return Ok("it says nothing".to_owned());
                    }
                }
                Err(error) => return Ok(error.to_string()),
            }
            if let Some(interval) = self.asked.try_iter().last() {
                self.interval = interval;
                if let Err(error) = self.ask(socket) {
                    return Ok(error.to_string());
                }
            }
        }
    }

    /// What the processes of an update's sample take of this machine, where they are found here.
    fn tell_usage(&mut self, update: &Update) -> Result<(), Left> {
        let Some(sample) = update.sample() else { return Ok(()) };
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
    request.map_or(Ok(()), |request| socket.send(Message::text(request))).map_err(Box::new)
}

fn handshake(stream: UnixStream) -> Result<WebSocket<UnixStream>, Error> {
    stream.set_read_timeout(Some(HANDSHAKE))?;
    stream.set_write_timeout(Some(HANDSHAKE))?;
    let (socket, _) = tungstenite::client("ws://localhost/api/v1/stream", stream).map_err(|error| match error {
        tungstenite::HandshakeError::Failure(error) => error,
        tungstenite::HandshakeError::Interrupted(_) => Error::Io(ErrorKind::TimedOut.into()),
    })?;
    socket.get_ref().set_read_timeout(Some(POLL_INTERVAL))?;
    Ok(socket)
}
