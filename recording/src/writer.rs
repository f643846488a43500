//! Collection of records into blocks.

use std::time::{Duration, Instant};

use crate::{
    RecordKind,
    block::{BlockHead, pack},
    parse_kind_and_time,
};

/// The maximum time before a block is written. A recorder that is killed loses at most this much.
const MAX_BLOCK_TIME: Duration = Duration::from_secs(10);

/// The size of text at which a block is written immediately.
const FULL_BLOCK_BYTES: usize = 4 << 20;

/// A buffer that collects records until there are enough for a block.
#[derive(Debug, Default)]
pub struct Writer {
    text: Vec<u8>,
    head: BlockHead,
    /// The time at which the first record of the block arrived.
    begun: Option<Instant>,
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
