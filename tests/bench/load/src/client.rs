//! A WebSocket client of the stream, which reads only the beginning of each frame and discards the
//! rest.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{MsgFlags, send};

use crate::{
    frame::{CLOSE, FrameKind, Header, MAX_HEADER_BYTES, PARSED_BYTES, PING},
    receive::{Arrival, Received, Receiver},
    server::Server,
};

/// Maximum length of the answer to the handshake, in bytes.
const MAX_RESPONSE_BYTES: usize = 4096;

pub(crate) struct Client {
    socket: OwnedFd,
    phase: ConnectionPhase,
    /// Bytes that were read but not parsed yet.
    head: Vec<u8>,
}

enum ConnectionPhase {
    Connecting,
    Asked,
    /// The client is between two frames, or within a frame's header.
    Frames,
    /// The client is in a frame with this many remaining bytes.
    Within(FrameKind, usize),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ClientEvent {
    Frame(FrameKind, Arrival),
    /// The server did not accept the handshake.
    Refused,
    Ended,
}

impl Client {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            phase: ConnectionPhase::Connecting,
            head: Vec::new(),
        }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) fn send_handshake(&mut self, server: &Server) {
        if !matches!(self.phase, ConnectionPhase::Connecting) {
            return;
        }
        let request = format!(
            "GET /api/v1/stream HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: \
             websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \
             Z3B1bW9uLWxvYWQtdGVzdA==\r\n\r\n",
            server.host()
        );
        // The request fits into the buffer of an empty socket. If an error occurs, the connection
        // ends, which `read` notices.
        let _ = send(
            self.socket.as_raw_fd(),
            request.as_bytes(),
            MsgFlags::MSG_NOSIGNAL,
        );
        self.phase = ConnectionPhase::Asked;
    }

    pub(crate) fn read_frames(&mut self, receiver: &mut Receiver, mut on: impl FnMut(ClientEvent)) {
        loop {
            let (got, wanted) = match self.phase {
                ConnectionPhase::Within(_, left) => (receiver.skip(&self.socket, left), left),
                ConnectionPhase::Connecting | ConnectionPhase::Asked | ConnectionPhase::Frames => {
                    let known = self.head.len();
                    self.head.resize(known + MAX_HEADER_BYTES + PARSED_BYTES, 0);
                    let got = receiver.read(&self.socket, &mut self.head[known..]);
                    self.head.truncate(
                        known
                            + if let Received::Bytes(count, _) = got {
                                count
                            } else {
                                0
                            },
                    );
                    (got, MAX_HEADER_BYTES + PARSED_BYTES)
                }
            };
            match got {
                Received::Nothing => return,
                Received::End => return on(ClientEvent::Ended),
                Received::Bytes(count, arrival) => {
                    self.process_bytes(count, arrival, &mut on);
                    // If fewer bytes were read than requested, the socket is empty. Another attempt
                    // to read would only cost a system call.
                    if count < wanted || matches!(self.phase, ConnectionPhase::Frames) {
                        return;
                    }
                }
            }
        }
    }

    fn process_bytes(&mut self, count: usize, arrival: Arrival, on: &mut impl FnMut(ClientEvent)) {
        if let ConnectionPhase::Within(kind, left) = self.phase {
            if count < left {
                self.phase = ConnectionPhase::Within(kind, left - count);
                return;
            }
            self.phase = ConnectionPhase::Frames;
            return on(ClientEvent::Frame(kind, arrival));
        }
        if matches!(
            self.phase,
            ConnectionPhase::Connecting | ConnectionPhase::Asked
        ) && !self.finish_handshake(on)
        {
            return;
        }
        while let Some(header) = Header::parse(&self.head) {
            let here = self.head.len() - header.length;
            if here < header.payload.min(PARSED_BYTES) {
                break;
            }
            let payload = &self.head[header.length..][..here.min(header.payload)];
            match header.opcode {
                CLOSE => return on(ClientEvent::Ended),
                PING => send_pong(&self.socket, payload),
                _ => {}
            }
            let kind = FrameKind::from_payload(&payload[..payload.len().min(PARSED_BYTES)]);
            if here < header.payload {
                self.phase = ConnectionPhase::Within(kind, header.payload - here);
                self.head.clear();
                return;
            }
            self.head.drain(..header.length + header.payload);
            on(ClientEvent::Frame(kind, arrival));
        }
    }

    /// Parses the server's response to the handshake. Returns whether the handshake is complete.
    /// Bytes after the response are kept.
    fn finish_handshake(&mut self, on: &mut impl FnMut(ClientEvent)) -> bool {
        let end = self
            .head
            .windows(4)
            .position(|window| window == b"\r\n\r\n");
        match end {
            Some(end) if self.head.starts_with(b"HTTP/1.1 101 ") => {
                self.head.drain(..end + 4);
                self.phase = ConnectionPhase::Frames;
                true
            }
            None if self.head.len() < MAX_RESPONSE_BYTES => false,
            _ => {
                on(ClientEvent::Refused);
                false
            }
        }
    }
}

/// Answers a ping. The mask is zero, so the payload stays the same.
fn send_pong(socket: &OwnedFd, payload: &[u8]) {
    let mut frame = vec![0x8a, 0x80 | payload.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(payload);
    let _ = send(socket.as_raw_fd(), &frame, MsgFlags::MSG_NOSIGNAL);
}
