//! The encoding of a client's frames: unchanged, or compressed (`?encoding=deflate-raw`).
//!
//! A compressed connection is one raw deflate stream (RFC 1951). Each binary message contains a
//! frame and a line feed, and does not refer to earlier data. A frame is therefore compressed only
//! once for all clients, and can follow any other message. Proxies pass these messages on, whereas
//! most proxies do not negotiate the WebSocket's own compression.

use std::{io::Write, mem};

use bytes::{BufMut, BytesMut};
use flate2::{Compression, write::DeflateEncoder};
use schemars::JsonSchema;
use serde::Deserialize;

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
    pub(crate) fn query_text(self) -> &'static str {
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
pub(super) fn deflate_text(text: &[u8]) -> Vec<u8> {
    if text.len() < MIN_COMPRESSED_BYTES {
        store_block(text)
    } else {
        deflate_block(text)
    }
}

/// Returns an uncompressed deflate block that is not marked as the last block.
fn store_block(text: &[u8]) -> Vec<u8> {
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
    fn message_grows_at_most_by_block_head() {
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
