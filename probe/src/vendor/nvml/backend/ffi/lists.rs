//! Reading of lists from NVML functions, with buffers that are large enough. In lists of processes,
//! the size of an entry depends on the driver version.

use std::{ffi::c_uint, ptr, slice};

use nvml_wrapper_sys::bindings::nvmlReturn_t;

use super::{
    library::{Plain, check_code},
    structures::Numbers,
};
use crate::vendor::nvml::query::Code;

/// The value of `NVML_ERROR_INSUFFICIENT_SIZE`.
const INSUFFICIENT_SIZE: Code = Code(7);

/// The maximum number of attempts to read a list. Several may be needed, because the list can grow
/// between two attempts.
const MAX_ATTEMPTS: u32 = 4;

/// The maximum number of items in a list. A driver that reports more is faulty, and the buffer
/// would exhaust the memory.
const MAX_ITEMS: c_uint = 1 << 20;

/// Reads a list. If the buffer is too small, tries again with a larger buffer.
pub(super) fn read_with_growing_buffer<T: Plain>(
    room: usize,
    mut call: impl FnMut(*mut c_uint, *mut T) -> nvmlReturn_t,
) -> Result<Vec<T>, Code> {
    let mut items = vec![T::make_blank(); room];
    for _ in 0..MAX_ATTEMPTS {
        let mut count = items.len() as c_uint;
        match check_code(call(&raw mut count, items.as_mut_ptr())) {
            Ok(()) => {
                items.truncate(count as usize);
                return Ok(items);
            }
            // The list may grow before the next attempt, so the new buffer has some extra room.
            Err(INSUFFICIENT_SIZE) if count <= MAX_ITEMS => {
                items.resize(
                    items.len().max(count as usize).saturating_add(room),
                    T::make_blank(),
                );
            }
            Err(code) => return Err(code),
        }
    }
    Err(INSUFFICIENT_SIZE)
}

/// Queries the length of a list, then reads the list into a buffer of exactly that size. This is
/// for functions that do not accept larger buffers.
pub(super) fn read_list_of_exact_size<T: Plain>(
    call: impl Fn(*mut c_uint, *mut T) -> nvmlReturn_t,
) -> Result<Vec<T>, Code> {
    let mut count = 0;
    check_code(call(&raw mut count, ptr::null_mut()))?;
    if count > MAX_ITEMS {
        return Err(INSUFFICIENT_SIZE);
    }
    let mut items = vec![T::make_blank(); count as usize];
    if count > 0 {
        check_code(call(&raw mut count, items.as_mut_ptr()))?;
        items.truncate(count as usize);
    }
    Ok(items)
}

/// The initial capacity of the buffer for a process list, in processes.
const INITIAL_PROCESSES: usize = 64;

/// The value that stands for a process's unknown memory. `NO_INSTANCE` stands for a missing
/// instance (`NVML_VALUE_NOT_AVAILABLE`).
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
    /// The layout of newer drivers, which consists of three words: PID, memory, and a word with two
    /// instances. Drivers of version 530 add a fourth word.
    Known,
}

/// The size of a short entry, in 64-bit words: PID and memory. Newer drivers add a word with two
/// instances, and drivers of version 530 add yet another word.
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
    // If the driver has written beyond the space that `count` entries of normal size need, its
    // entries are larger.
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

    #[test]
    fn list_buffer_grows_within_attempt_limit() {
        let listed = |has: u32| {
            move |count: *mut c_uint, items: *mut u32| {
                // SAFETY: both pointers were passed in by the caller of this closure, with room for
                // `count` items.
                unsafe {
                    let room = count.replace(has);
                    if room < has {
                        return INSUFFICIENT_SIZE.0;
                    }
                    (0..has).for_each(|at| items.add(at as usize).write(at));
                }
                0
            }
        };
        assert_eq!(read_with_growing_buffer(2, listed(0)), Ok(vec![]));
        assert_eq!(
            read_with_growing_buffer(2, listed(5)),
            Ok(vec![0, 1, 2, 3, 4])
        );
        let mut tries = 0;
        let endless = read_with_growing_buffer::<u32>(1, |_, _| {
            tries += 1;
            7
        });
        assert_eq!((endless, tries), (Err(INSUFFICIENT_SIZE), MAX_ATTEMPTS));
        assert_eq!(
            read_with_growing_buffer::<u32>(1, |_, _| 3),
            Err(Code::NOT_SUPPORTED)
        );
    }
}

#[cfg(test)]
mod processes_tests {
    use super::*;

    fn write_words(entries_of: &[&[u64]]) -> Vec<u64> {
        let mut words = vec![CANARY; 8 * MAX_ENTRY_WORDS];
        for (at, word) in entries_of.concat().into_iter().enumerate() {
            words[at] = word;
        }
        words
    }

    #[test]
    fn process_entries_of_all_sizes_are_parsed() {
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
    fn padding_after_pid_is_ignored() {
        let words = write_words(&[&[0xDEAD_BEEF_0000_0007, 1, u64::MAX]]);
        assert_eq!(parse_entries(&words, 1, EntryLayout::Known)[0].pid, 7);
    }
}
