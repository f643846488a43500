//! Collection of records into blocks.

use std::time::{Duration, Instant};

use crate::{
    Kind,
    block::{Head, pack},
    stamp,
};

/// The maximum time before a block is written. A recorder that is killed loses no more than this.
const LONGEST: Duration = Duration::from_secs(10);

/// The size of text at which a block is written at once.
const LARGEST: usize = 4 << 20;

/// A buffer that collects records until there are enough for a block.
#[derive(Debug, Default)]
pub struct Writer {
    text: Vec<u8>,
    head: Head,
    /// When the first record of the block arrived.
    begun: Option<Instant>,
}

/// Packs a single record into a block.
pub fn pack_record(record: &str) -> Vec<u8> {
    let has_inventory = stamp(record).is_ok_and(|(kind, _)| kind == Kind::Inventory);
    pack(
        format!("{record}\n").as_bytes(),
        Head {
            has_inventory,
            ..Head::default()
        },
    )
}

impl Writer {
    /// Adds a record in JSON that arrived at `now`.
    pub fn push(&mut self, record: &str, kind: Kind, at_ms: u64, now: Instant) {
        self.begun.get_or_insert(now);
        self.text.extend_from_slice(record.as_bytes());
        self.text.push(b'\n');
        self.head.count(kind, at_ms);
    }

    /// Returns when the next block must be written, even without further records; `None` if there
    /// are no records.
    pub fn due(&self) -> Option<Instant> {
        self.begun.map(|begun| {
            if self.text.len() >= LARGEST {
                begun
            } else {
                begun + LONGEST
            }
        })
    }

    /// Returns the collected records as a block; `None` if there are none.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.begun.take()?;
        let block = pack(&self.text, self.head);
        self.text.clear();
        self.head = self.head.next();
        Some(block)
    }
}
