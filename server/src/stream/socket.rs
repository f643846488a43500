//! The WebSocket of one client, and the encoding of its frames. tungstenite reads incoming
//! messages. Outgoing messages are written directly from bytes that all clients share.
//!
//! tungstenite would copy each frame into a separate buffer for each connection, and each buffer
//! would keep the size of its largest frame.

use std::{io::Write, mem, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::Request,
    http::{self, StatusCode},
    response::{IntoResponse, Response},
};
use bytes::{BufMut, Bytes, BytesMut};
use flate2::{Compression, write::DeflateEncoder};
use futures_util::{FutureExt, SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    io::AsyncWriteExt,
    sync::OnceCell,
    task::{JoinError, spawn_blocking},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message, Utf8Bytes,
        handshake::server::create_response,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

/// The time after which a client that does not read is disconnected.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size of a client's frame in bytes. Clients only send short requests.
const MAX_CLIENT_FRAME_BYTES: usize = 4096;

/// The size of the read buffer of each connection in bytes.
const READ_BUFFER_BYTES: usize = 512;

/// The maximum size of tungstenite's own output in bytes: pongs and the close frame.
const WRITE_BUFFER_LIMIT: usize = 4096;

/// The error for a connection that has ended or cannot be used.
pub(crate) struct Disconnected;

// The cause is dropped, because the connection is closed whatever the error is.
impl<E: std::error::Error> From<E> for Disconnected {
    fn from(_: E) -> Self {
        Self
    }
}

pub(crate) struct ClientSocket {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    pub(crate) encoding: Encoding,
}

/// Returns the response to a WebSocket request, and the future for the upgraded connection.
///
/// # Errors
/// Returns a response if the request is not a valid WebSocket request.
pub(crate) fn accept_upgrade(mut request: Request) -> Result<(Response, OnUpgrade), Box<Response>> {
    let refusal = |why: &str| {
        let message = format!("this route requires a WebSocket request: {why}\n");
        Box::new((StatusCode::BAD_REQUEST, message).into_response())
    };
    let on_upgrade = request.extensions_mut().remove::<OnUpgrade>();
    let (parts, _) = request.into_parts();
    let response = create_response(&http::Request::from_parts(parts, ()));
    let response = response.map_err(|error| refusal(&error.to_string()))?;
    let on_upgrade = on_upgrade.ok_or_else(|| refusal("the connection cannot be upgraded"))?;
    Ok((response.map(|()| Body::empty()), on_upgrade))
}

impl ClientSocket {
    pub(crate) async fn new(upgraded: Upgraded, encoding: Encoding) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(WRITE_BUFFER_LIMIT)
            .max_message_size(Some(MAX_CLIENT_FRAME_BYTES))
            .max_frame_size(Some(MAX_CLIENT_FRAME_BYTES));
        let socket =
            WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config))
                .await;
        Self { socket, encoding }
    }

    /// Waits for the next message. Returns `None` if the connection has ended.
    pub(crate) async fn receive(&mut self) -> Option<Message> {
        self.socket.next().await?.ok()
    }

    pub(super) async fn send(&mut self, frame: &TextFrame) -> Result<(), Disconnected> {
        let bytes = frame.encoded_bytes(self.encoding).await?;
        self.write_parts(&[bytes]).await
    }

    /// Sends a shared payload that is already in this client's encoding.
    pub(crate) async fn send_payload(&mut self, payload: &[u8]) -> Result<(), Disconnected> {
        let mut head = BytesMut::new();
        write_head(&mut head, self.encoding, payload.len());
        self.write_parts(&[&head, payload]).await
    }

    /// Writes the parts, preceded by any unfinished output of tungstenite, such as a pong.
    async fn write_parts(&mut self, parts: &[&[u8]]) -> Result<(), Disconnected> {
        // Usually, all data can be written immediately. Writing is therefore first tried without a
        // timer.
        let mut parts = parts.iter().copied();
        let mut rest: &[u8] = &[];
        if let Some(Ok(())) = self.socket.flush().now_or_never() {
            for part in parts.by_ref() {
                let written = self
                    .socket
                    .get_mut()
                    .write(part)
                    .now_or_never()
                    .transpose()?;
                rest = &part[written.unwrap_or(0)..];
                if !rest.is_empty() {
                    break;
                }
            }
        }
        // Encrypted data may still be in the TLS buffer, so the socket must be flushed.
        let is_written = rest.is_empty() && parts.len() == 0;
        if is_written && let Some(flushed) = self.socket.get_mut().flush().now_or_never() {
            return Ok(flushed?);
        }
        let writing = async {
            self.socket.flush().await?;
            for part in std::iter::once(rest).chain(parts) {
                self.socket.get_mut().write_all(part).await?;
            }
            self.socket.get_mut().flush().await?;
            Ok::<_, Disconnected>(())
        };
        timeout(SEND_TIMEOUT, writing).await?
    }

    pub(crate) async fn send_close(&mut self, reason: &'static str) -> Result<(), Disconnected> {
        let reason = Utf8Bytes::from_static(reason);
        let close = Message::Close(Some(CloseFrame {
            code: CloseCode::Away,
            reason,
        }));
        timeout(SEND_TIMEOUT, self.socket.send(close)).await??;
        Ok(())
    }
}

