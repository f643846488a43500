//! The state that is kept from one nvidia-smi row to the next: the state of each GPU, and the
//! host's processes.

use std::collections::BTreeMap;

use gpumon_probe::{
    derive::{ConditionSettings, ConditionTracker, EccTracker, ProcessTracker, sanity_check},
    model::{
        Absence, EventKind, Gpu, GpuDetails, GpuSample, Health, Process, ProcessKind, Reading,
    },
    owner::clean_name,
};

use super::columns::{Cell, Row};

/// The reasons why nvidia-smi prints no row for a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GpuFailure {
    /// The GPU has fallen off the bus.
    Lost,
    /// nvidia-smi cannot read the GPU.
    Unreadable,
}

pub(super) struct GpuState {
    pub(super) gpu: Gpu,
    last: GpuSample,
    details: Option<GpuDetails>,
    failure: Option<GpuFailure>,
    /// The time of the last row, in milliseconds since 1970.
    told_ms: u64,
    shown: Health,
    conditions: ConditionTracker,
    processes: ProcessTracker,
    /// The time of the last process list that was checked for started and ended processes, in
    /// milliseconds since 1970.
    processes_ms: u64,
    ecc: EccTracker,
    events: Vec<EventKind>,
}

impl GpuState {
    /// Creates the state of a GPU that has never been read.
    pub(super) fn new_unread(index: u32, pci_bus_id: Option<String>, now_ms: u64) -> Self {
        let unknown = Absence::NoAnswer;
        Self {
            gpu: Gpu {
                pci_bus_id: pci_bus_id.ok_or(unknown.clone()).into(),
                ..Gpu::new_unidentified(index, &unknown)
            },
            last: GpuSample::new_absent(index, None, now_ms, Health::Ok, &unknown),
            details: None,
            failure: None,
            told_ms: now_ms,
            shown: Health::Ok,
            conditions: ConditionTracker::new(&ConditionSettings::default()),
            processes: ProcessTracker::default(),
            processes_ms: 0,
            ecc: EccTracker::default(),
            events: Vec::new(),
        }
    }

    /// Updates the state from a new row. Returns `true` if the GPU's inventory data has changed.
    pub(super) fn update_from_row(&mut self, row: Row, now_ms: u64) -> bool {
        let Row {
            gpu,
            mut sample,
            mut details,
            ..
        } = row;
        self.told_ms = now_ms;
        let is_lost = |reading: &Reading<u64>| reading.absence() == Some(&Absence::GpuLost);
        if is_lost(&sample.memory.total_bytes) && is_lost(&sample.memory.used_bytes) {
            self.set_failure(GpuFailure::Lost);
            return false;
        }
        self.failure = None;
        sanity_check::discard_impossible_readings(&mut sample);
        sanity_check::discard_impossible_details(&mut details);
        self.events.extend(self.ecc.update(&details));
        (self.last, self.details) = (sample, Some(details));
        let is_new = self.gpu != gpu;
        self.gpu = gpu;
        is_new
    }

    /// Records that nvidia-smi cannot read the GPU or has reported it as lost.
    pub(super) fn set_failure(&mut self, failure: GpuFailure) {
        self.failure = Some(failure);
    }

    /// Returns the slowly changing details, if they have been read at least once.
    pub(super) fn details(&self) -> Option<&GpuDetails> {
        self.details.as_ref().filter(|_| self.failure.is_none())
    }

    /// Returns the GPU's sample, which does not contain conditions yet, and the GPU's events. The
    /// GPU counts as hung if its last row is older than `patience_ms`.
    pub(super) fn build_sample(
        &mut self,
        (processes_ms, processes): (u64, Reading<Vec<Process>>),
        patience_ms: u64,
        now_ms: u64,
    ) -> (GpuSample, Vec<EventKind>) {
        let since_ms = now_ms;
        let mut sample = match self.failure {
            Some(GpuFailure::Lost) => {
                let since_ms = if let Health::Lost { since_ms } = self.shown {
                    since_ms
                } else {
                    since_ms
                };
                self.build_absent_sample(Health::Lost { since_ms }, &Absence::GpuLost, now_ms)
            }
            Some(GpuFailure::Unreadable) => {
                let since_ms = if let Health::Failed { since_ms, .. } = self.shown {
                    since_ms
                } else {
                    since_ms
                };
                let reason = Absence::Unknown;
                let meaning = "nvidia-smi cannot read the GPU".to_owned();
                let advice = "run `nvidia-smi -q` on the host".to_owned();
                self.build_absent_sample(
                    Health::Failed {
                        since_ms,
                        reason: reason.clone(),
                        meaning,
                        advice,
                    },
                    &reason,
                    now_ms,
                )
            }
            None => {
                let mut sample = self.last.clone();
                if now_ms.saturating_sub(self.told_ms) > patience_ms {
                    sample.health = Health::Hung {
                        since_ms: self.told_ms,
                    };
                }
                if processes_ms > self.processes_ms {
                    self.processes_ms = processes_ms;
                    self.events
                        .extend(self.processes.update(&processes, Vec::new()));
                }
                sample.processes = processes.with_time(processes_ms);
                sample
            }
        };
        sample.conditions.clear();
        let mut events = std::mem::take(&mut self.events);
        if std::mem::discriminant(&self.shown) != std::mem::discriminant(&sample.health) {
            events.insert(0, EventKind::from(&sample.health));
        }
        self.shown = sample.health.clone();
        (sample, events)
    }

    /// Updates the GPU's conditions and returns the conditions that have started or ended.
    /// `samples` are the samples of all GPUs.
    pub(super) fn update_conditions(
        &mut self,
        samples: &mut [GpuSample],
        number: usize,
        now_ms: u64,
    ) -> Vec<EventKind> {
        self.conditions.update(
            samples,
            number,
            &self.gpu.board,
            self.details.as_ref(),
            now_ms,
        )
    }

    /// Returns a sample whose readings are all absent, except for the total memory.
    fn build_absent_sample(&self, health: Health, reason: &Absence, now_ms: u64) -> GpuSample {
        let mut sample = GpuSample::new_absent(
            self.gpu.index,
            self.gpu.uuid.clone(),
            now_ms,
            health,
            reason,
        );
        if self.last.memory.total_bytes.value().is_some() {
            sample.memory.total_bytes = self
                .last
                .memory
                .total_bytes
                .clone()
                .with_time(self.last.at_ms);
        }
        sample
    }
}

/// The maximum number of processes per host.
const MAX_PROCESSES: usize = 1000;

/// The latest process list of a host, covering all its GPUs.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// The processes of the list that is currently being received, each with its GPU's UUID.
    new: Vec<(String, Process)>,
    /// For each PID, the user of the process, and how many seconds ago the process started.
    users: BTreeMap<u32, (String, Option<u64>)>,
    /// The time and contents of the last complete list, or `None` if no list has been completed.
    known: Option<(u64, Reading<ProcessesByGpu>)>,
}

type ProcessesByGpu = BTreeMap<String, Vec<Process>>;

impl Processes {
    /// Parses a line with the columns `gpu_uuid, pid, used_gpu_memory, process_name` and adds its
    /// process. Lines in any other format are ignored.
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
    pub(super) fn time_and_processes_on_gpu(
        &self,
        uuid: Option<&str>,
    ) -> (u64, Reading<Vec<Process>>) {
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
