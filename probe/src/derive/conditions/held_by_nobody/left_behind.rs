//! The part of the used memory that belongs to no process, while processes are listed.
//!
//! Memory in use beyond the listed amounts belongs to the listed processes: managed memory
//! (`cudaMallocManaged`) counts as used, but not as memory of the process. On an H200, 4 GiB of it
//! are 5.5 GiB used and 1.5 GiB listed. However, memory that was listed for a process that has
//! ended, and is still in use, belongs to no process.

use std::collections::BTreeMap;

use super::super::clock::Moment;
use crate::model::{Absence, Process};

/// The time after which the memory of an ended process is no longer expected to become free.
/// Processes leave the list before their memory is free.
const SETTLED_AFTER_MS: u64 = 30_000;

#[derive(Debug, Default)]
pub(super) struct LeftBehind {
    last: Option<Last>,
    /// Memory that belongs to no process.
    bytes: u64,
    /// Whether the memory was already in use at the first sample, so that its owner was never seen.
    is_found: bool,
    /// Memory of recently ended processes, and the time of the latest end.
    recent: Option<(Moment, u64)>,
}

/// The previous sample.
#[derive(Debug)]
struct Last {
    /// The memory of each running process, by PID.
    listed: BTreeMap<u32, u64>,
    /// The memory in use that is not listed.
    rest_bytes: u64,
}

/// The memory that belongs to no process, according to one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nobodys {
    pub(super) bytes: u64,
    /// Whether a running process is listed.
    pub(super) beside_others: bool,
    /// Whether the memory may be managed memory of running processes.
    pub(super) is_found: bool,
}

impl LeftBehind {
    /// Applies a sample. Returns `None` if the memory of a process is not known.
    pub(super) fn push(
        &mut self,
        used_bytes: u64,
        processes: &[Process],
        now: Moment,
    ) -> Option<Nobodys> {
        let (ended, running): (Vec<&Process>, Vec<&Process>) =
            processes.iter().partition(|process| has_ended(process));
        let listed = by_pid(&running);
        // MPS lists the memory of its clients under its server, so that the memory of each process
        // is not known.
        let Some(listed) = listed.filter(|_| !running.iter().any(|process| process.mps)) else {
            *self = Self::default();
            return None;
        };
        let beside_others = !running.is_empty();
        let rest_bytes = used_bytes.saturating_sub(total(listed.values().copied()));
        match self.last.take() {
            _ if !beside_others => {
                (self.bytes, self.is_found, self.recent) = (rest_bytes, false, None);
            }
            None => (self.bytes, self.is_found) = (rest_bytes, true),
            Some(last) => self.follow(&last, &listed, rest_bytes, now),
        }
        self.last = Some(Last { listed, rest_bytes });
        let of_ended = by_pid(&ended).map_or(0, |listed| total(listed.into_values()));
        Some(if self.is_found && of_ended > 0 {
            Nobodys {
                bytes: of_ended,
                beside_others,
                is_found: false,
            }
        } else {
            Nobodys {
                bytes: self.bytes,
                beside_others,
                is_found: self.is_found,
            }
        })
    }

    fn follow(&mut self, last: &Last, listed: &BTreeMap<u32, u64>, rest_bytes: u64, now: Moment) {
        let gone = last
            .listed
            .iter()
            .filter(|(pid, _)| !listed.contains_key(pid))
            .map(|(_, bytes)| *bytes);
        let gone_bytes = total(gone).min(rest_bytes.saturating_sub(last.rest_bytes));
        if gone_bytes > 0 {
            let before = self.recent.map_or(0, |(_, bytes)| bytes);
            self.recent = Some((now, before.saturating_add(gone_bytes)));
        }
        // Freed memory is assumed to be that of the processes that ended last.
        let freed_bytes = last.rest_bytes.saturating_sub(rest_bytes);
        self.recent = self
            .recent
            .map(|(since, bytes)| (since, bytes.saturating_sub(freed_bytes)));
        if let Some((_, bytes)) = self
            .recent
            .take_if(|(since, _)| now.since(*since) >= SETTLED_AFTER_MS)
        {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        self.bytes = self.bytes.min(rest_bytes);
    }
}

/// Returns `true` if `/proc` shows that the process has ended, see [`Absence::Ended`].
fn has_ended(process: &Process) -> bool {
    process.host_memory_bytes.absence() == Some(&Absence::Ended)
}

/// Returns the memory of each process, or `None` if that of any process is not known.
fn by_pid(processes: &[&Process]) -> Option<BTreeMap<u32, u64>> {
    let mut all = BTreeMap::new();
    for process in processes {
        let bytes = process.memory_bytes.value()?;
        let sum: &mut u64 = all.entry(process.pid).or_default();
        *sum = sum.saturating_add(*bytes);
    }
    Some(all)
}

/// Returns the sum without overflow, because the driver can report any number.
fn total(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}
