//! WebSocket frames as bytes (RFC 6455, section 5.2).

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::{
    sync::OnceCell,
    task::{JoinError, spawn_blocking},
};

use super::encoding::{Encoding, deflate_raw};

/// The first byte of a message's only frame, with text or with binary data.
const LAST_TEXT: u8 = 0x81;
const LAST_BINARY: u8 = 0x82;
/// The length codes for a length in two and in eight bytes.
const TWO_BYTES: u8 = 126;
const EIGHT_BYTES: u8 = 127;

/// The size in bytes from which texts are compressed outside the event loop.
const LONG: usize = 16 * 1024;

/// A text with its frame head, shared by all clients that receive it. Servers do not mask frames,
/// so the bytes are the same for all clients.
#[derive(Debug, Clone)]
pub(crate) struct TextFrame(Arc<Encoded>);

#[derive(Debug)]
struct Encoded {
    text: Bytes,
    /// The length of the head in bytes.
    head: usize,
    /// The compressed frame, which is created for the first client that needs it.
    deflated: OnceCell<Bytes>,
}

impl TextFrame {
    pub(crate) fn new(text: &str) -> Self {
        let bytes = frame(Encoding::Text, text.as_bytes());
        Self(Arc::new(Encoded {
            head: bytes.len() - text.len(),
            text: bytes,
            deflated: OnceCell::new(),
        }))
    }

    /// Returns the text without the head.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.0.text[self.0.head..]).unwrap()
    }

    /// Returns the frame in an encoding.
    ///
    /// # Errors
    /// Returns an error if the server ends before the frame is compressed.
    pub(crate) async fn bytes(&self, encoding: Encoding) -> Result<&Bytes, JoinError> {
        match encoding {
            Encoding::Text => Ok(&self.0.text),
            Encoding::DeflateRaw => {
                let text = self.0.text.slice(self.0.head..);
                let is_long = text.len() > LONG;
                let write = move || frame(encoding, &deflate_raw(&text));
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

fn frame(encoding: Encoding, payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(10 + payload.len());
    put_head(&mut frame, encoding, payload.len());
    frame.put_slice(payload);
    frame.freeze()
}

/// Writes the head of a frame with a payload of this length.
pub(super) fn put_head(frame: &mut BytesMut, encoding: Encoding, length: usize) {
    frame.put_u8(match encoding {
        Encoding::Text => LAST_TEXT,
        Encoding::DeflateRaw => LAST_BINARY,
    });
    match length {
        0..=125 => frame.put_u8(length as u8),
        126..=0xffff => {
            frame.put_u8(TWO_BYTES);
            frame.put_u16(length as u16);
        }
        _ => {
            frame.put_u8(EIGHT_BYTES);
            frame.put_u64(length as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tokio_tungstenite::tungstenite::{Message, WebSocket, protocol::Role};

    use super::*;

    async fn received(text: &str, encoding: Encoding) -> Message {
        let bytes = TextFrame::new(text).bytes(encoding).await.unwrap().to_vec();
        WebSocket::from_raw_socket(Cursor::new(bytes), Role::Client, None)
            .read()
            .unwrap()
    }

    #[tokio::test]
    async fn frames_of_every_length_are_read_by_the_library() {
        for length in [0, 1, 125, 126, 127, 0xffff, 0x1_0000, 0x2_0001] {
            let text = "x".repeat(length);
            assert!(
                received(&text, Encoding::Text).await == Message::text(&text),
                "{length}"
            );
            let payload = deflate_raw(text.as_bytes());
            assert!(
                received(&text, Encoding::DeflateRaw).await == Message::binary(payload),
                "{length}"
            );
        }
    }

    #[tokio::test]
    async fn a_frame_is_compressed_once_for_all_clients() {
        let frame = TextFrame::new(&"x".repeat(LONG + 1));
        let other = frame.clone();
        let (one, same) = tokio::join!(
            frame.bytes(Encoding::DeflateRaw),
            other.bytes(Encoding::DeflateRaw)
        );
        assert_eq!(one.unwrap().as_ptr(), same.unwrap().as_ptr());
    }
}
