//! The stream of a running server, read on a thread that has nothing else to do.

use std::{io, os::unix::net::UnixStream, time::Duration};

use gpumon_server::frame::{ClientFrame, INTERVAL_MS, ServerFrame};
use tungstenite::{Error, Message, WebSocket};

use super::Server;

/// A server sends something every few seconds, be it that nothing has happened.
const SILENCE: Duration = Duration::from_secs(20);

/// What a server tells, as it happens.
pub(crate) struct Frames(WebSocket<UnixStream>);

impl Server {
    /// Asks for a sample per `interval`, as near to it as the server goes, and for everything that happens.
    /// `traces` says whether to send what the driver itself recorded, too.
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
