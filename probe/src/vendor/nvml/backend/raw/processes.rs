//! Reading of the lists of processes that use a GPU.

use std::{ffi::c_uint, slice};

use nvml_wrapper_sys::bindings::nvmlReturn_t;

use super::{lists::read_with_growing_buffer, plain::Numbers};
use crate::vendor::nvml::query::Code;

/// The initial capacity of the buffer, in processes.
const INITIAL_PROCESSES: usize = 64;

/// The value for unknown memory. The constant below stands for a missing instance
/// (`NVML_VALUE_NOT_AVAILABLE`).
const UNKNOWN_MEMORY: u64 = u64::MAX;
const NO_INSTANCE: u32 = u32::MAX;

/// One entry of a process list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListedProcess {
    pid: u32,
    /// The process's memory in bytes, or `None` if the driver does not know it.
    memory_bytes: Option<u64>,
    /// The GPU instance and the compute instance that the process runs on, or `None` if it does not
    /// run on a MIG device.
    instance: Option<(u32, u32)>,
}

impl Numbers for ListedProcess {
    fn numbers(&self) -> Vec<i128> {
        let (gpu, compute) = self
            .instance
            .map_or((-1, -1), |(gpu, compute)| (gpu.into(), compute.into()));
        vec![
            self.pid.into(),
            self.memory_bytes.map_or(-1, i128::from),
            gpu,
            compute,
        ]
    }
}

/// The layout of each entry in a process list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryLayout {
    /// The layout of drivers before 450, which consists of PID and memory.
    Short,
    /// The layout of newer drivers, which consists of PID, memory, and two instances. 530 drivers
    /// add a fourth word.
    Known,
}

/// The size of a short entry (PID and memory), in 64-bit words. Newer drivers add a word with two
/// instances, and 530 drivers add another word.
const SHORT_ENTRY_WORDS: usize = 2;
const ENTRY_WORDS: usize = 3;
const MAX_ENTRY_WORDS: usize = 4;

/// The words of an entry, with room for the largest layout.
pub(super) type Words = [u64; MAX_ENTRY_WORDS];

/// A filler value that cannot be a valid PID, memory size, or instance.
const CANARY: u64 = 0xA5A5_5A5A_C3C3_3C3C;

/// Reads a list of processes. The entries are read as words, because their size depends on the
/// driver version.
pub(super) fn list_processes(
    entry: EntryLayout,
    call: impl Fn(*mut c_uint, *mut Words) -> nvmlReturn_t,
) -> Result<Vec<ListedProcess>, Code> {
    let words = read_with_growing_buffer(INITIAL_PROCESSES, |count, words: *mut Words| {
        // SAFETY: the caller of this closure has written the number, and its buffer has room for
        // that many entries.
        unsafe { slice::from_raw_parts_mut(words, count.read() as usize) }
            .fill([CANARY; MAX_ENTRY_WORDS]);
        // The buffer has room for `count` entries of the largest layout, and the driver writes at
        // most `count` entries, so all layouts fit.
        call(count, words)
    })?;
    Ok(parse_entries(words.as_flattened(), words.len(), entry))
}

fn parse_entries(words: &[u64], count: usize, entry: EntryLayout) -> Vec<ListedProcess> {
    // If the driver has overwritten words beyond `count` entries of normal size, its entries are
    // larger.
    let beyond = words
        .get(count.saturating_mul(ENTRY_WORDS))
        .is_some_and(|word| *word != CANARY);
    let size = match entry {
        EntryLayout::Short => SHORT_ENTRY_WORDS,
        EntryLayout::Known if beyond => MAX_ENTRY_WORDS,
        EntryLayout::Known => ENTRY_WORDS,
    };
    words
        .chunks_exact(size)
        .take(count)
        .map(parse_entry)
        .collect()
}

fn parse_entry(words: &[u64]) -> ListedProcess {
    let instance = words.get(2).map(|both| (*both as u32, (both >> 32) as u32));
    ListedProcess {
        pid: words[0] as u32,
        memory_bytes: (words[1] != UNKNOWN_MEMORY).then_some(words[1]),
        instance: instance.filter(|(gpu, compute)| *gpu != NO_INSTANCE && *compute != NO_INSTANCE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_words(entries_of: &[&[u64]]) -> Vec<u64> {
        let mut words = vec![CANARY; 8 * MAX_ENTRY_WORDS];
        for (at, word) in entries_of.concat().into_iter().enumerate() {
            words[at] = word;
        }
        words
    }

    #[test]
    fn entry_sizes_are_distinguished() {
        let none = u64::MAX;
        let held = |pid, memory_bytes, instance| ListedProcess {
            pid,
            memory_bytes,
            instance,
        };
        let two = [held(7, Some(4096), None), held(9, None, Some((1, 0)))];
        assert_eq!(
            parse_entries(
                &write_words(&[&[7, 4096, none], &[9, none, 1]]),
                2,
                EntryLayout::Known
            ),
            two
        );
        assert_eq!(
            parse_entries(
                &write_words(&[&[7, 4096, none, 0], &[9, none, 1, 0]]),
                2,
                EntryLayout::Known
            ),
            two
        );
        assert_eq!(parse_entries(&write_words(&[]), 0, EntryLayout::Known), []);
        let short = parse_entries(
            &write_words(&[&[7, 4096], &[9, none]]),
            2,
            EntryLayout::Short,
        );
        assert_eq!(short, [held(7, Some(4096), None), held(9, None, None)]);
    }

    #[test]
    fn upper_half_of_pid_word_is_ignored() {
        let words = write_words(&[&[0xDEAD_BEEF_0000_0007, 1, u64::MAX]]);
        assert_eq!(parse_entries(&words, 1, EntryLayout::Known)[0].pid, 7);
    }
}
