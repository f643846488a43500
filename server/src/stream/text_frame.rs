//! Encoded WebSocket frames (RFC 6455, section 5.2).

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::{
    sync::OnceCell,
    task::{JoinError, spawn_blocking},
};

use super::encoding::{Encoding, deflate_text};

/// The first byte of a message that consists of a single text frame. For binary frames, it is
/// `FINAL_BINARY`.
const FINAL_TEXT: u8 = 0x81;
const FINAL_BINARY: u8 = 0x82;
/// The length code that announces a length in two bytes. For eight bytes, it is
/// `EIGHT_BYTE_LENGTH`.
const TWO_BYTE_LENGTH: u8 = 126;
const EIGHT_BYTE_LENGTH: u8 = 127;

/// The size in bytes from which texts are compressed outside the event loop.
const BACKGROUND_BYTES: usize = 16 * 1024;

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
                let is_long = text.len() > BACKGROUND_BYTES;
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
pub(super) fn write_head(frame: &mut BytesMut, encoding: Encoding, length: usize) {
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
        let frame = TextFrame::new(&"x".repeat(BACKGROUND_BYTES + 1));
        let other = frame.clone();
        let (one, same) = tokio::join!(
            frame.encoded_bytes(Encoding::DeflateRaw),
            other.encoded_bytes(Encoding::DeflateRaw)
        );
        assert_eq!(one.unwrap().as_ptr(), same.unwrap().as_ptr());
    }
}