// Payloads: unchanged, or compressed (`?encoding=deflate-raw`).
//
// A compressed connection is one raw deflate stream (RFC 1951). Each binary message contains a
// frame and a line feed, and does not refer to earlier data. A frame is therefore compressed only
// once for all clients, and can follow any other message. Proxies pass these messages on, whereas
// most proxies do not negotiate the WebSocket's own compression.

/// The compression level. Higher levels hardly reduce the size. At this level, the sample of 64
/// GPUs is reduced from 112 KB to 14 KB in half a millisecond.
const COMPRESSION_LEVEL: Compression = Compression::new(4);

/// The size in bytes from which texts are compressed. Shorter texts are sent as an uncompressed
/// block.
const MIN_COMPRESSED_BYTES: usize = 512;

/// The encoding of a stream's frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Encoding {
    /// Text messages that each contain one frame.
    #[default]
    Text,
    /// Binary messages that together form a raw deflate stream of lines. Each line is one frame.
    DeflateRaw,
}

impl Encoding {
    /// Returns the query parameter that requests this encoding from another server.
    pub(crate) fn query_string(self) -> &'static str {
        match self {
            Self::Text => "",
            Self::DeflateRaw => "?encoding=deflate-raw",
        }
    }

    /// Returns the payload of a message that contains this text.
    pub(crate) fn encode_payload(self, text: String) -> Vec<u8> {
        match self {
            Self::Text => text.into(),
            Self::DeflateRaw => deflate_text(text.as_bytes()),
        }
    }
}

/// Returns the part of the deflate stream that contains this text and a line feed.
fn deflate_text(text: &[u8]) -> Vec<u8> {
    if text.len() < MIN_COMPRESSED_BYTES {
        encode_stored_block(text)
    } else {
        deflate_block(text)
    }
}

/// Returns an uncompressed deflate block that is not marked as the last block.
fn encode_stored_block(text: &[u8]) -> Vec<u8> {
    let length = text.len() as u16 + 1;
    let mut block = BytesMut::with_capacity(6 + text.len());
    block.put_u8(0);
    block.put_u16_le(length);
    block.put_u16_le(!length);
    block.put_slice(text);
    block.put_u8(b'\n');
    block.into()
}

fn deflate_block(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(text.len() / 4), COMPRESSION_LEVEL);
    // Writing to a vector cannot fail. The flush aligns the output to a byte. The buffer is taken
    // out, because finishing or dropping the encoder would append the end of the stream.
    let _ = encoder
        .write_all(text)
        .and_then(|()| encoder.write_all(b"\n"))
        .and_then(|()| encoder.flush());
    mem::take(encoder.get_mut())
}

// Frames with their headers (RFC 6455, section 5.2).

/// The first byte of a message that consists of a single text frame. For binary frames, it is
/// `FINAL_BINARY`.
const FINAL_TEXT: u8 = 0x81;
const FINAL_BINARY: u8 = 0x82;
/// The length code that announces a length in two bytes. For eight bytes, it is
/// `EIGHT_BYTE_LENGTH`.
const TWO_BYTE_LENGTH: u8 = 126;
const EIGHT_BYTE_LENGTH: u8 = 127;

/// The size in bytes from which texts are compressed outside the event loop.
const MIN_BACKGROUND_BYTES: usize = 16 * 1024;

/// A text and its frame header, shared by all clients that receive it. Servers do not mask frames,
/// so all clients receive the same bytes.
#[derive(Debug, Clone)]
pub(crate) struct TextFrame(Arc<EncodedText>);

#[derive(Debug)]
struct EncodedText {
    text: Bytes,
    /// The length of the frame header in bytes.
    head: usize,
    /// The compressed frame, which is created for the first client that needs it.
    deflated: OnceCell<Bytes>,
}

impl TextFrame {
    pub(crate) fn new(text: &str) -> Self {
        let bytes = encode_frame(Encoding::Text, text.as_bytes());
        Self(Arc::new(EncodedText {
            head: bytes.len() - text.len(),
            text: bytes,
            deflated: OnceCell::new(),
        }))
    }

