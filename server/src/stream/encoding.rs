//! The encoding of a client's frames: unchanged, or compressed (`?encoding=deflate-raw`).
//!
//! A compressed connection is one raw deflate stream (RFC 1951). Each binary message is a frame
//! with a line feed that does not refer to earlier data, so that it is compressed once for all
//! clients and can follow any other message. Proxies pass this on, while most of them do not
//! negotiate the WebSocket's own compression.

use std::{io::Write, mem};

use bytes::{BufMut, BytesMut};
use flate2::{Compression, write::DeflateEncoder};
use schemars::JsonSchema;
use serde::Deserialize;

/// The compression level. Higher ones hardly reduce the size: a sample of 64 GPUs takes 14 KB
/// instead of 112, in half a millisecond.
const LEVEL: Compression = Compression::new(4);

/// The minimum size for compression in bytes. Shorter texts are sent uncompressed in a block of
/// their own.
const SHORTEST_COMPRESSED: usize = 512;

/// The encoding of a stream's frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Encoding {
    /// Text messages with one frame each.
    #[default]
    Text,
    /// Binary messages that form a raw deflate stream of lines with one frame each.
    DeflateRaw,
}

impl Encoding {
    /// Returns the query that requests this encoding from another server.
    pub(crate) fn query(self) -> &'static str {
        match self {
            Self::Text => "",
            Self::DeflateRaw => "?encoding=deflate-raw",
        }
    }

    /// Returns the payload of a message with this text.
    pub(crate) fn payload(self, text: String) -> Vec<u8> {
        match self {
            Self::Text => text.into(),
            Self::DeflateRaw => deflate_raw(text.as_bytes()),
        }
    }
}

/// Returns the part of the deflate stream for this line.
pub(super) fn deflate_raw(text: &[u8]) -> Vec<u8> {
    if text.len() < SHORTEST_COMPRESSED {
        stored(text)
    } else {
        deflated(text)
    }
}

/// Returns a deflate block that is not compressed and not the last one.
fn stored(text: &[u8]) -> Vec<u8> {
    let length = text.len() as u16 + 1;
    let mut block = BytesMut::with_capacity(6 + text.len());
    block.put_u8(0);
    block.put_u16_le(length);
    block.put_u16_le(!length);
    block.put_slice(text);
    block.put_u8(b'\n');
    block.into()
}

fn deflated(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(text.len() / 4), LEVEL);
    // Writing to a vector cannot fail. A flush ends at a byte boundary. Dropping the encoder would
    // append the end of the stream.
    let _ = encoder
        .write_all(text)
        .and_then(|()| encoder.write_all(b"\n"))
        .and_then(|()| encoder.flush());
    mem::take(encoder.get_mut())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::DeflateDecoder;

    use super::*;

    #[test]
    fn any_of_the_messages_in_a_row_are_one_stream_of_lines() {
        let texts: Vec<String> = (0..40)
            .map(|n| format!(r#"{{"frame":{n}}}"#).repeat(n * n))
            .collect();
        for every in 1..4 {
            let received: Vec<_> = texts.iter().step_by(every).cloned().collect();
            let stream: Vec<u8> = received
                .iter()
                .flat_map(|text| deflate_raw(text.as_bytes()))
                .collect();
            let mut lines = String::new();
            // The connection is closed without the end of the deflate stream.
            let _ = DeflateDecoder::new(&stream[..]).read_to_string(&mut lines);
            assert_eq!(lines, received.join("\n") + "\n");
        }
    }

    #[test]
    fn a_message_never_grows_by_more_than_the_head_of_a_block() {
        for length in [0, 1, SHORTEST_COMPRESSED - 1, SHORTEST_COMPRESSED, 5000] {
            let text: Vec<u8> = (0..length)
                .map(|at| (at as u32).wrapping_mul(2_654_435_761).to_le_bytes()[3])
                .collect();
            let payload = deflate_raw(&text);
            assert!(
                payload.len() <= length + 16,
                "{length} became {}",
                payload.len()
            );
        }
        let repeated = br#"{"absent":"not_supported"},"#.repeat(1000);
        let repeated = deflate_raw(&repeated);
        assert!(repeated.len() < 300, "{}", repeated.len());
    }
}
