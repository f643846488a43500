//! GPUs and MIG devices as candidates for new work.

use std::collections::BTreeMap;

use gpumon_probe::model::{
    Absence, ComputeMode, ConditionKind, Gpu, GpuDetails, GpuSample, Health, Inventory,
    MemorySample, MigDevice, MigInstance, Process, ProcessKind, Reading, Vendor,
};

use crate::{
    device_id::{self, DeviceId},
    exit::{Failure, usage},
    visible::{Visible, VisibleAs},
};

#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(super) inventory: Inventory,
    /// The last sample of every GPU in the inventory.
    pub(super) gpus: Vec<GpuSample>,
    /// Slowly changing details by index, for the GPUs that have sent them.
    pub(super) details: BTreeMap<u32, GpuDetails>,
}

#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// NVML's index of the GPU.
    pub(super) gpu: u32,
    /// The index of the MIG device, or `None` for a whole GPU.
    pub(super) mig: Option<u32>,
    /// The UUID, or `None` if the driver has never reported it.
    pub(super) uuid: Option<String>,
    pub(super) vendor: Vendor,
    /// The name in variables such as `CUDA_VISIBLE_DEVICES`.
    pub(super) visible_as: Option<VisibleAs>,
    pub(super) at_ms: u64,
    /// The memory available to programs if nothing else uses the device.
    pub(super) capacity_bytes: Reading<u64>,
    /// The current state, or the reason why the device cannot be used.
    pub(super) state: Result<State, Trouble>,
}

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) free_bytes: Reading<u64>,
    /// The percentage of time in which kernels ran, or for a MIG device, in which its SMs had work.
    pub(super) busy_percent: Reading<f64>,
    pub(super) users: Reading<Users>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Users {
    /// The number of processes that compute. Processes that only draw, such as a display server, do
    /// not count.
    pub(super) computing: usize,
    /// Memory in use that does not belong to processes that draw.
    pub(super) held_bytes: u64,
    /// The part of `held_bytes` that the driver itself may use.
    pub(super) driver_bytes: u64,
}

/// A reason why a device cannot be used, regardless of its readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) what: String,
    /// Whether the device is gone, so that it may never become usable.
    pub(super) gone: bool,
}

/// The memory that an idle driver uses at most. It uses a few MiB if it reports its reserve
/// separately, and this limit is less than the memory of a CUDA context.
const DRIVER_BYTES: u64 = 128 << 20;
/// The same limit for drivers before 510, which count their reserve as used memory.
const DRIVER_BYTES_WITH_RESERVE: u64 = 1 << 30;

impl Candidate {
    pub(super) fn id(&self) -> DeviceId {
        DeviceId {
            gpu: self.gpu,
            mig: self.mig,
        }
    }

    /// Returns the name, such as `GPU 3`, or `GPU 3:1` for a MIG device.
    pub(super) fn name(&self) -> String {
        format!("GPU {}", self.index())
    }

    /// Returns the index, such as `3`, or `3:1` for a MIG device, which is the form that container
    /// runtimes use.
    pub(super) fn index(&self) -> String {
        self.mig
            .map_or_else(|| self.gpu.to_string(), |mig| format!("{}:{mig}", self.gpu))
    }
}

/// Returns all devices that could be taken, in the driver's order. A GPU in MIG mode offers its MIG
/// devices instead of itself.
pub(super) fn candidates(view: &View) -> Vec<Candidate> {
    let mut all = Vec::new();
    for gpu in &view.inventory.gpus {
        let Some(sample) = view.gpus.iter().find(|sample| sample.index == gpu.index) else {
            continue;
        };
        let details = view.details.get(&gpu.index);
        if gpu.mig_devices.is_empty() {
            all.push(make_candidate(gpu, None, sample, details));
        }
        let parts = gpu.mig_devices.iter();
        all.extend(parts.map(|mig| make_candidate(gpu, Some(mig), sample, details)));
    }
    for candidate in &mut all {
        candidate.visible_as = VisibleAs::new(candidate.id(), &view.inventory.gpus);
    }
    all
}

