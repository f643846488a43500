//! A WebSocket client of the stream, which reads only the beginning of each frame and discards the
//! rest.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{MsgFlags, send};

use crate::{
    frame::{CLOSE, Header, Kind, LONGEST_HEADER, LOOKED_AT, PING},
    receive::{Arrival, Received, Receiver},
    server::Server,
};

/// Maximum length of the answer to the handshake, in bytes.
const LONGEST_ANSWER: usize = 4096;

pub(crate) struct Client {
    socket: OwnedFd,
    phase: Phase,
    /// Bytes that were read but not parsed yet.
    head: Vec<u8>,
}

enum Phase {
    Connecting,
    Asked,
    /// The client is between two frames, or in the header of one.
    Frames,
    /// The client is in a frame with this many remaining bytes.
    Within(Kind, usize),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Frame(Kind, Arrival),
    /// The server did not accept the handshake.
    Refused,
    Ended,
}

impl Client {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            phase: Phase::Connecting,
            head: Vec::new(),
        }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) fn ask(&mut self, server: &Server) {
        if !matches!(self.phase, Phase::Connecting) {
            return;
        }
        let request = format!(
            "GET /api/v1/stream HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: Z3B1bW9uLWxvYWQtdGVzdA==\r\n\r\n",
            server.host()
        );
        // The request fits into the buffer of an empty socket. If an error occurs, the connection
        // ends, which `read` notices.
        let _ = send(
            self.socket.as_raw_fd(),
            request.as_bytes(),
            MsgFlags::MSG_NOSIGNAL,
        );
        self.phase = Phase::Asked;
    }

    pub(crate) fn read(&mut self, receiver: &mut Receiver, mut on: impl FnMut(Said)) {
        loop {
            let (got, wanted) = match self.phase {
                Phase::Within(_, left) => (receiver.skip(&self.socket, left), left),
                Phase::Connecting | Phase::Asked | Phase::Frames => {
                    let known = self.head.len();
                    self.head.resize(known + LONGEST_HEADER + LOOKED_AT, 0);
                    let got = receiver.read(&self.socket, &mut self.head[known..]);
                    self.head.truncate(
                        known
                            + if let Received::Bytes(count, _) = got {
                                count
                            } else {
                                0
                            },
                    );
                    (got, LONGEST_HEADER + LOOKED_AT)
                }
            };
            match got {
                Received::Nothing => return,
                Received::End => return on(Said::Ended),
                Received::Bytes(count, arrival) => {
                    self.take(count, arrival, &mut on);
                    // There is no more to read, and another attempt would cost a system call.
                    if count < wanted || matches!(self.phase, Phase::Frames) {
                        return;
                    }
                }
            }
        }
    }

    fn take(&mut self, count: usize, arrival: Arrival, on: &mut impl FnMut(Said)) {
        if let Phase::Within(kind, left) = self.phase {
            if count < left {
                self.phase = Phase::Within(kind, left - count);
                return;
            }
            self.phase = Phase::Frames;
            return on(Said::Frame(kind, arrival));
        }
        if matches!(self.phase, Phase::Connecting | Phase::Asked) && !self.is_welcome(on) {
            return;
        }
        while let Some(header) = Header::parse(&self.head) {
            let here = self.head.len() - header.length;
            if here < header.payload.min(LOOKED_AT) {
                break;
            }
            let payload = &self.head[header.length..][..here.min(header.payload)];
            match header.opcode {
                CLOSE => return on(Said::Ended),
                PING => pong(&self.socket, payload),
                _ => {}
            }
            let kind = Kind::at_sight(&payload[..payload.len().min(LOOKED_AT)]);
            if here < header.payload {
                self.phase = Phase::Within(kind, header.payload - here);
                self.head.clear();
                return;
            }
            self.head.drain(..header.length + header.payload);
            on(Said::Frame(kind, arrival));
        }
    }

    /// Returns whether the handshake is complete. Bytes after the answer are kept.
    fn is_welcome(&mut self, on: &mut impl FnMut(Said)) -> bool {
        let end = self
            .head
            .windows(4)
            .position(|window| window == b"\r\n\r\n");
        match end {
            Some(end) if self.head.starts_with(b"HTTP/1.1 101 ") => {
                self.head.drain(..end + 4);
                self.phase = Phase::Frames;
                true
            }
            None if self.head.len() < LONGEST_ANSWER => false,
            _ => {
                on(Said::Refused);
                false
            }
        }
    }
}

/// Answers a ping. The mask is zero, so the payload stays the same.
fn pong(socket: &OwnedFd, payload: &[u8]) {
    let mut frame = vec![0x8a, 0x80 | payload.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(payload);
    let _ = send(socket.as_raw_fd(), &frame, MsgFlags::MSG_NOSIGNAL);
}
