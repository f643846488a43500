//! A client of `/api/v1/stream`.

use flate2::{Decompress, FlushDecompress};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Message, client::IntoClientRequest},
};

use super::PATIENCE;

pub(crate) struct Stream {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// The decompressor, because all binary messages are parts of one stream.
    inflate: Decompress,
}

impl Stream {
    pub(crate) async fn connect(port: u16, query: &str) -> Self {
        Self::connect_with(format!("ws://localhost:{port}/api/v1/stream{query}")).await
    }

    /// Connects with headers.
    pub(crate) async fn connect_with(request: impl IntoClientRequest + Unpin) -> Self {
        let (socket, _) = timeout(PATIENCE, connect_async(request))
            .await
            .unwrap()
            .unwrap();
        Self {
            socket,
            inflate: Decompress::new(false),
        }
    }

    /// Returns the next frame; `None` if the server closed the connection.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            match timeout(PATIENCE, self.socket.next())
                .await
                .expect("no frame came")
            {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Binary(bytes))) => return Some(self.inflated(&bytes)),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return None,
            }
        }
    }

    fn inflated(&mut self, bytes: &[u8]) -> Value {
        let mut text = Vec::with_capacity(1 << 20);
        self.inflate
            .decompress_vec(bytes, &mut text, FlushDecompress::Sync)
            .unwrap();
        assert_eq!(text.pop(), Some(b'\n'), "one line");
        serde_json::from_slice(&text).unwrap()
    }

    /// Returns the next frame that meets this condition, and discards those before it.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let begun = std::time::Instant::now();
        while begun.elapsed() < PATIENCE {
            let frame = self.next().await.expect("the server closed the connection");
            if wanted(&frame) {
                return frame;
            }
        }
        panic!("the frame that was waited for did not come");
    }

    pub(crate) async fn next_of(&mut self, kind: &str) -> Value {
        self.until(|frame| frame["type"] == kind).await
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// Sends a message. The server may close the connection before it has received all of it.
    pub(crate) async fn send_at_risk(&mut self, text: &str) {
        let _ = self.socket.send(Message::text(text)).await;
    }

    pub(crate) async fn send_binary(&mut self, bytes: &[u8]) {
        self.socket
            .send(Message::binary(bytes.to_vec()))
            .await
            .unwrap();
    }
}
