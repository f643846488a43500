//! A block of a recording: the records of a few seconds, compressed, after a head that summarizes
//! them.
//!
//! A block is a gzip member (RFC 1952) with the subfield `GM` in its extra field. The payload of
//! the subfield is: format (1 byte), flags (1 byte), two bytes of 0, the sizes in bytes of the
//! whole member and of its text and the number of samples (4 bytes each), and the times of the
//! first and last sample in milliseconds since 1970 (8 bytes each). All numbers are little-endian.

use std::io::{self, Read, Write};

use flate2::{Compression, GzBuilder, read::GzDecoder};

use crate::Kind;

/// The format that is written, and the newest that can be read.
pub const FORMAT: u8 = 1;

/// The first bytes of a gzip member that has only an extra field: the magic number, the method
/// deflate, and the flags.
const GZIP_WITH_EXTRA: [u8; 4] = [0x1f, 0x8b, 8, 4];
/// The two letters of the subfield, and the length of its payload.
const SUBFIELD: [u8; 4] = [b'G', b'M', PAYLOAD as u8, 0];
const PAYLOAD: usize = 32;
/// The offsets of the extra field and of the payload of its subfield.
const EXTRA_AT: usize = 12;
const PAYLOAD_AT: usize = EXTRA_AT + SUBFIELD.len();
/// The size of a head in bytes.
pub const HEAD: usize = PAYLOAD_AT + PAYLOAD;

const HAS_INVENTORY: u8 = 1;

/// The maximum size of a block's text. A block is written once it has 4 MiB, and no single record
/// is larger than the rest.
pub const LARGEST_TEXT: u32 = 32 << 20;

/// The maximum ratio of text to its compressed size. Records of idle GPUs are compressed to a
/// fiftieth.
pub(crate) const LARGEST_RATIO: u64 = 200;

/// The head of a block, which summarizes its records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// The size of the gzip member with this head, in bytes.
    pub bytes: u32,
    /// The size of the text in bytes.
    pub text_bytes: u32,
    /// The number of samples.
    pub samples: u32,
    /// Whether the block contains an inventory.
    pub has_inventory: bool,
    /// The time of the first sample, in milliseconds since 1970.
    pub first_ms: u64,
    /// The time of the last sample, in milliseconds since 1970.
    pub last_ms: u64,
}

/// The interpretation of bytes as the head of a block.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Block(Head),
    /// A block in a format that only a newer gpumon can read.
    Newer(u8),
    /// A block that claims to have more text than a block can have.
    TooLarge,
    /// Anything but a block of gpumon.
    Other,
}

impl Head {
    /// Adds a record to the summary.
    pub(crate) fn count(&mut self, kind: Kind, at_ms: u64) {
        self.has_inventory |= kind == Kind::Inventory;
        if kind == Kind::Sample {
            if self.samples == 0 {
                self.first_ms = at_ms;
            }
            self.samples += 1;
            self.last_ms = at_ms;
        }
    }

    /// Returns the head of the next block while it has no records: its times are the end of this
    /// block.
    pub(crate) fn next(&self) -> Self {
        Self {
            first_ms: self.last_ms,
            last_ms: self.last_ms,
            ..Self::default()
        }
    }

