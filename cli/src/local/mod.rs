//! A running server of this machine, as a program sees it: over its local socket.
//!
//! Commands that ask nothing else need no async runtime for it.

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

/// A server never waits for the driver, only for the end of its collector.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which server is meant; the same for every command that asks one.
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

/// That nobody listens where a server should.
#[derive(Debug)]
pub(crate) struct NoServer(Vec<(PathBuf, io::Error)>);

impl NoServer {
    pub(crate) const CURE: &str =
        "start one with `gpumon serve`, or name its socket with --control";

    /// Where it was looked for, and why it is not there.
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

    /// The server that is named for all commands, or any at a usual place.
    pub(crate) fn from_environment() -> Self {
        Self {
            control: for_all(CONTROL, "control").map(PathBuf::from),
        }
    }

    /// Connects to the server that was named, or to the first that listens at a usual place.
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

    /// Sends a request, and returns the answer of a server that has what is asked for; `lacks`
    /// describes what an older one does not have.
    ///
    /// # Errors
    /// There is no server, it does not answer, is older, or refuses.
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

    /// The socket that was named; a variable that is set to nothing names none.
    pub(crate) fn named(&self) -> Option<&PathBuf> {
        self.control
            .as_ref()
            .filter(|path| !path.as_os_str().is_empty())
    }

    /// Whether it was named in this very command, and not for all of them.
    pub(crate) fn is_typed(&self) -> bool {
        self.named()
            .is_some_and(|path| for_all(CONTROL, "control").is_none_or(|set| set != *path))
    }
}

/// The answer to a silence of a rule that does not exist, with the names of those that do.
const NO_RULE: &str = "no alert rule";

/// The answer of a server that has accepted a request.
pub(crate) struct Reply {
    /// The socket of the server.
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

    /// The same, where there is another way if the server does not answer soon.
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

/// A server sends something every few seconds, be it that nothing has happened.
const SILENCE: Duration = Duration::from_secs(20);

/// The stream of a server.
pub(crate) struct Frames(WebSocket<UnixStream>);

impl Server {
    /// Asks for a sample per `interval`, as near to it as the server goes, and for everything that
    /// happens. With `traces`, it also sends the records of the driver.
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
    /// Waits for the next frame. What only a newer server sends is passed over.
    pub(crate) fn next(&mut self) -> io::Result<ServerFrame> {
        loop {
            if let Ok(Some(frame)) = ServerFrame::decode(&self.next_text()?) {
                return Ok(frame);
            }
        }
    }

    /// The same as it came.
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