/// Returns a candidate for a GPU or one of its MIG devices.
fn make_candidate(
    gpu: &Gpu,
    mig: Option<&MigDevice>,
    sample: &GpuSample,
    details: Option<&GpuDetails>,
) -> Candidate {
    let readings = match mig {
        None => Some((&sample.memory, sample.utilization.gpu_percent.clone())),
        Some(mig) => {
            let mut parts = sample.mig_devices.value().into_iter().flatten();
            parts.find(|part| part.uuid == mig.uuid).map(|part| {
                let busy = match part.activity.value() {
                    Some(activity) => activity.sm_percent.clone(),
                    None => absence_of(&part.activity),
                };
                (&part.memory, busy)
            })
        }
    };
    let is_divided = details.and_then(|details| details.modes.mig.value());
    let is_divided = mig.is_none() && is_divided.is_some_and(|mode| mode.current);
    let state = match (trouble(sample, details), &readings) {
        (Some(trouble), _) => Err(trouble),
        (None, None) => Err(passing("not read yet")),
        (None, Some(_)) if is_divided => Err(passing("MIG without a device")),
        (None, Some((memory, busy))) => Ok(State {
            free_bytes: memory.free_bytes.clone(),
            busy_percent: busy.clone(),
            users: users(sample, memory, mig.map(|mig| mig.instance)),
        }),
    };
    Candidate {
        gpu: gpu.index,
        mig: mig.map(|mig| mig.index),
        uuid: mig.map_or_else(|| gpu.uuid.clone(), |mig| Some(mig.uuid.clone())),
        vendor: gpu.vendor,
        visible_as: None,
        at_ms: sample.at_ms,
        capacity_bytes: readings.map_or_else(
            || absence_of(&sample.mig_devices),
            |(memory, _)| capacity(memory),
        ),
        state,
    }
}

fn absence_of<T, U>(reading: &Reading<T>) -> Reading<U> {
    Reading::Absent(reading.absence().cloned().unwrap_or(Absence::NoAnswer))
}

fn trouble(sample: &GpuSample, details: Option<&GpuDetails>) -> Option<Trouble> {
    match &sample.health {
        Health::Ok => {}
        Health::Asleep { .. } => return Some(passing("asleep")),
        Health::Hung { .. } => return Some(passing("hung")),
        Health::Lost { .. } => {
            return Some(Trouble {
                what: "lost".to_owned(),
                gone: true,
            });
        }
        // The driver may recover, because a wait can last for days.
        Health::Failed { reason, .. } => {
            let gone = !matches!(reason, Absence::DriverError { .. } | Absence::NoAnswer);
            return Some(Trouble {
                what: reason.to_string(),
                gone,
            });
        }
    }
    let computes = |process: &Process| process.kind != ProcessKind::Graphics;
    match details.and_then(|details| details.modes.compute.value()) {
        Some(ComputeMode::Prohibited) => return Some(passing("compute mode prohibited")),
        Some(ComputeMode::ExclusiveProcess)
            if sample.processes_omitted > 0
                || sample
                    .processes
                    .value()
                    .is_some_and(|all| all.iter().any(computes)) =>
        {
            return Some(passing("in exclusive use"));
        }
        _ => {}
    }
    let mut kinds = sample.conditions.iter().map(|condition| &condition.kind);
    kinds
        .any(|kind| matches!(kind, ConditionKind::RecoveryNeeded { .. }))
        .then(|| passing("needs recovery"))
}

fn passing(what: &str) -> Trouble {
    Trouble {
        what: what.to_owned(),
        gone: false,
    }
}

fn capacity(memory: &MemorySample) -> Reading<u64> {
    let reserved = memory.reserved_bytes.value().copied().unwrap_or(0);
    memory
        .total_bytes
        .clone()
        .map(|total| total.saturating_sub(reserved))
}

