//! The lists of processes that use a GPU.

use std::{ffi::c_uint, slice};

use nvml_wrapper_sys::bindings::nvmlReturn_t;

use super::{lists::grow, plain::Numbers};
use crate::vendor::nvml::query::Code;

/// The initial number of processes in the buffer.
const PROCESSES: usize = 64;

/// The values for unknown memory and for a missing instance (`NVML_VALUE_NOT_AVAILABLE`).
const UNKNOWN_MEMORY: u64 = u64::MAX;
const NO_INSTANCE: u32 = u32::MAX;

/// One entry of a process list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pid: u32,
    /// The process's memory, or `None` if the driver does not know it.
    memory_bytes: Option<u64>,
    /// The GPU instance and the compute instance, if the process runs on a MIG device.
    instance: Option<(u32, u32)>,
}

impl Numbers for Held {
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

/// The layout of the entries in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// PID and memory, as in drivers before 450.
    Short,
    /// PID, memory and two instances. Drivers of the 530 branch add a fourth word.
    Known,
}

/// The sizes of entries in 64-bit words. An entry consists of PID, memory and two instances in one
/// word. Drivers before 450 have two words, and drivers of the 530 branch four.
const SHORT_ENTRY: usize = 2;
const ENTRY: usize = 3;
const LARGEST_ENTRY: usize = 4;

/// The words of the largest entry.
pub(super) type Words = [u64; LARGEST_ENTRY];

/// A filler that is not a valid PID, memory size or instance.
const CANARY: u64 = 0xA5A5_5A5A_C3C3_3C3C;

/// Reads a list of processes. The size of the entries depends on the driver's version, so that they
/// are read as words.
pub(super) fn list_processes(
    entry: Entry,
    call: impl Fn(*mut c_uint, *mut Words) -> nvmlReturn_t,
) -> Result<Vec<Held>, Code> {
    let words = grow(PROCESSES, |count, words: *mut Words| {
        // SAFETY: `grow` has written the number, and its buffer has that much room.
        unsafe { slice::from_raw_parts_mut(words, count.read() as usize) }
            .fill([CANARY; LARGEST_ENTRY]);
        // The buffer has room for `count` entries of the largest layout, and the driver writes at
        // most `count` entries.
        call(count, words)
    })?;
    Ok(entries(words.as_flattened(), words.len(), entry))
}

fn entries(words: &[u64], count: usize, entry: Entry) -> Vec<Held> {
    // If the words after `count` normal entries were overwritten, the entries are larger.
    let beyond = words
        .get(count.saturating_mul(ENTRY))
        .is_some_and(|word| *word != CANARY);
    let size = match entry {
        Entry::Short => SHORT_ENTRY,
        Entry::Known if beyond => LARGEST_ENTRY,
        Entry::Known => ENTRY,
    };
    words.chunks_exact(size).take(count).map(held).collect()
}

fn held(words: &[u64]) -> Held {
    let instance = words.get(2).map(|both| (*both as u32, (both >> 32) as u32));
    Held {
        pid: words[0] as u32,
        memory_bytes: (words[1] != UNKNOWN_MEMORY).then_some(words[1]),
        instance: instance.filter(|(gpu, compute)| *gpu != NO_INSTANCE && *compute != NO_INSTANCE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(entries_of: &[&[u64]]) -> Vec<u64> {
        let mut words = vec![CANARY; 8 * LARGEST_ENTRY];
        for (at, word) in entries_of.concat().into_iter().enumerate() {
            words[at] = word;
        }
        words
    }

    #[test]
    fn entries_of_either_size_are_told_apart() {
        let none = u64::MAX;
        let held = |pid, memory_bytes, instance| Held {
            pid,
            memory_bytes,
            instance,
        };
        let two = [held(7, Some(4096), None), held(9, None, Some((1, 0)))];
        assert_eq!(
            entries(
                &written(&[&[7, 4096, none], &[9, none, 1]]),
                2,
                Entry::Known
            ),
            two
        );
        assert_eq!(
            entries(
                &written(&[&[7, 4096, none, 0], &[9, none, 1, 0]]),
                2,
                Entry::Known
            ),
            two
        );
        assert_eq!(entries(&written(&[]), 0, Entry::Known), []);
        let short = entries(&written(&[&[7, 4096], &[9, none]]), 2, Entry::Short);
        assert_eq!(short, [held(7, Some(4096), None), held(9, None, None)]);
    }

    #[test]
    fn the_upper_half_of_a_pids_word_is_padding() {
        let words = written(&[&[0xDEAD_BEEF_0000_0007, 1, u64::MAX]]);
        assert_eq!(entries(&words, 1, Entry::Known)[0].pid, 7);
    }
}
