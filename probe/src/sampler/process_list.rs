//! Selects the processes in a sample so that its size stays limited.
//!
//! A user can start thousands of processes on a GPU, each with a command line of the maximum
//! length. A sample with all of them would be larger than clients accept.

use std::{cmp::Reverse, io};

use crate::{
    model::{Process, ProcessRef},
    owner::ProcessFields,
};

/// The maximum size in bytes of all GPUs' processes as JSON.
const TOTAL_BUDGET_BYTES: usize = 1 << 20;

/// The size in bytes that is always available to one GPU's processes, regardless of the number of
/// GPUs.
const MIN_GPU_BYTES: usize = 32 << 10;

/// Returns the maximum size in bytes of one GPU's processes as JSON.
pub(crate) fn max_process_bytes_per_gpu(gpus: u32) -> usize {
    (TOTAL_BUDGET_BYTES / (gpus.max(1) as usize)).max(MIN_GPU_BYTES)
}

/// Selects the processes that fit into `budget`, preferring those with the most memory. Returns the
/// selected processes in the order of their PIDs, and the omitted processes. `describe` fills in
/// the texts of one process. It is called for one process after another, so that the texts of
/// omitted processes do not accumulate in memory.
pub(crate) fn select_processes_within_budget(
    mut processes: Vec<Process>,
    budget: usize,
    mut describe: impl FnMut(&mut Process, ProcessFields),
) -> (Vec<Process>, Vec<ProcessRef>) {
    processes.sort_by_key(|process| {
        (
            Reverse(process.memory_bytes.value().copied()),
            process.pid,
            process.mig,
        )
    });
    let (mut listed, mut omitted, mut left) = (Vec::new(), Vec::new(), budget);
    for mut process in processes {
        describe(
            &mut process,
            if omitted.is_empty() {
                ProcessFields::All
            } else {
                ProcessFields::Brief
            },
        );
        let bytes = json_byte_count(&process);
        if omitted.is_empty() && bytes <= left {
            left -= bytes;
            listed.push(process);
        } else {
            omitted.push(ProcessRef::from(&process));
        }
    }
    listed.sort_by_key(|process| (process.pid, process.mig));
    (listed, omitted)
}

/// Returns the size in bytes of a process as JSON, including the separator.
fn json_byte_count(process: &Process) -> usize {
    let mut bytes = ByteCounter(1);
    // The result is ignored, because serialization into a byte counter cannot fail.
    let _ = serde_json::to_writer(&mut bytes, process);
    bytes.0
}

struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        derive::examples,
        model::{Ancestor, Notebook, Owner, Reading},
    };

    fn make_process(pid: u32, memory_bytes: u64) -> Process {
        examples::make_process(pid, memory_bytes)
    }

    #[test]
    fn processes_with_most_memory_are_listed() {
        let processes: Vec<_> = (1..=1000)
            .map(|pid| make_process(pid, u64::from(pid % 10)))
            .collect();
        let (listed, omitted) = select_processes_within_budget(processes, 60 << 10, |_, _| ());
        assert_eq!(listed.len() + omitted.len(), 1000);
        assert!((100..=200).contains(&listed.len()), "{}", listed.len());
        assert!(listed.is_sorted_by_key(|process| process.pid));
        assert!(listed.iter().all(|process| {
            process
                .memory_bytes
                .value()
                .is_some_and(|bytes| *bytes >= 8)
        }));
    }

    #[test]
    fn process_texts_never_exceed_budget() {
        let text = |byte: &str, length: usize| Reading::Now(byte.repeat(length));
        let parents = (0..16)
            .map(|pid| Ancestor {
                pid: u32::MAX - pid,
                name: "\"".repeat(128),
            })
            .collect();
        let notebook = Notebook {
            kernel_id: "a".repeat(128),
            kernel_name: Some("\\".repeat(128)),
            path: Reading::Now("\u{fffd}".repeat(340)),
            kernel_pid: u32::MAX,
        };
        let described = |process: &mut Process| {
            let share = Reading::Earlier {
                value: 99.999_999_999,
                at_ms: u64::MAX,
            };
            process.sm_percent = share.clone();
            (process.memory_percent, process.encoder_percent) = (share.clone(), share.clone());
            process.decoder_percent = share;
            process.host_memory_bytes = Reading::Earlier {
                value: u64::MAX,
                at_ms: u64::MAX,
            };
            (process.name, process.command) = (text("\\", 128), text("\"", 1024));
            let owner = Owner {
                notebook: Some(notebook.clone()),
                parents,
                ..Owner::default()
            };
            process.owner = Reading::Now(owner);
        };
        let mut long = make_process(u32::MAX, u64::MAX);
        described(&mut long);
        for processes in [
            vec![long; 100],
            vec![make_process(u32::MAX, u64::MAX); 3000],
        ] {
            let (listed, omitted) = select_processes_within_budget(processes, 256 << 10, |_, _| ());
            assert!(!listed.is_empty() && !omitted.is_empty());
            let bytes = serde_json::to_vec(&listed).unwrap().len();
            assert!(bytes <= 256 << 10, "{bytes}");
            assert!(bytes > 248 << 10, "the room is used: {bytes}");
        }
    }

    #[test]
    fn every_gpu_has_minimum_budget() {
        assert_eq!(
            (
                max_process_bytes_per_gpu(1),
                max_process_bytes_per_gpu(8),
                max_process_bytes_per_gpu(64)
            ),
            (1 << 20, 128 << 10, 32 << 10)
        );
    }
}