    /// Returns the text without the frame header.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.0.text[self.0.head..]).unwrap()
    }

    /// Returns the frame in an encoding.
    ///
    /// # Errors
    /// Returns an error if the server ends before the frame is compressed.
    pub(crate) async fn encoded_bytes(&self, encoding: Encoding) -> Result<&Bytes, JoinError> {
        match encoding {
            Encoding::Text => Ok(&self.0.text),
            Encoding::DeflateRaw => {
                let text = self.0.text.slice(self.0.head..);
                let is_long = text.len() > MIN_BACKGROUND_BYTES;
                let write = move || encode_frame(encoding, &deflate_text(&text));
                let write = async || {
                    if is_long {
                        spawn_blocking(write).await
                    } else {
                        Ok(write())
                    }
                };
                self.0.deflated.get_or_try_init(write).await
            }
        }
    }
}

fn encode_frame(encoding: Encoding, payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(10 + payload.len());
    write_head(&mut frame, encoding, payload.len());
    frame.put_slice(payload);
    frame.freeze()
}

/// Writes the header of a frame with a payload of this length.
fn write_head(frame: &mut BytesMut, encoding: Encoding, length: usize) {
    frame.put_u8(match encoding {
        Encoding::Text => FINAL_TEXT,
        Encoding::DeflateRaw => FINAL_BINARY,
    });
    match length {
        0..=125 => frame.put_u8(length as u8),
        126..=0xffff => {
            frame.put_u8(TWO_BYTE_LENGTH);
            frame.put_u16(length as u16);
        }
        _ => {
            frame.put_u8(EIGHT_BYTE_LENGTH);
            frame.put_u64(length as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::DeflateDecoder;

    use super::*;

    #[test]
    fn messages_form_one_deflate_stream_of_lines() {
        let texts: Vec<String> = (0..40)
            .map(|n| format!(r#"{{"frame":{n}}}"#).repeat(n * n))
            .collect();
        for every in 1..4 {
            let received: Vec<_> = texts.iter().step_by(every).cloned().collect();
            let stream: Vec<u8> = received
                .iter()
                .flat_map(|text| deflate_text(text.as_bytes()))
                .collect();
            let mut lines = String::new();
            // The decoder reports an error at the end, because connections are closed without
            // ending the deflate stream.
            let _ = DeflateDecoder::new(&stream[..]).read_to_string(&mut lines);
            assert_eq!(lines, received.join("\n") + "\n");
        }
    }

    #[test]
    fn compression_lengthens_message_by_at_most_16_bytes() {
        for length in [0, 1, MIN_COMPRESSED_BYTES - 1, MIN_COMPRESSED_BYTES, 5000] {
            let text: Vec<u8> = (0..length)
                .map(|at| (at as u32).wrapping_mul(2_654_435_761).to_le_bytes()[3])
                .collect();
            let payload = deflate_text(&text);
            assert!(
                payload.len() <= length + 16,
                "{length} became {}",
                payload.len()
            );
        }
        let repeated = br#"{"absent":"not_supported"},"#.repeat(1000);
        let repeated = deflate_text(&repeated);
        assert!(repeated.len() < 300, "{}", repeated.len());
    }
}

#[cfg(test)]
mod text_frame_tests {
    use std::io::Cursor;

    use tokio_tungstenite::tungstenite::{Message, WebSocket, protocol::Role};

    use super::*;

    async fn receive_frame(text: &str, encoding: Encoding) -> Message {
        let bytes = TextFrame::new(text)
            .encoded_bytes(encoding)
            .await
            .unwrap()
            .to_vec();
        WebSocket::from_raw_socket(Cursor::new(bytes), Role::Client, None)
            .read()
            .unwrap()
    }

    #[tokio::test]
    async fn frames_of_any_length_are_parsed() {
        for length in [0, 1, 125, 126, 127, 0xffff, 0x1_0000, 0x2_0001] {
            let text = "x".repeat(length);
            assert!(
                receive_frame(&text, Encoding::Text).await == Message::text(&text),
                "{length}"
            );
            let payload = deflate_text(text.as_bytes());
            assert!(
                receive_frame(&text, Encoding::DeflateRaw).await == Message::binary(payload),
                "{length}"
            );
        }
    }

    #[tokio::test]
    async fn a_frame_is_compressed_once_for_all_clients() {
        let frame = TextFrame::new(&"x".repeat(MIN_BACKGROUND_BYTES + 1));
        let other = frame.clone();
        let (one, same) = tokio::join!(
            frame.encoded_bytes(Encoding::DeflateRaw),
            other.encoded_bytes(Encoding::DeflateRaw)
        );
        assert_eq!(one.unwrap().as_ptr(), same.unwrap().as_ptr());
    }
}