    /// Parses the head of a block from its first bytes, which may be too few.
    pub fn read(bytes: &[u8]) -> Found {
        let begins =
            bytes.starts_with(&GZIP_WITH_EXTRA) && bytes.get(EXTRA_AT..EXTRA_AT + 2) == Some(b"GM");
        let Some(format) = bytes.get(PAYLOAD_AT).filter(|_| begins) else {
            return Found::Other;
        };
        if *format > FORMAT {
            return Found::Newer(*format);
        }
        let Some(payload) = bytes
            .get(PAYLOAD_AT..HEAD)
            .filter(|_| bytes[EXTRA_AT..PAYLOAD_AT] == SUBFIELD)
        else {
            return Found::Other;
        };
        let number = |at: usize, length: usize| {
            payload[at..at + length]
                .iter()
                .rev()
                .fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let four = |at: usize| number(at, 4) as u32;
        let eight = |at: usize| number(at, 8);
        let head = Self {
            bytes: four(4),
            text_bytes: four(8),
            samples: four(12),
            has_inventory: payload[1] & HAS_INVENTORY != 0,
            first_ms: eight(16),
            last_ms: eight(24),
        };
        // Nobody has written a block with these sizes, so no memory or time is spent on it.
        if head.bytes as usize <= HEAD || head.samples > head.text_bytes {
            return Found::Other;
        }
        let largest = LARGEST_RATIO * u64::from(head.bytes);
        let is_too_large = head.text_bytes > LARGEST_TEXT || u64::from(head.text_bytes) > largest;
        if is_too_large {
            Found::TooLarge
        } else {
            Found::Block(head)
        }
    }

    fn payload(&self) -> [u8; PAYLOAD] {
        let mut payload = [0; PAYLOAD];
        payload[0] = FORMAT;
        payload[1] = if self.has_inventory { HAS_INVENTORY } else { 0 };
        for (at, number) in [(4, self.bytes), (8, self.text_bytes), (12, self.samples)] {
            payload[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        payload[16..24].copy_from_slice(&self.first_ms.to_le_bytes());
        payload[24..].copy_from_slice(&self.last_ms.to_le_bytes());
        payload
    }
}

/// Compresses a text into a block, and completes `head` with the sizes.
///
/// # Panics
/// Never: writing to memory cannot fail.
pub fn pack(text: &[u8], head: Head) -> Vec<u8> {
    let mut extra = SUBFIELD.to_vec();
    extra.extend([0; PAYLOAD]);
    let mut encoder = GzBuilder::new()
        .extra(extra)
        .write(Vec::new(), Compression::default());
    encoder
        .write_all(text)
        .expect("memory takes all that is written");
    let mut block = encoder.finish().expect("memory takes all that is written");
    let head = Head {
        bytes: block.len() as u32,
        text_bytes: text.len() as u32,
        ..head
    };
    block[PAYLOAD_AT..HEAD].copy_from_slice(&head.payload());
    block
}

/// Returns the text of a block.
///
/// # Errors
/// Returns an error if the checksum or the length is wrong.
pub fn unpack(block: &[u8], head: &Head) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(head.text_bytes as usize);
    GzDecoder::new(block)
        .take(u64::from(head.text_bytes) + 1)
        .read_to_end(&mut text)?;
    if text.len() != head.text_bytes as usize {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "its text is not as long as its head says",
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_as_it_was_written_and_is_a_gzip_member() {
        let head = Head {
            samples: 2,
            has_inventory: true,
            first_ms: 1_700_000_000_000,
            last_ms: 1_700_000_001_000,
            ..Head::default()
        };
        let text = "{\"type\":\"sample\"}\n".repeat(50).into_bytes();
        let block = pack(&text, head);
        let Found::Block(read) = Head::read(&block) else {
            panic!("no block")
        };
        assert_eq!(
            read,
            Head {
                bytes: block.len() as u32,
                text_bytes: text.len() as u32,
                ..head
            }
        );
        assert_eq!(unpack(&block, &read).unwrap(), text);
        let twice = [&block[..], &block[..]].concat();
        let mut all = Vec::new();
        flate2::read::MultiGzDecoder::new(&twice[..])
            .read_to_end(&mut all)
            .unwrap();
        assert_eq!(all, [&text[..], &text[..]].concat(), "what any gzip prints");
    }

    #[test]
    fn what_was_changed_is_noticed_and_what_is_newer_is_named() {
        let block = pack(b"text\n", Head::default());
        let Found::Block(head) = Head::read(&block) else {
            panic!("no block")
        };
        for at in HEAD..block.len() {
            let mut changed = block.clone();
            changed[at] ^= 1;
            assert!(unpack(&changed, &head).is_err(), "byte {at}");
        }
        let mut newer = block.clone();
        newer[PAYLOAD_AT] = 7;
        assert_eq!(Head::read(&newer), Found::Newer(7));
        for length in 0..HEAD {
            assert_eq!(Head::read(&block[..length]), Found::Other, "{length} bytes");
        }
        let mut huge = block;
        huge[PAYLOAD_AT + 8..PAYLOAD_AT + 12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(
            Head::read(&huge),
            Found::TooLarge,
            "nobody makes room for 4 GB"
        );
    }
}