/// Returns the users of a GPU or of one MIG device. Processes that the sample omits count as
/// computing on every device.
fn users(
    sample: &GpuSample,
    memory: &MemorySample,
    instance: Option<MigInstance>,
) -> Reading<Users> {
    let (list, used) = match (&sample.processes, &memory.used_bytes) {
        (Reading::Absent(reason), _) | (_, Reading::Absent(reason)) => {
            return Reading::Absent(reason.clone());
        }
        (Reading::Now(list) | Reading::Earlier { value: list, .. }, Reading::Now(used)) => {
            (list, *used)
        }
        (_, Reading::Earlier { .. }) => return Reading::Absent(Absence::NoAnswer),
    };
    let here = || {
        list.iter()
            .filter(|process| instance.is_none() || process.mig == instance)
    };
    let draws = |process: &&Process| process.kind == ProcessKind::Graphics;
    // If the driver does not report a process's memory, the process may use all of it.
    let memory_drawing: u64 = here().filter(draws).fold(0, |sum, process| {
        sum.saturating_add(process.memory_bytes.value().copied().unwrap_or(u64::MAX))
    });
    Reading::Now(Users {
        computing: here().filter(|process| !draws(process)).count()
            + sample.processes_omitted as usize,
        held_bytes: used.saturating_sub(memory_drawing),
        driver_bytes: if memory.reserved_bytes.value().is_some() {
            DRIVER_BYTES
        } else {
            DRIVER_BYTES_WITH_RESERVE
        },
    })
}

/// The selection of GPUs by `--id` and by the environment.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    named: Vec<String>,
    visible: Option<Visible>,
}

impl Choice {
    /// Returns a selection of the GPUs with these names, or without names, of all GPUs of the first
    /// vendor.
    pub(crate) fn new(named: Vec<String>) -> Self {
        Self {
            named,
            visible: Visible::from_environment(),
        }
    }

    /// Removes all candidates that are not selected.
    pub(super) fn retain(
        &self,
        inventory: &Inventory,
        candidates: &mut Vec<Candidate>,
    ) -> Result<(), Failure> {
        if let Some(visible) = &self.visible {
            let ids = visible
                .list_allowed(&inventory.gpus)
                .map_err(|why| usage!(why))?;
            candidates.retain(|candidate| ids.iter().any(|id| is_part_of(*id, candidate)));
        }
        if self.named.is_empty() {
            // A program is built for one vendor's GPUs.
            let first = inventory.gpus.iter().map(|gpu| gpu.vendor).min();
            candidates.retain(|candidate| Some(candidate.vendor) == first);
        } else {
            let mut ids = Vec::new();
            for name in self
                .named
                .iter()
                .flat_map(|list| list.split(','))
                .map(str::trim)
            {
                ids.extend(device_id::find(name, &inventory.gpus)?);
            }
            candidates.retain(|candidate| ids.iter().any(|id| is_part_of(*id, candidate)));
        }
        match (&self.visible, candidates.is_empty()) {
            (Some(visible), true) => Err(usage!(
                "{visible} leaves no GPU to choose from: unset it, or name others"
            )),
            _ => Ok(()),
        }
    }
}

