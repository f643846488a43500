//! A text frame of a WebSocket, as its bytes travel (RFC 6455, section 5.2).

use bytes::{BufMut, Bytes, BytesMut};

/// The last frame of a message, which is text.
const LAST_TEXT: u8 = 0x81;
/// The length follows in two bytes, or in eight.
const TWO_BYTES: u8 = 126;
const EIGHT_BYTES: u8 = 127;

/// A frame with its head, shared by all clients that it is sent to. What a server sends is not masked, so that the bytes
/// are the same for each.
#[derive(Debug, Clone)]
pub(crate) struct TextFrame(Bytes);

impl TextFrame {
    pub(crate) fn new(text: &str) -> Self {
        let mut frame = BytesMut::with_capacity(10 + text.len());
        put_head(&mut frame, text.len());
        frame.put_slice(text.as_bytes());
        Self(frame.freeze())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What stands before a text of so many bytes.
pub(super) fn put_head(frame: &mut BytesMut, length: usize) {
    frame.put_u8(LAST_TEXT);
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

    #[test]
    fn frames_of_every_length_are_read_by_the_library() {
        for length in [0, 1, 125, 126, 127, 0xffff, 0x1_0000, 0x2_0001] {
            let text = "x".repeat(length);
            let frame = Cursor::new(TextFrame::new(&text).bytes().to_vec());
            let mut client = WebSocket::from_raw_socket(frame, Role::Client, None);
            assert!(client.read().unwrap() == Message::text(text), "{length}");
        }
    }
}
