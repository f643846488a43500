//! How much of the memory in use is nobody's while processes are listed.
//!
//! What they hold beyond what is listed for them is theirs: managed memory (`cudaMallocManaged`)
//! counts as used and not as the process's, 4 GiB of it as 5.5 GiB used and 1.5 GiB listed on an
//! H200. But what was listed for a process that has gone, and is still in use, is nobody's.

use std::collections::BTreeMap;

use super::super::clock::Moment;
use crate::model::{Absence, Process};

/// A process has gone from the list before its memory is free.
const SETTLED_AFTER_MS: u64 = 30_000;

#[derive(Debug, Default)]
pub(super) struct LeftBehind {
    last: Option<Last>,
    /// What is nobody's.
    bytes: u64,
    /// Whether that was in use when it was first looked at, so that nobody saw whose it was.
    is_found: bool,
    /// Of processes that have gone lately, and since when none more has.
    recent: Option<(Moment, u64)>,
}

/// The sample before.
#[derive(Debug)]
struct Last {
    /// Of the processes that run.
    listed: BTreeMap<u32, u64>,
    /// What is in use beyond that.
    rest_bytes: u64,
}

/// What a sample tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nobodys {
    pub(super) bytes: u64,
    /// Whether a process is listed that runs.
    pub(super) beside_others: bool,
    /// Whether it may be managed memory of those.
    pub(super) is_found: bool,
}

impl LeftBehind {
    /// `None` where it cannot be told what whose processes hold.
    pub(super) fn push(
        &mut self,
        used_bytes: u64,
        processes: &[Process],
        now: Moment,
    ) -> Option<Nobodys> {
        let (ended, running): (Vec<&Process>, Vec<&Process>) =
            processes.iter().partition(|process| has_ended(process));
        let listed = by_pid(&running);
        // Clients of MPS hold what is listed for its server.
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
        // What gets free is of those that went last.
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

/// As far as `/proc` tells: see [`Absence::Ended`].
fn has_ended(process: &Process) -> bool {
    process.host_memory_bytes.absence() == Some(&Absence::Ended)
}

/// `None` where it is not told of each of them.
fn by_pid(processes: &[&Process]) -> Option<BTreeMap<u32, u64>> {
    let mut all = BTreeMap::new();
    for process in processes {
        let bytes = process.memory_bytes.value()?;
        let sum: &mut u64 = all.entry(process.pid).or_default();
        *sum = sum.saturating_add(*bytes);
    }
    Some(all)
}

/// The driver's numbers can be anything.
fn total(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}
