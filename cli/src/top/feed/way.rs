//! How a server is reached, and why it is not.

use std::{fmt, io, io::ErrorKind, os::unix::net::UnixStream, path::PathBuf, time::Duration};

use gpumon_server::listen::Connector;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tungstenite::{Error, WebSocket};

/// How a server is reached, as often as that is needed.
#[derive(Debug, Clone)]
pub(in crate::top) enum Way {
    /// One of this machine, at its socket.
    Socket(PathBuf),
    /// That of a node, through this program's own server of the fleet, which knows where nodes are
    /// and how to come in.
    Node(String, Connector),
}

impl Way {
    pub(super) fn connect(&self) -> io::Result<UnixStream> {
        match self {
            Self::Socket(path) => UnixStream::connect(path),
            Self::Node(_, connector) => connector.connect(),
        }
    }

    /// The path of an endpoint, as `history`, at whoever is connected to.
    pub(super) fn endpoint(&self, name: &str) -> String {
        match self {
            Self::Socket(_) => format!("/api/v1/{name}"),
            Self::Node(node, _) => format!(
                "/nodes/{}/api/v1/{name}",
                utf8_percent_encode(node, NON_ALPHANUMERIC)
            ),
        }
    }

    /// Asks for the stream on a new connection.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn handshake(
        &self,
        stream: UnixStream,
        poll: Duration,
    ) -> Result<WebSocket<UnixStream>, String> {
        let limit = Some(self.patience());
        let limited = stream
            .set_read_timeout(limit)
            .and_then(|()| stream.set_write_timeout(limit));
        limited.map_err(|error| error.to_string())?;
        let opened =
            tungstenite::client(format!("ws://localhost{}", self.endpoint("stream")), stream);
        let (socket, _) = opened.map_err(|error| match error {
            tungstenite::HandshakeError::Failure(error) => self.cause(error),
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

    /// How long the handshake may take: with a node, the server of the fleet says what takes too
    /// long.
    fn patience(&self) -> Duration {
        Duration::from_secs(if matches!(self, Self::Socket(_)) {
            5
        } else {
            20
        })
    }

    /// As a server says it, where it does. That of a fleet begins with the name of the node.
    fn cause(&self, error: Error) -> String {
        let Error::Http(answer) = error else {
            return error.to_string();
        };
        let body =
            String::from_utf8_lossy(answer.body().as_deref().unwrap_or_default()).into_owned();
        let told = body
            .trim()
            .strip_prefix(&format!("{self}: "))
            .unwrap_or(body.trim());
        if told.is_empty() {
            format!("it answers with {}", answer.status())
        } else {
            told.to_owned()
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "the server at {}", path.display()),
            Self::Node(node, _) => f.write_str(node),
        }
    }
}
