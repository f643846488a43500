//! One client's WebSocket: what comes is read by tungstenite, what goes is written from bytes that all clients share.
//!
//! tungstenite copies each frame into a buffer of the connection's own, which stays as large as the largest frame was.

use std::time::Duration;

use axum::{body::Body, extract::Request, http, response::Response};
use bytes::BytesMut;
use futures_util::{FutureExt, SinkExt, StreamExt};
use gpumon_probe::model::now_ms;
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

use super::text_frame::{TextFrame, put_head};

/// A client that takes nothing for so long has gone, or might as well.
const SEND_PATIENCE: Duration = Duration::from_secs(10);

/// Clients have little to say.
const LONGEST_CLIENT_FRAME: usize = 4096;

/// A connection keeps this for as long as it lasts.
const READ_BUFFER: usize = 512;

/// What tungstenite writes are pongs and the close frame.
const WRITE_BUFFER_LIMIT: usize = 4096;

/// The name before the server's clock in a hello.
const CLOCK: &[u8] = br#""at_ms":"#;

pub(super) struct Disconnected;

pub(super) struct ClientSocket(WebSocketStream<TokioIo<Upgraded>>);

/// The answer to a client that asks for a WebSocket, and the connection that becomes one when it is sent.
///
/// # Errors
/// What is wrong with a request that asks for none.
pub(super) fn accept(mut request: Request) -> Result<(Response, OnUpgrade), String> {
    let on_upgrade = request.extensions_mut().remove::<OnUpgrade>();
    let (parts, _) = request.into_parts();
    let response = create_response(&http::Request::from_parts(parts, ())).map_err(|error| error.to_string())?;
    let on_upgrade = on_upgrade.ok_or("the connection cannot be upgraded")?;
    Ok((response.map(|()| Body::empty()), on_upgrade))
}

impl ClientSocket {
    pub(super) async fn new(upgraded: Upgraded) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0)
            .max_write_buffer_size(WRITE_BUFFER_LIMIT)
            .max_message_size(Some(LONGEST_CLIENT_FRAME))
            .max_frame_size(Some(LONGEST_CLIENT_FRAME));
        Self(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await)
    }

    /// The next message; `None` where there will be no more.
    pub(super) async fn receive(&mut self) -> Option<Message> {
        self.0.next().await?.ok()
    }

    pub(super) async fn send(&mut self, frame: &TextFrame) -> Result<(), Disconnected> {
        self.write(&[frame.bytes()]).await
    }

    /// Sends a text that others get, too.
    pub(super) async fn send_text(&mut self, text: &[u8]) -> Result<(), Disconnected> {
        let mut head = BytesMut::new();
        put_head(&mut head, text.len());
        self.write(&[&head, text]).await
    }

    /// Sends a hello that others get, too, with the clock as it is now.
    pub(super) async fn send_hello(&mut self, hello: &[u8]) -> Result<(), Disconnected> {
        let (before, after) = around_clock(hello);
        let now = now_ms().to_string();
        let mut head = BytesMut::new();
        put_head(&mut head, before.len() + now.len() + after.len());
        head.extend_from_slice(before);
        head.extend_from_slice(now.as_bytes());
        self.write(&[&head, after]).await
    }

    /// What tungstenite has begun to write, a pong perhaps, is written first.
    async fn write(&mut self, parts: &[&[u8]]) -> Result<(), Disconnected> {
        // Mostly everything goes out at once, without a timer.
        let mut parts = parts.iter().copied();
        let mut rest: &[u8] = &[];
        if let Some(Ok(())) = self.0.flush().now_or_never() {
            for part in parts.by_ref() {
                let written = self.0.get_mut().write(part).now_or_never().transpose().map_err(|_| Disconnected)?;
                rest = &part[written.unwrap_or(0)..];
                if !rest.is_empty() {
                    break;
                }
            }
        }
        if rest.is_empty() && parts.len() == 0 {
            return Ok(());
        }
        let writing = async {
            self.0.flush().await.map_err(|_| Disconnected)?;
            for part in std::iter::once(rest).chain(parts) {
                self.0.get_mut().write_all(part).await.map_err(|_| Disconnected)?;
            }
            Ok(())
        };
        timeout(SEND_PATIENCE, writing).await.map_err(|_| Disconnected)?
    }

    pub(super) async fn send_close(&mut self) -> Result<(), Disconnected> {
        let reason = Utf8Bytes::from_static("gpumon is shutting down");
        let close = Message::Close(Some(CloseFrame { code: CloseCode::Away, reason }));
        timeout(SEND_PATIENCE, self.0.send(close)).await.map_err(|_| Disconnected)?.map_err(|_| Disconnected)
    }
}

/// What stands before the first time of day in a hello, and behind it.
fn around_clock(hello: &[u8]) -> (&[u8], &[u8]) {
    let clock = hello.windows(CLOCK.len()).position(|part| part == CLOCK).map_or(hello.len(), |at| at + CLOCK.len());
    let (before, rest) = hello.split_at(clock);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (before, &rest[digits..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hub::Hub, view::View};

    #[test]
    fn the_clock_of_a_hello_is_replaced_and_nothing_else() {
        let hello = Hub::new().hello(View::Whole);
        let (before, after) = around_clock(hello.as_bytes());
        let replaced = String::from_utf8([before, b"7", after].concat()).unwrap();
        let mut expected: serde_json::Value = serde_json::from_str(&hello).unwrap();
        expected["at_ms"] = 7.into();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&replaced).unwrap(), expected);
    }
}
