//! The processes on a host's GPUs.

use std::collections::BTreeMap;

use gpumon_probe::{
    model::{Absence, Process, ProcessKind, Reading},
    owner::clean_name,
};

use super::cell::Cell;

/// The maximum number of processes per host.
const MAX_PROCESSES: usize = 1000;

/// The latest process list of a host, covering all its GPUs.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// The processes of the list that is currently being received, each with its GPU's UUID.
    new: Vec<(String, Process)>,
    /// The user of each PID, and how long ago the process started, in seconds.
    users: BTreeMap<u32, (String, Option<u64>)>,
    /// The time and contents of the last complete list, or `None` if no list has been completed.
    known: Option<(u64, Reading<ProcessesByGpu>)>,
}

type ProcessesByGpu = BTreeMap<String, Vec<Process>>;

impl Processes {
    /// Parses a line with the columns `gpu_uuid, pid, used_gpu_memory, process_name` and adds the
    /// process. Other lines are ignored.
    pub(super) fn add_process(&mut self, line: &str) {
        let mut cells = line.splitn(4, ", ").map(Cell);
        let (Some(uuid), Some(pid), Some(memory), Some(name)) =
            (cells.next(), cells.next(), cells.next(), cells.next())
        else {
            return;
        };
        let (Ok(uuid), Reading::Now(pid)) = (uuid.text(), pid.parse_small_number()) else {
            return;
        };
        if self.new.len() < MAX_PROCESSES {
            self.new.push((
                clean_name(uuid),
                build_process(pid, memory.parse_mebibytes(), name),
            ));
        }
    }

    /// Parses a line of `ps` (PID, user, seconds since the start) and records the process's user.
    pub(super) fn add_user(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let (Some(pid), Some(user)) = (words.next().and_then(|pid| pid.parse().ok()), words.next())
        else {
            return;
        };
        if self.users.len() < MAX_PROCESSES {
            self.users.insert(
                pid,
                (
                    clean_name(user),
                    words.next().and_then(|seconds| seconds.parse().ok()),
                ),
            );
        }
    }

    /// Completes the list in progress. `succeeded` is `false` if `nvidia-smi` failed.
    pub(super) fn complete_list(&mut self, succeeded: bool, now_ms: u64) {
        let users = std::mem::take(&mut self.users);
        let mut by_gpu = ProcessesByGpu::new();
        for (uuid, mut process) in self.new.drain(..) {
            if let Some((user, seconds)) = users.get(&process.pid) {
                process.user = Reading::Now(user.clone());
                let started =
                    seconds.and_then(|seconds| now_ms.checked_sub(seconds.saturating_mul(1000)));
                process.started_ms = started.ok_or(Absence::Unknown).into();
            }
            by_gpu.entry(uuid).or_default().push(process);
        }
        for processes in by_gpu.values_mut() {
            processes.sort_by_key(|process| process.pid);
        }
        let known = if succeeded {
            Reading::Now(by_gpu)
        } else {
            Reading::Absent(Absence::Unknown)
        };
        self.known = Some((now_ms, known));
    }

    /// Returns the time of the last complete list, and the processes on one GPU.
    pub(super) fn find_by_gpu(&self, uuid: Option<&str>) -> (u64, Reading<Vec<Process>>) {
        match (&self.known, uuid) {
            (Some((at_ms, Reading::Now(by_gpu))), Some(uuid)) => (
                *at_ms,
                Reading::Now(by_gpu.get(uuid).cloned().unwrap_or_default()),
            ),
            (Some((at_ms, _)), _) => (*at_ms, Reading::Absent(Absence::Unknown)),
            (None, _) => (0, Reading::Absent(Absence::NotReadYet)),
        }
    }
}

/// Creates a process from the columns of nvidia-smi's list. The process name is the last component
/// of the program's path.
fn build_process(pid: u32, memory_bytes: Reading<u64>, name: Cell<'_>) -> Process {
    fn unsupported_reading<T>() -> Reading<T> {
        Reading::Absent(Absence::NeedsGpumon)
    }
    let short = |path: &str| {
        clean_name(
            path.rsplit('/')
                .next()
                .filter(|part| !part.is_empty())
                .unwrap_or(path),
        )
    };
    Process {
        pid,
        kind: ProcessKind::Compute,
        // In containers, the driver may not report a process's memory.
        memory_bytes,
        sm_percent: unsupported_reading(),
        memory_percent: unsupported_reading(),
        encoder_percent: unsupported_reading(),
        decoder_percent: unsupported_reading(),
        name: name.text().map(short).into(),
        program: None,
        command: unsupported_reading(),
        user: Reading::Absent(Absence::NotInProc),
        host_memory_bytes: unsupported_reading(),
        traced: unsupported_reading(),
        started_ms: Reading::Absent(Absence::NotInProc),
        mig: None,
        mps: false,
        owner: unsupported_reading(),
    }
}
