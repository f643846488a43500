//! A block of a recording: the compressed records of a few seconds, and a head that summarizes
//! them. [`Writer`] collects records into blocks.
//!
//! A block is a gzip member (RFC 1952) with the subfield `GM` in its extra field. The payload of
//! the subfield is: format (1 byte), flags (1 byte), two bytes of 0, the sizes in bytes of the
//! whole member and of its text and the number of samples (4 bytes each), and the times of the
//! first and last sample in milliseconds since 1970 (8 bytes each). All numbers are little-endian.

use std::{
    io::{self, Read, Write},
    time::{Duration, Instant},
};

use flate2::{Compression, GzBuilder, read::GzDecoder};

use crate::{RecordKind, parse_kind_and_time};

/// The version of the block format. Blocks with a newer version cannot be read.
pub const FORMAT_VERSION: u8 = 1;

/// The first bytes of a gzip member that has only an extra field: the magic number, the compression
/// method (deflate), and the flags.
const GZIP_WITH_EXTRA: [u8; 4] = [0x1f, 0x8b, 8, 4];
/// The two letters of the subfield, and the length of its payload.
const SUBFIELD: [u8; 4] = [b'G', b'M', PAYLOAD_BYTES as u8, 0];
const PAYLOAD_BYTES: usize = 32;
/// The offset of the extra field in a gzip member.
const EXTRA_OFFSET: usize = 12;
const PAYLOAD_OFFSET: usize = EXTRA_OFFSET + SUBFIELD.len();
/// The size of a head in bytes.
pub const HEAD_BYTES: usize = PAYLOAD_OFFSET + PAYLOAD_BYTES;

const HAS_INVENTORY: u8 = 1;

/// The maximum size of a block's text. A block is written as soon as it has 4 MiB of text, and a
/// single record is always smaller than the remaining 28 MiB.
pub const MAX_TEXT_BYTES: u32 = 32 << 20;

/// The maximum ratio of a text's size to its compressed size. Real recordings stay far below it:
/// records of idle GPUs reach a ratio of about 50.
pub(crate) const MAX_COMPRESSION_RATIO: u64 = 200;

/// The head of a block, which summarizes its records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockHead {
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

/// The result of parsing bytes as the head of a block.
#[derive(Debug, PartialEq, Eq)]
pub enum ParsedHead {
    Block(BlockHead),
    /// A block in a format that only a newer gpumon can read.
    Newer(u8),
    /// A block that claims to have more text than any block can have.
    TooLarge,
    /// Any data that is not a block of gpumon.
    Other,
}

impl BlockHead {
    /// Adds a record to the head's summary.
    pub(crate) fn add_record(&mut self, kind: RecordKind, at_ms: u64) {
        self.has_inventory |= kind == RecordKind::Inventory;
        if kind == RecordKind::Sample {
            if self.samples == 0 {
                self.first_ms = at_ms;
            }
            self.samples += 1;
            self.last_ms = at_ms;
        }
    }

    /// Returns an empty head for the next block. Until that block has a sample, both times in its
    /// head are the time of this block's last sample.
    pub(crate) fn next_empty_head(&self) -> Self {
        Self {
            first_ms: self.last_ms,
            last_ms: self.last_ms,
            ..Self::default()
        }
    }

