//! Connections to a server, and descriptions of connection errors.

use std::{fmt, io, io::ErrorKind, os::unix::net::UnixStream, path::PathBuf, time::Duration};

use gpumon_server::listen::Connector;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tungstenite::{Error, WebSocket};

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
    pub(super) fn handshake(
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

    /// Describes a connection error by the reason in the server's response, if there is one. In a
    /// response of the fleet server, the name of the node at the start is removed.
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
