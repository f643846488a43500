//! A client of a server's stream, over its local socket, on a thread of its own.

use std::{
    io::ErrorKind,
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender},
    thread,
    time::{Duration, Instant},
};

use tungstenite::{Error, Message, WebSocket};

use super::decode;
use crate::{
    local::Server,
    top::{input::Input, model::Update},
};

/// A server that says nothing for so long is dead: it sends a heartbeat every five seconds.
const DEAD: Duration = Duration::from_secs(15);
/// How long the handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How often it is looked whether another interval is wanted.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The time between two attempts to reach a server again.
const AGAIN: Duration = Duration::from_secs(1);

struct Left;

struct Client {
    path: PathBuf,
    interval: Duration,
    asked: Receiver<Duration>,
    inputs: SyncSender<Input>,
}

/// Passes on what the server says, until the screen is gone.
pub(super) fn follow(server: Server, interval: Duration, asked: Receiver<Duration>, inputs: SyncSender<Input>) {
    let Server { stream, path } = server;
    let failed = inputs.clone();
    let mut client = Client { path, interval, asked, inputs };
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
        self.tell(Update::Silent(format!("no connection to the server at {place} ({ended}); trying again")))?;
        match self.asked.recv_timeout(AGAIN) {
            Ok(interval) => self.interval = interval,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Left),
        }
        Ok(())
    }

    /// Listens until the connection ends, and says why it did.
    fn converse(&mut self, socket: &mut WebSocket<UnixStream>) -> Result<String, Left> {
        let mut heard = Instant::now();
        if let Err(error) = self.ask(socket) {
            return Ok(error.to_string());
        }
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => {
                    heard = Instant::now();
                    if let Some(update) = decode::frame(&text) {
                        self.tell(update)?;
                    }
                }
                Ok(Message::Close(_)) => return Ok("it has ended".to_owned()),
                Ok(_) => heard = Instant::now(),
                Err(Error::Io(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if heard.elapsed() > DEAD {
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

    fn ask(&self, socket: &mut WebSocket<UnixStream>) -> Result<(), Box<Error>> {
        let request = decode::interval(self.interval.as_millis() as u32);
        request.map_or(Ok(()), |request| socket.send(Message::text(request))).map_err(Box::new)
    }

    fn tell(&self, update: Update) -> Result<(), Left> {
        self.inputs.send(Input::Update(update)).map_err(|_| Left)
    }
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