    /// Parses the head of a block from the block's first bytes. If there are too few bytes, returns
    /// [`ParsedHead::Other`].
    pub fn parse(bytes: &[u8]) -> ParsedHead {
        let begins = bytes.starts_with(&GZIP_WITH_EXTRA)
            && bytes.get(EXTRA_OFFSET..EXTRA_OFFSET + 2) == Some(b"GM");
        let Some(format) = bytes.get(PAYLOAD_OFFSET).filter(|_| begins) else {
            return ParsedHead::Other;
        };
        if *format > FORMAT_VERSION {
            return ParsedHead::Newer(*format);
        }
        let Some(payload) = bytes
            .get(PAYLOAD_OFFSET..HEAD_BYTES)
            .filter(|_| bytes[EXTRA_OFFSET..PAYLOAD_OFFSET] == SUBFIELD)
        else {
            return ParsedHead::Other;
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
        // No valid block has these sizes, so no memory or time is spent on such a block.
        if head.bytes as usize <= HEAD_BYTES || head.samples > head.text_bytes {
            return ParsedHead::Other;
        }
        let largest = MAX_COMPRESSION_RATIO * u64::from(head.bytes);
        let is_too_large = head.text_bytes > MAX_TEXT_BYTES || u64::from(head.text_bytes) > largest;
        if is_too_large {
            ParsedHead::TooLarge
        } else {
            ParsedHead::Block(head)
        }
    }

    fn payload(&self) -> [u8; PAYLOAD_BYTES] {
        let mut payload = [0; PAYLOAD_BYTES];
        payload[0] = FORMAT_VERSION;
        payload[1] = if self.has_inventory { HAS_INVENTORY } else { 0 };
        for (at, number) in [(4, self.bytes), (8, self.text_bytes), (12, self.samples)] {
            payload[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        payload[16..24].copy_from_slice(&self.first_ms.to_le_bytes());
        payload[24..].copy_from_slice(&self.last_ms.to_le_bytes());
        payload
    }
}

/// Compresses `text` into a block, and completes `head` with the sizes.
///
/// # Panics
/// Never: writing to memory cannot fail.
pub fn pack(text: &[u8], head: BlockHead) -> Vec<u8> {
    let mut extra = SUBFIELD.to_vec();
    extra.extend([0; PAYLOAD_BYTES]);
    let mut encoder = GzBuilder::new()
        .extra(extra)
        .write(Vec::new(), Compression::default());
    encoder
        .write_all(text)
        .expect("writing to memory cannot fail");
    let mut block = encoder.finish().expect("writing to memory cannot fail");
    let head = BlockHead {
        bytes: block.len() as u32,
        text_bytes: text.len() as u32,
        ..head
    };
    block[PAYLOAD_OFFSET..HEAD_BYTES].copy_from_slice(&head.payload());
    block
}

/// Packs a single record into a block of its own.
pub fn pack_record(record: &str) -> Vec<u8> {
    let has_inventory =
        parse_kind_and_time(record).is_ok_and(|(kind, _)| kind == RecordKind::Inventory);
    pack(
        format!("{record}\n").as_bytes(),
        BlockHead {
            has_inventory,
            ..BlockHead::default()
        },
    )
}

/// Decompresses the text of a block.
///
/// # Errors
/// Returns an error if the checksum or the length is wrong.
pub fn unpack(block: &[u8], head: &BlockHead) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(head.text_bytes as usize);
    GzDecoder::new(block)
        .take(u64::from(head.text_bytes) + 1)
        .read_to_end(&mut text)?;
    if text.len() != head.text_bytes as usize {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the length of its text does not match its header",
        ));
    }
    Ok(text)
}

/// The maximum time for which records are collected before they are written as a block. A recorder
/// that is killed loses at most the records of this time.
const MAX_BLOCK_TIME: Duration = Duration::from_secs(10);

/// The size of the collected text, in bytes, at which a block is written immediately.
const FULL_BLOCK_BYTES: usize = 4 << 20;

/// A buffer that collects records until there are enough for a block.
#[derive(Debug, Default)]
pub struct Writer {
    text: Vec<u8>,
    head: BlockHead,
    /// The time at which the first record of the block arrived.
    begun: Option<Instant>,
}

impl Writer {
    /// Adds a JSON record that arrived at `now`.
    pub fn push(&mut self, record: &str, kind: RecordKind, at_ms: u64, now: Instant) {
        self.begun.get_or_insert(now);
        self.text.extend_from_slice(record.as_bytes());
        self.text.push(b'\n');
        self.head.add_record(kind, at_ms);
    }

    /// Returns the time at which the next block must be written, even without further records;
    /// `None` if there are no records.
    pub fn next_due_time(&self) -> Option<Instant> {
        self.begun.map(|begun| {
            if self.text.len() >= FULL_BLOCK_BYTES {
                begun
            } else {
                begun + MAX_BLOCK_TIME
            }
        })
    }

    /// Returns the collected records as a block; `None` if there are no records.
    pub fn take_block(&mut self) -> Option<Vec<u8>> {
        self.begun.take()?;
        let block = pack(&self.text, self.head);
        self.text.clear();
        self.head = self.head.next_empty_head();
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_round_trips_and_is_gzip_member() {
        let head = BlockHead {
            samples: 2,
            has_inventory: true,
            first_ms: 1_700_000_000_000,
            last_ms: 1_700_000_001_000,
            ..BlockHead::default()
        };
        let text = "{\"type\":\"sample\"}\n".repeat(50).into_bytes();
        let block = pack(&text, head);
        let ParsedHead::Block(read) = BlockHead::parse(&block) else {
            panic!("no block")
        };
        assert_eq!(
            read,
            BlockHead {
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
    fn damaged_and_newer_blocks_are_detected() {
        let block = pack(b"text\n", BlockHead::default());
        let ParsedHead::Block(head) = BlockHead::parse(&block) else {
            panic!("no block")
        };
        for at in HEAD_BYTES..block.len() {
            let mut changed = block.clone();
            changed[at] ^= 1;
            assert!(unpack(&changed, &head).is_err(), "byte {at}");
        }
        let mut newer = block.clone();
        newer[PAYLOAD_OFFSET] = 7;
        assert_eq!(BlockHead::parse(&newer), ParsedHead::Newer(7));
        for length in 0..HEAD_BYTES {
            assert_eq!(
                BlockHead::parse(&block[..length]),
                ParsedHead::Other,
                "{length} bytes"
            );
        }
        let mut huge = block;
        huge[PAYLOAD_OFFSET + 8..PAYLOAD_OFFSET + 12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(
            BlockHead::parse(&huge),
            ParsedHead::TooLarge,
            "nobody makes room for 4 GB"
        );
    }
}
