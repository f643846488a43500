//! Client for a running server on this machine, over the server's local socket.
//!
//! The client is blocking, so that commands need no async runtime.

use std::{fmt, io, iter, os::unix::net::UnixStream, path::PathBuf, time::Duration};

use anyhow::{Context, anyhow};
use gpumon_server::{
    frame::{ClientFrame, INTERVAL_LIMITS_MS, ServerFrame},
    local::{self, send_request},
};
use serde::de::DeserializeOwned;
use tungstenite::{Error, Message, WebSocket};

use crate::{config::find_general_setting, exit::Result};

pub(crate) use gpumon_server::local::LocalResponse;

/// The maximum time to wait for a response. A server never waits for the driver, only for its
/// collector to end.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Options for the server to use; the same for every command that needs a server.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServerArgs {
    /// Control socket of the gpumon server, if not at its default path
    #[arg(long, env = CONTROL_VARIABLE, value_name = "PATH")]
    control: Option<PathBuf>,
}

const CONTROL_VARIABLE: &str = "GPUMON_CONTROL";

pub(crate) struct Server {
    pub(crate) stream: UnixStream,
    pub(crate) path: PathBuf,
}

/// The error if no server listens on any of the sockets that were tried. It contains each socket
/// with its error.
#[derive(Debug)]
pub(crate) struct NoServerError(Vec<(PathBuf, io::Error)>);

impl NoServerError {
    pub(crate) const CURE: &str =
        "start a server with `gpumon serve`, or give the socket of a running server with --control";

    /// Returns the sockets that were tried, each followed by its error.
    pub(crate) fn describe_sockets(&self) -> String {
        let places = self
            .0
            .iter()
            .map(|(path, error)| format!("{} ({error})", path.display()));
        places.collect::<Vec<_>>().join(", ")
    }
}

impl ServerArgs {
    pub(crate) fn is_named_in_settings() -> bool {
        find_general_setting(CONTROL_VARIABLE, "control").is_some()
    }

    /// Returns the server set for all commands by a variable or a settings file, or the default
    /// server.
    pub(crate) fn from_environment() -> Self {
        Self {
            control: find_general_setting(CONTROL_VARIABLE, "control").map(PathBuf::from),
        }
    }

    /// Connects to the named server, or to the first server that listens on a default socket.
    pub(crate) fn connect(&self) -> Result<Server, NoServerError> {
        let named = self.named_socket().cloned();
        let is_named = named.is_some();
        let mut missed = Vec::new();
        for path in named.map_or_else(local::socket_paths, |path| vec![path]) {
            match UnixStream::connect(&path) {
                Ok(stream) if is_named || local::is_socket_of_current_user(&path) => {
                    return Ok(Server { stream, path });
                }
                Ok(_) => {
                    missed.push((path, io::Error::other("its folder belongs to another user")));
                }
                Err(error) => missed.push((path, error)),
            }
        }
        Err(NoServerError(missed))
    }

    /// Sends a request and returns the server's reply. If the server is too old to know `target`,
    /// the error message contains `lacks`, such as “does not report usage”.
    ///
    /// # Errors
    /// Returns an error if no server is running, or if the server does not respond, is too old, or
    /// refuses the request.
    pub(crate) fn request(
        &self,
        method: &str,
        target: &str,
        body: &str,
        lacks: &str,
    ) -> Result<Reply> {
        let server = self.connect().map_err(anyhow::Error::from)?;
        let at = server.path.display().to_string();
        let answer = send_request(
            server.stream,
            RESPONSE_TIMEOUT,
            &format!("{method} {target}"),
            body,
        )
        .with_context(|| format!("the server at {at} does not respond; restart the server"))?;
        let why = answer.body.trim();
        match answer.status {
            200..300 => Ok(Reply {
                at,
                body: answer.body,
            }),
            404 if why.starts_with(UNKNOWN_RULE) => Err(anyhow!("{why}").into()),
            404 | 405 => Err(anyhow!(
                "the server at {at} is older than this gpumon and {lacks}; restart the server"
            )
            .into()),
            _ => Err(anyhow!("the server at {at} refused the request: {why}").into()),
        }
    }

    /// Returns the named socket, or `None` if the name is empty, for example from an empty
    /// variable.
    pub(crate) fn named_socket(&self) -> Option<&PathBuf> {
        self.control
            .as_ref()
            .filter(|path| !path.as_os_str().is_empty())
    }

    /// Returns `true` if a flag of this command names the server, rather than a variable or a
    /// settings file.
    pub(crate) fn is_typed(&self) -> bool {
        self.named_socket().is_some_and(|path| {
            find_general_setting(CONTROL_VARIABLE, "control").is_none_or(|set| set != *path)
        })
    }
}

/// The start of the server's response if the rule to silence does not exist.
const UNKNOWN_RULE: &str = "no alert rule";

/// The response of a server that has accepted a request.
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
            format!(
                "the server at {at} is not a gpumon server; choose another socket with --control"
            )
        })?)
    }
}

impl Server {
    /// Sends one GET request.
    pub(crate) fn send_get_request(self, target: &str) -> io::Result<LocalResponse> {
        self.send_get_request_within(RESPONSE_TIMEOUT, target)
    }

    /// Sends one GET request, with the time limit `patience`. This function is for callers that can
    /// also work without the server.
    pub(crate) fn send_get_request_within(
        self,
        patience: Duration,
        target: &str,
    ) -> io::Result<LocalResponse> {
        send_request(self.stream, patience, &format!("GET {target}"), "")
    }
}

impl fmt::Display for NoServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no gpumon server found at {}; {}",
            self.describe_sockets(),
            Self::CURE
        )
    }
}

impl std::error::Error for NoServerError {}

/// The maximum time for each read and write on the stream. A server sends a frame every few seconds
/// even if nothing has happened.
const STREAM_TIMEOUT: Duration = Duration::from_secs(20);

/// The frames in a server's stream.
pub(crate) struct Frames(WebSocket<UnixStream>);

impl Server {
    /// Requests the stream of samples and events. The server sends one sample per `interval`, which
    /// is limited to the supported intervals. With `traces`, the server also sends values that the
    /// driver itself has recorded.
    pub(crate) fn start_stream(self, interval: Duration, traces: bool) -> io::Result<Frames> {
        self.stream.set_read_timeout(Some(STREAM_TIMEOUT))?;
        self.stream.set_write_timeout(Some(STREAM_TIMEOUT))?;
        let opened = tungstenite::client("ws://localhost/api/v1/stream", self.stream);
        let (mut socket, _) = opened.map_err(|error| io::Error::other(error.to_string()))?;
        let (shortest, longest) = INTERVAL_LIMITS_MS.into_inner();
        let ms = u32::try_from(interval.as_millis())
            .unwrap_or(longest)
            .clamp(shortest, longest);
        let traces = traces.then_some(ClientFrame::Traces { on: true });
        for frame in iter::once(ClientFrame::Interval { ms }).chain(traces) {
            let request = Message::text(serde_json::to_string(&frame)?);
            socket.send(request).map_err(to_io_error)?;
        }
        Ok(Frames(socket))
    }
}

impl Frames {
    /// Waits for the next frame. Frames of unknown types, which newer servers may send, are
    /// skipped.
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
            match self.0.read().map_err(to_io_error)? {
                Message::Text(text) => return Ok(text.as_str().to_owned()),
                Message::Close(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
                _ => {}
            }
        }
    }
}

fn to_io_error(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        other => io::Error::other(other),
    }
}
