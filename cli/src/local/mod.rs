//! A client of a running server on this machine, over its local socket.
//!
//! The client is blocking, so that commands need no async runtime.

use std::{fmt, io, os::unix::net::UnixStream, path::PathBuf, time::Duration};

use anyhow::{Context, anyhow};
use gpumon_server::{
    frame::{ClientFrame, INTERVAL_MS, ServerFrame},
    local::{self, send_request},
};
use serde::de::DeserializeOwned;
use tungstenite::{Error, Message, WebSocket};

use crate::{config::for_all, exit::Result};

pub(crate) use gpumon_server::local::Answer;

/// The time limit for an answer. A server never waits for the driver, only for its collector to
/// end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The server to ask; the same for every command that needs one.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServerArgs {
    /// Control socket of the gpumon server, if not at its default path
    #[arg(long, env = CONTROL, value_name = "PATH")]
    control: Option<PathBuf>,
}

const CONTROL: &str = "GPUMON_CONTROL";

pub(crate) struct Server {
    pub(crate) stream: UnixStream,
    pub(crate) path: PathBuf,
}

/// The error that no server listens on any of these sockets.
#[derive(Debug)]
pub(crate) struct NoServer(Vec<(PathBuf, io::Error)>);

impl NoServer {
    pub(crate) const CURE: &str =
        "start one with `gpumon serve`, or name its socket with --control";

    /// Returns the sockets that were tried, each with its error.
    pub(crate) fn places(&self) -> String {
        let places = self
            .0
            .iter()
            .map(|(path, error)| format!("{} ({error})", path.display()));
        places.collect::<Vec<_>>().join(", ")
    }
}

impl ServerArgs {
    pub(crate) fn is_named() -> bool {
        for_all(CONTROL, "control").is_some()
    }

    /// Returns the server that a variable or a settings file names for all commands, or else the
    /// default.
    pub(crate) fn from_environment() -> Self {
        Self {
            control: for_all(CONTROL, "control").map(PathBuf::from),
        }
    }

    /// Connects to the named server, or to the first one that listens on a default socket.
    pub(crate) fn connect(&self) -> Result<Server, NoServer> {
        let named = self.named().cloned();
        let is_named = named.is_some();
        let mut missed = Vec::new();
        for path in named.map_or_else(local::paths, |path| vec![path]) {
            match UnixStream::connect(&path) {
                Ok(stream) if is_named || local::is_own(&path) => {
                    return Ok(Server { stream, path });
                }
                Ok(_) => missed.push((path, io::Error::other("in somebody else's folder"))),
                Err(error) => missed.push((path, error)),
            }
        }
        Err(NoServer(missed))
    }

    /// Sends a request and returns the server's reply. `lacks` completes the error for an older
    /// server, such as “does not report usage”.
    ///
    /// # Errors
    /// Returns an error if no server is running, or if the server does not answer, is too old or
    /// refuses.
    pub(crate) fn request(
        &self,
        method: &str,
        target: &str,
        body: &str,
        lacks: &str,
    ) -> Result<Reply> {
        let server = self.connect().map_err(anyhow::Error::from)?;
        let at = server.path.display().to_string();
        let answer = send_request(server.stream, PATIENCE, &format!("{method} {target}"), body)
            .with_context(|| format!("the server at {at} does not answer; restart it"))?;
        let why = answer.body.trim();
        match answer.status {
            200..300 => Ok(Reply {
                at,
                body: answer.body,
            }),
            404 if why.starts_with(NO_RULE) => Err(anyhow!("{why}").into()),
            404 | 405 => Err(anyhow!(
                "the server at {at} is older than this gpumon and {lacks}; restart it"
            )
            .into()),
            _ => Err(anyhow!("the server at {at} refuses: {why}").into()),
        }
    }

    /// Returns the socket that was named; `None` for an empty name, as from an empty variable.
    pub(crate) fn named(&self) -> Option<&PathBuf> {
        self.control
            .as_ref()
            .filter(|path| !path.as_os_str().is_empty())
    }

    /// Returns `true` if a flag of this command names the server, as opposed to a variable or a
    /// settings file.
    pub(crate) fn is_typed(&self) -> bool {
        self.named()
            .is_some_and(|path| for_all(CONTROL, "control").is_none_or(|set| set != *path))
    }
}

/// The start of the server's answer to a silence for a rule that does not exist.
const NO_RULE: &str = "no alert rule";

/// The answer of a server that has accepted a request.
pub(crate) struct Reply {
    /// The path of the server's socket.
    at: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        let at = &self.at;
        let read = serde_json::from_str(&self.body);
        Ok(read.with_context(|| {
            format!("the server at {at} is not gpumon's; name it with --control")
        })?)
    }
}

impl Server {
    /// Sends one request without a body.
    pub(crate) fn ask(self, method: &str, target: &str) -> io::Result<Answer> {
        self.ask_within(PATIENCE, method, target)
    }

    /// Sends one request without a body, with its own time limit, for callers that can do without
    /// the server.
    pub(crate) fn ask_within(
        self,
        patience: Duration,
        method: &str,
        target: &str,
    ) -> io::Result<Answer> {
        send_request(self.stream, patience, &format!("{method} {target}"), "")
    }
}

impl fmt::Display for NoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no gpumon server found at {}; {}",
            self.places(),
            Self::CURE
        )
    }
}

impl std::error::Error for NoServer {}

/// The time limit for reading and writing the stream. A server sends a frame every few seconds even
/// if nothing has happened.
const SILENCE: Duration = Duration::from_secs(20);

/// The frames that a server streams.
pub(crate) struct Frames(WebSocket<UnixStream>);

impl Server {
    /// Requests the stream of samples and events. The server sends a sample per `interval`, limited
    /// to the intervals that it supports. With `traces`, it also sends the traces of driver calls.
    pub(crate) fn stream(self, interval: Duration, traces: bool) -> io::Result<Frames> {
        self.stream.set_read_timeout(Some(SILENCE))?;
        self.stream.set_write_timeout(Some(SILENCE))?;
        let opened = tungstenite::client("ws://localhost/api/v1/stream", self.stream);
        let (mut socket, _) = opened.map_err(|error| io::Error::other(error.to_string()))?;
        let (shortest, longest) = INTERVAL_MS.into_inner();
        let ms = u32::try_from(interval.as_millis())
            .unwrap_or(longest)
            .clamp(shortest, longest);
        socket
            .send(Message::text(serde_json::to_string(
                &ClientFrame::Interval { ms },
            )?))
            .map_err(as_io)?;
        if traces {
            socket
                .send(Message::text(serde_json::to_string(
                    &ClientFrame::Traces { on: true },
                )?))
                .map_err(as_io)?;
        }
        Ok(Frames(socket))
    }
}

impl Frames {
    /// Waits for the next frame, and skips frames that only newer servers send.
    pub(crate) fn next(&mut self) -> io::Result<ServerFrame> {
        loop {
            if let Ok(Some(frame)) = ServerFrame::decode(&self.next_text()?) {
                return Ok(frame);
            }
        }
    }

    /// Waits for the next frame and returns its text.
    pub(crate) fn next_text(&mut self) -> io::Result<String> {
        loop {
            match self.0.read().map_err(as_io)? {
                Message::Text(text) => return Ok(text.as_str().to_owned()),
                Message::Close(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
                _ => {}
            }
        }
    }
}

fn as_io(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        other => io::Error::other(other),
    }
}