fn is_part_of(id: DeviceId, candidate: &Candidate) -> bool {
    id.gpu == candidate.gpu && (id.mig.is_none() || id.mig == candidate.mig)
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::Owner;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn process(kind: ProcessKind, memory_bytes: Reading<u64>) -> Process {
        fn absent<T>() -> Reading<T> {
            Reading::Absent(Absence::Unknown)
        }
        Process {
            pid: 1,
            kind,
            memory_bytes,
            sm_percent: absent(),
            memory_percent: absent(),
            encoder_percent: absent(),
            decoder_percent: absent(),
            name: absent(),
            program: None,
            command: absent(),
            user: absent(),
            host_memory_bytes: Reading::Absent(Absence::Unknown),
            traced: Reading::Absent(Absence::Unknown),
            started_ms: absent(),
            mig: None,
            mps: false,
            owner: Reading::Now(Owner::default()),
        }
    }

    /// Returns a GPU with these processes and 2 GiB of memory in use.
    fn sample(processes: Vec<Process>) -> GpuSample {
        let mut sample = GpuSample::absent(0, None, 1, Health::Ok, &Absence::Unknown);
        sample.memory.used_bytes = Reading::Now(2 * GIB);
        sample.memory.reserved_bytes = Reading::Now(GIB / 2);
        sample.processes = Reading::Now(processes);
        sample
    }

    fn used(processes: Vec<Process>) -> (usize, u64) {
        let sample = sample(processes);
        let users = users(&sample, &sample.memory, None);
        let users = users.value().unwrap();
        (users.computing, users.held_bytes)
    }

    #[test]
    fn a_display_server_is_in_nobodys_way_and_memory_without_a_process_is() {
        let draws = || process(ProcessKind::Graphics, Reading::Now(GIB));
        let does_both = || process(ProcessKind::ComputeAndGraphics, Reading::Now(GIB));
        assert_eq!(
            used(vec![]),
            (0, 2 * GIB),
            "of another container's, perhaps"
        );
        assert_eq!(used(vec![draws()]), (0, GIB));
        assert_eq!(used(vec![draws(), draws()]), (0, 0));
        assert_eq!(used(vec![draws(), does_both()]), (1, GIB));
        assert_eq!(
            used(vec![process(
                ProcessKind::Graphics,
                Reading::Absent(Absence::Unknown)
            )]),
            (0, 0)
        );
        let mut old_driver = sample(vec![]);
        let driver_bytes = |sample: &GpuSample| {
            users(sample, &sample.memory, None)
                .value()
                .unwrap()
                .driver_bytes
        };
        assert_eq!(driver_bytes(&old_driver), DRIVER_BYTES);
        old_driver.memory.reserved_bytes = Reading::Absent(Absence::NotSupported);
        assert_eq!(driver_bytes(&old_driver), DRIVER_BYTES_WITH_RESERVE);
        old_driver.processes = Reading::Absent(Absence::NoPermission);
        let mut crowded = sample(vec![draws()]);
        crowded.processes_omitted = 7;
        assert_eq!(
            users(&crowded, &crowded.memory, None)
                .value()
                .unwrap()
                .computing,
            7
        );
        assert!(
            users(&old_driver, &old_driver.memory, None)
                .value()
                .is_none(),
            "unknown is not nobody"
        );
    }

    #[test]
    fn modes_and_health_keep_a_gpu_from_being_taken() {
        let computes = || process(ProcessKind::Compute, Reading::Now(GIB));
        let why = |sample: &GpuSample, mode| {
            let mut details = GpuDetails::absent(0, None, 1, &Absence::Unknown);
            details.modes.compute = Reading::Now(mode);
            trouble(sample, Some(&details)).map(|trouble| trouble.what)
        };
        assert_eq!(why(&sample(vec![computes()]), ComputeMode::Default), None);
        assert_eq!(
            why(&sample(vec![]), ComputeMode::Prohibited),
            Some("compute mode prohibited".to_owned())
        );
        assert_eq!(why(&sample(vec![]), ComputeMode::ExclusiveProcess), None);
        assert_eq!(
            why(&sample(vec![computes()]), ComputeMode::ExclusiveProcess),
            Some("in exclusive use".to_owned())
        );
        let mut lost = sample(vec![]);
        lost.health = Health::Lost { since_ms: 1 };
        assert_eq!(
            trouble(&lost, None),
            Some(Trouble {
                what: "lost".to_owned(),
                gone: true
            })
        );
        lost.health = Health::Hung { since_ms: 1 };
        assert_eq!(trouble(&lost, None), Some(passing("hung")));
    }
}
