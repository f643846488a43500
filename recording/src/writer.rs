//! Records on their way into blocks.

use std::time::{Duration, Instant};

use crate::{
    Kind,
    block::{Head, pack},
    stamp,
};

/// A recorder that is killed loses what it has not written: this much time at most.
const LONGEST: Duration = Duration::from_secs(10);

/// More text than this makes a block of its own.
const LARGEST: usize = 4 << 20;

/// Collects records until there are enough for a block.
#[derive(Debug, Default)]
pub struct Writer {
    text: Vec<u8>,
    head: Head,
    /// When the first of them came.
    begun: Option<Instant>,
}

/// One record alone, as a block.
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
    /// Adds a record, as JSON, that came at `now`.
    pub fn push(&mut self, record: &str, kind: Kind, at_ms: u64, now: Instant) {
        self.begun.get_or_insert(now);
        self.text.extend_from_slice(record.as_bytes());
        self.text.push(b'\n');
        self.head.count(kind, at_ms);
    }

    /// When the next block is due, also where nothing comes any more; `None` where there is nothing
    /// to write.
    pub fn due(&self) -> Option<Instant> {
        self.begun.map(|begun| {
            if self.text.len() >= LARGEST {
                begun
            } else {
                begun + LONGEST
            }
        })
    }

    /// All that has been collected, as a block; `None` where that is nothing.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.begun.take()?;
        let block = pack(&self.text, self.head);
        self.text.clear();
        self.head = self.head.next();
        Some(block)
    }
}
