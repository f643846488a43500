//! The WebSocket of one client. tungstenite reads incoming messages. Outgoing messages are written
//! directly from bytes that all clients share.
//!
//! tungstenite would copy each frame into a separate buffer for each connection, and each buffer
//! would keep the size of its largest frame.

use std::time::Duration;

use axum::{
    body::Body,
    extract::Request,
    http::{self, StatusCode},
    response::{IntoResponse, Response},
};
use bytes::BytesMut;
use futures_util::{FutureExt, SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::{io::AsyncWriteExt, time::timeout};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message, Utf8Bytes,
        handshake::server::create_response,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use super::{
    encoding::Encoding,
    text_frame::{TextFrame, write_head},
};

/// The time after which a client that does not read is disconnected.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size of a client's frame in bytes. Clients only send short requests.
const MAX_CLIENT_FRAME_BYTES: usize = 4096;

/// The size of the read buffer of each connection in bytes.
const READ_BUFFER_BYTES: usize = 512;

/// The maximum size of tungstenite's own output in bytes: pongs and the close frame.
const WRITE_BUFFER_LIMIT: usize = 4096;

pub(crate) struct Disconnected;

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
        let bytes = frame
            .encoded_bytes(self.encoding)
            .await
            .map_err(|_| Disconnected)?;
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
        // Usually, all data can be written immediately, so no timer is needed.
        let mut parts = parts.iter().copied();
        let mut rest: &[u8] = &[];
        if let Some(Ok(())) = self.socket.flush().now_or_never() {
            for part in parts.by_ref() {
                let written = self
                    .socket
                    .get_mut()
                    .write(part)
                    .now_or_never()
                    .transpose()
                    .map_err(|_| Disconnected)?;
                rest = &part[written.unwrap_or(0)..];
                if !rest.is_empty() {
                    break;
                }
            }
        }
        // Encrypted data may still be in the TLS buffer, so the socket must be flushed.
        let is_written = rest.is_empty() && parts.len() == 0;
        if is_written && let Some(flushed) = self.socket.get_mut().flush().now_or_never() {
            return flushed.map_err(|_| Disconnected);
        }
        let writing = async {
            self.socket.flush().await.map_err(|_| Disconnected)?;
            for part in std::iter::once(rest).chain(parts) {
                self.socket
                    .get_mut()
                    .write_all(part)
                    .await
                    .map_err(|_| Disconnected)?;
            }
            self.socket
                .get_mut()
                .flush()
                .await
                .map_err(|_| Disconnected)
        };
        timeout(SEND_TIMEOUT, writing)
            .await
            .map_err(|_| Disconnected)?
    }

    pub(crate) async fn send_close(&mut self, reason: &'static str) -> Result<(), Disconnected> {
        let reason = Utf8Bytes::from_static(reason);
        let close = Message::Close(Some(CloseFrame {
            code: CloseCode::Away,
            reason,
        }));
        timeout(SEND_TIMEOUT, self.socket.send(close))
            .await
            .map_err(|_| Disconnected)?
            .map_err(|_| Disconnected)
    }
}
