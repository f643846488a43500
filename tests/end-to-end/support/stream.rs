//! A client of `/api/v1/stream`.

use flate2::{Decompress, FlushDecompress};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Message, client::IntoClientRequest},
};

use super::TEST_TIMEOUT;

pub(crate) struct Stream {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// The decompressor of all binary messages. Together, the messages are one compressed stream.
    inflate: Decompress,
}

impl Stream {
    pub(crate) async fn connect(port: u16, query: &str) -> Self {
        Self::connect_with(format!("ws://localhost:{port}/api/v1/stream{query}")).await
    }

    /// Connects with the URL and the headers of `request`.
    pub(crate) async fn connect_with(request: impl IntoClientRequest + Unpin) -> Self {
        let (socket, _) = timeout(TEST_TIMEOUT, connect_async(request))
            .await
            .unwrap()
            .unwrap();
        Self {
            socket,
            inflate: Decompress::new(false),
        }
    }

    /// Returns the next frame; `None` if the server closed the connection.
    pub(crate) async fn next_frame(&mut self) -> Option<Value> {
        loop {
            match timeout(TEST_TIMEOUT, self.socket.next())
                .await
                .expect("no frame arrived in time")
            {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Binary(bytes))) => return Some(self.inflate_message(&bytes)),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return None,
            }
        }
    }

    fn inflate_message(&mut self, bytes: &[u8]) -> Value {
        let mut text = Vec::with_capacity(1 << 20);
        self.inflate
            .decompress_vec(bytes, &mut text, FlushDecompress::Sync)
            .unwrap();
        assert_eq!(text.pop(), Some(b'\n'), "a message must end with a newline");
        serde_json::from_slice(&text).unwrap()
    }

    /// Returns the next frame that meets this condition, and discards those before it.
    pub(crate) async fn read_until(&mut self, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        let begun = std::time::Instant::now();
        while begun.elapsed() < TEST_TIMEOUT {
            let frame = self
                .next_frame()
                .await
                .expect("the server closed the connection");
            if wanted(&frame) {
                return frame;
            }
        }
        panic!("the expected frame did not arrive in time");
    }

    pub(crate) async fn next_frame_of_type(&mut self, kind: &str) -> Value {
        self.read_until(|frame| frame["type"] == kind).await
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// Sends a message. The server may close the connection before it has received all of it.
    pub(crate) async fn send_ignoring_errors(&mut self, text: &str) {
        let _ = self.socket.send(Message::text(text)).await;
    }

    pub(crate) async fn send_binary(&mut self, bytes: &[u8]) {
        self.socket
            .send(Message::binary(bytes.to_vec()))
            .await
            .unwrap();
    }
}
