//! The processes on the GPUs of a host.

use std::collections::BTreeMap;

use gpumon_probe::{
    model::{Absence, Process, ProcessKind, Reading},
    owner::clean_name,
};

use super::cell::Cell;

/// The maximum number of processes of a host.
const MOST: usize = 1000;

/// The last list of processes on all GPUs of a host.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// The processes of the list that is being received.
    new: Vec<(String, Process)>,
    /// The user of each process, and the time since its start in seconds.
    users: BTreeMap<u32, (String, Option<u64>)>,
    /// The time of the last complete list, and its processes by GPU. The value is `None` until
    /// there is a list.
    known: Option<(u64, Reading<ByGpu>)>,
}

type ByGpu = BTreeMap<String, Vec<Process>>;

impl Processes {
    /// Adds the process of a line with `gpu_uuid, pid, used_gpu_memory, process_name`. Other lines
    /// are ignored.
    pub(super) fn add(&mut self, line: &str) {
        let mut cells = line.splitn(4, ", ").map(Cell);
        let (Some(uuid), Some(pid), Some(memory), Some(name)) =
            (cells.next(), cells.next(), cells.next(), cells.next())
        else {
            return;
        };
        let (Ok(uuid), Reading::Now(pid)) = (uuid.text(), pid.small()) else {
            return;
        };
        if self.new.len() < MOST {
            self.new
                .push((clean_name(uuid), process(pid, memory.mebibytes(), name)));
        }
    }

    /// Adds the user of a line of `ps`: the PID, the user, and the seconds since the start.
    pub(super) fn add_user(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let (Some(pid), Some(user)) = (words.next().and_then(|pid| pid.parse().ok()), words.next())
        else {
            return;
        };
        if self.users.len() < MOST {
            self.users.insert(
                pid,
                (
                    clean_name(user),
                    words.next().and_then(|seconds| seconds.parse().ok()),
                ),
            );
        }
    }

    /// Completes the list. `succeeded` is `false` if `nvidia-smi` failed.
    pub(super) fn end(&mut self, succeeded: bool, now_ms: u64) {
        let users = std::mem::take(&mut self.users);
        let mut by_gpu = ByGpu::new();
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

    /// Returns the processes of one GPU, with the time of the list.
    pub(super) fn of(&self, uuid: Option<&str>) -> (u64, Reading<Vec<Process>>) {
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

/// Returns a process of nvidia-smi's list. Its name is the last part of the program's path.
fn process(pid: u32, memory_bytes: Reading<u64>, name: Cell<'_>) -> Process {
    fn not_told<T>() -> Reading<T> {
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
        // In containers, the driver may not report the memory.
        memory_bytes,
        sm_percent: not_told(),
        memory_percent: not_told(),
        encoder_percent: not_told(),
        decoder_percent: not_told(),
        name: name.text().map(short).into(),
        program: None,
        command: not_told(),
        user: Reading::Absent(Absence::NotInProc),
        host_memory_bytes: not_told(),
        traced: not_told(),
        started_ms: Reading::Absent(Absence::NotInProc),
        mig: None,
        mps: false,
        owner: not_told(),
    }
}
