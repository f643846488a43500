//! Calculates how much of the used memory belongs to no process while other processes are listed.
//!
//! Memory in use beyond the listed amounts normally belongs to the listed processes: managed memory
//! (`cudaMallocManaged`) counts as used, but not as the process's memory. On an H200, 4 GiB of
//! managed memory are reported as 5.5 GiB used and 1.5 GiB listed. However, memory that was listed
//! for a process that has ended, and is still in use, belongs to no process.

use std::collections::BTreeMap;

use super::super::clock::Moment;
use crate::model::{Absence, Process};

/// The time after which an ended process's memory is no longer expected to be freed. Processes
/// disappear from the list before their memory is freed.
const SETTLED_AFTER_MS: u64 = 30_000;

#[derive(Debug, Default)]
pub(super) struct UnlistedMemoryTracker {
    last: Option<LastSample>,
    /// Memory that belongs to no process.
    bytes: u64,
    /// Whether the memory was already in use at the first sample, so that its owner is unknown.
    is_found: bool,
    /// The memory of recently ended processes, and when the last of them ended.
    recent: Option<(Moment, u64)>,
}

/// The previous sample.
#[derive(Debug)]
struct LastSample {
    /// The memory of each running process in bytes, by PID.
    listed: BTreeMap<u32, u64>,
    /// The memory in use beyond the listed amounts.
    rest_bytes: u64,
}

/// The memory that belongs to no process, according to one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnlistedMemory {
    pub(super) bytes: u64,
    /// Whether other processes are running and listed.
    pub(super) has_others: bool,
    /// Whether the memory may be managed memory of running processes.
    pub(super) is_found: bool,
}

impl UnlistedMemoryTracker {
    /// Updates the state with a sample. Returns `None` if any process's memory is unknown.
    pub(super) fn push(
        &mut self,
        used_bytes: u64,
        processes: &[Process],
        now: Moment,
    ) -> Option<UnlistedMemory> {
        let (ended, running): (Vec<&Process>, Vec<&Process>) =
            processes.iter().partition(|process| has_ended(process));
        let listed = memory_by_pid(&running);
        // MPS lists its clients' memory under the MPS server, so the memory of each process is
        // unknown.
        let Some(listed) = listed.filter(|_| !running.iter().any(|process| process.mps)) else {
            *self = Self::default();
            return None;
        };
        let has_others = !running.is_empty();
        let rest_bytes = used_bytes.saturating_sub(saturating_sum(listed.values().copied()));
        match self.last.take() {
            _ if !has_others => {
                (self.bytes, self.is_found, self.recent) = (rest_bytes, false, None);
            }
            None => (self.bytes, self.is_found) = (rest_bytes, true),
            Some(last) => self.track_ended_processes(&last, &listed, rest_bytes, now),
        }
        self.last = Some(LastSample { listed, rest_bytes });
        let of_ended =
            memory_by_pid(&ended).map_or(0, |listed| saturating_sum(listed.into_values()));
        Some(if self.is_found && of_ended > 0 {
            UnlistedMemory {
                bytes: of_ended,
                has_others,
                is_found: false,
            }
        } else {
            UnlistedMemory {
                bytes: self.bytes,
                has_others,
                is_found: self.is_found,
            }
        })
    }

    fn track_ended_processes(
        &mut self,
        last: &LastSample,
        listed: &BTreeMap<u32, u64>,
        rest_bytes: u64,
        now: Moment,
    ) {
        let gone = last
            .listed
            .iter()
            .filter(|(pid, _)| !listed.contains_key(pid))
            .map(|(_, bytes)| *bytes);
        let gone_bytes = saturating_sum(gone).min(rest_bytes.saturating_sub(last.rest_bytes));
        if gone_bytes > 0 {
            let before = self.recent.map_or(0, |(_, bytes)| bytes);
            self.recent = Some((now, before.saturating_add(gone_bytes)));
        }
        // Freed memory is assumed to have belonged to the processes that ended last.
        let freed_bytes = last.rest_bytes.saturating_sub(rest_bytes);
        self.recent = self
            .recent
            .map(|(since, bytes)| (since, bytes.saturating_sub(freed_bytes)));
        if let Some((_, bytes)) = self
            .recent
            .take_if(|(since, _)| now.ms_since(*since) >= SETTLED_AFTER_MS)
        {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        self.bytes = self.bytes.min(rest_bytes);
    }
}

/// Returns `true` if `/proc` shows that the process has ended, see [`Absence::Ended`]. The driver
/// may still list the process.
fn has_ended(process: &Process) -> bool {
    process.host_memory_bytes.absence() == Some(&Absence::Ended)
}

/// Returns the memory of each process by PID, or `None` if any process's memory is unknown.
fn memory_by_pid(processes: &[&Process]) -> Option<BTreeMap<u32, u64>> {
    let mut all = BTreeMap::new();
    for process in processes {
        let bytes = process.memory_bytes.value()?;
        let sum: &mut u64 = all.entry(process.pid).or_default();
        *sum = sum.saturating_add(*bytes);
    }
    Some(all)
}

/// Returns the sum, saturating on overflow, because the driver can report any number.
fn saturating_sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}
