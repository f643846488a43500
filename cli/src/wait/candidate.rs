//! GPUs and MIG devices as candidates for new work.

use gpumon_probe::model::{
    Absence, ComputeMode, ConditionKind, Gpu, GpuDetails, GpuSample, Health, Inventory,
    MemorySample, MigDevice, MigInstance, Process, ProcessKind, Reading, Vendor,
};

use crate::{
    device_id::{self, DeviceId},
    exit::{Failure, usage},
    snapshot::DriverAnswer,
    visible_devices::{VisibilityVariables, VisibleName},
};

#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// The index of the GPU.
    pub(super) gpu: u32,
    /// The index of the MIG device, or `None` for a whole GPU.
    pub(super) mig: Option<u32>,
    /// The UUID of the device, or `None` if the driver has not reported it yet.
    pub(super) uuid: Option<String>,
    pub(super) vendor: Vendor,
    /// The name of the device in variables such as `CUDA_VISIBLE_DEVICES`.
    pub(super) visible_as: Option<VisibleName>,
    pub(super) at_ms: u64,
    /// The memory, in bytes, that programs could use if nothing else used the device.
    pub(super) capacity_bytes: Reading<u64>,
    /// The current state, or the reason why the device cannot be used.
    pub(super) state: Result<DeviceState, Obstacle>,
}

#[derive(Debug, Clone)]
pub(super) struct DeviceState {
    pub(super) free_bytes: Reading<u64>,
    /// The percentage of time in which kernels ran. For a MIG device, the percentage of time in
    /// which its SMs had work.
    pub(super) busy_percent: Reading<f64>,
    pub(super) users: Reading<DeviceUsers>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeviceUsers {
    /// The number of compute processes. Processes that only draw, such as a display server, are not
    /// counted.
    pub(super) computing: usize,
    /// The memory in use, in bytes, excluding the memory of processes that only draw.
    pub(super) held_bytes: u64,
    /// The maximum part of `held_bytes` that may belong to the driver itself.
    pub(super) driver_bytes: u64,
}

/// A reason why a device cannot be used, independent of its readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Obstacle {
    pub(super) what: String,
    /// Whether the device is lost and may never become usable again.
    pub(super) gone: bool,
}

/// The maximum memory that an idle driver uses if it reports reserved memory separately. It usually
/// uses a few MiB. The limit must be smaller than the memory of a CUDA context.
const DRIVER_BYTES: u64 = 128 << 20;
/// The maximum memory that an idle driver before version 510 uses. These drivers count reserved
/// memory as used.
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
        format!("GPU {}", self.index_label())
    }

    /// Returns the index, such as `3`, or `3:1` for a MIG device. Container runtimes use the same
    /// format.
    pub(super) fn index_label(&self) -> String {
        self.mig
            .map_or_else(|| self.gpu.to_string(), |mig| format!("{}:{mig}", self.gpu))
    }
}

/// Returns all devices that could be taken, in the driver's order. For a GPU in MIG mode, its MIG
/// devices are returned instead.
pub(super) fn list_candidates(view: &DriverAnswer) -> Vec<Candidate> {
    let mut all = Vec::new();
    for gpu in &view.inventory.gpus {
        let Some(sample) = view.gpus().find(|sample| sample.index == gpu.index) else {
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
        candidate.visible_as = VisibleName::new(candidate.id(), &view.inventory.gpus);
    }
    all
}

/// Creates the candidate for a GPU or for one of its MIG devices.
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
                    None => copy_absence(&part.activity),
                };
                (&part.memory, busy)
            })
        }
    };
    let is_divided = details.and_then(|details| details.modes.mig.value());
    let is_divided = mig.is_none() && is_divided.is_some_and(|mode| mode.current);
    let state = match (find_obstacle(sample, details), &readings) {
        (Some(trouble), _) => Err(trouble),
        (None, None) => Err(make_temporary_obstacle("not read yet")),
        (None, Some(_)) if is_divided => Err(make_temporary_obstacle(
            "has MIG enabled, but no MIG devices",
        )),
        (None, Some((memory, busy))) => Ok(DeviceState {
            free_bytes: memory.free_bytes.clone(),
            busy_percent: busy.clone(),
            users: summarize_device_users(sample, memory, mig.map(|mig| mig.instance)),
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
            || copy_absence(&sample.mig_devices),
            |(memory, _)| usable_memory(memory),
        ),
        state,
    }
}

fn copy_absence<T, U>(reading: &Reading<T>) -> Reading<U> {
    Reading::Absent(reading.absence().cloned().unwrap_or(Absence::NoAnswer))
}

fn find_obstacle(sample: &GpuSample, details: Option<&GpuDetails>) -> Option<Obstacle> {
    match &sample.health {
        Health::Ok => {}
        Health::Asleep { .. } => return Some(make_temporary_obstacle("asleep")),
        Health::Hung { .. } => return Some(make_temporary_obstacle("hung")),
        Health::Lost { .. } => {
            return Some(Obstacle {
                what: "lost".to_owned(),
                gone: true,
            });
        }
        // A failed GPU may become usable again: a wait can last for days, and the driver may
        // recover from some errors in that time.
        Health::Failed { reason, .. } => {
            let gone = !matches!(reason, Absence::DriverError { .. } | Absence::NoAnswer);
            return Some(Obstacle {
                what: reason.to_string(),
                gone,
            });
        }
    }
    let computes = |process: &Process| process.kind != ProcessKind::Graphics;
    match details.and_then(|details| details.modes.compute.value()) {
        Some(ComputeMode::Prohibited) => {
            return Some(make_temporary_obstacle("in prohibited compute mode"));
        }
        Some(ComputeMode::ExclusiveProcess)
            if sample.processes_omitted > 0
                || sample
                    .processes
                    .value()
                    .is_some_and(|all| all.iter().any(computes)) =>
        {
            return Some(make_temporary_obstacle("in exclusive use"));
        }
        _ => {}
    }
    let mut kinds = sample.conditions.iter().map(|condition| &condition.kind);
    kinds
        .any(|kind| matches!(kind, ConditionKind::RecoveryNeeded { .. }))
        .then(|| make_temporary_obstacle("needs recovery"))
}

fn make_temporary_obstacle(what: &str) -> Obstacle {
    Obstacle {
        what: what.to_owned(),
        gone: false,
    }
}

fn usable_memory(memory: &MemorySample) -> Reading<u64> {
    let reserved = memory.reserved_bytes.value().copied().unwrap_or(0);
    memory
        .total_bytes
        .clone()
        .map(|total| total.saturating_sub(reserved))
}

/// Returns the number and the memory of the processes on a GPU or MIG device. Processes that the
/// sample omits are counted as compute processes on every device.
fn summarize_device_users(
    sample: &GpuSample,
    memory: &MemorySample,
    instance: Option<MigInstance>,
) -> Reading<DeviceUsers> {
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
    // If the memory of a process that only draws is unknown, this process may use all of the memory
    // in use.
    let memory_drawing: u64 = here().filter(draws).fold(0, |sum, process| {
        sum.saturating_add(process.memory_bytes.value().copied().unwrap_or(u64::MAX))
    });
    Reading::Now(DeviceUsers {
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

/// The GPUs selected by `--id` and by the environment.
#[derive(Debug, Clone)]
pub(crate) struct DeviceSelection {
    named: Vec<String>,
    visible: Option<VisibilityVariables>,
}

impl DeviceSelection {
    /// Creates a selection of the GPUs called `named`. Without names, all GPUs of a single vendor
    /// are selected.
    pub(crate) fn new(named: Vec<String>) -> Self {
        Self {
            named,
            visible: VisibilityVariables::from_environment(),
        }
    }

    /// Removes all candidates that are not selected.
    pub(super) fn retain_selected(
        &self,
        inventory: &Inventory,
        candidates: &mut Vec<Candidate>,
    ) -> Result<(), Failure> {
        if let Some(visible) = &self.visible {
            let ids = visible
                .list_allowed_devices(&inventory.gpus)
                .map_err(|why| usage!(why))?;
            candidates
                .retain(|candidate| ids.iter().any(|id| id_includes_candidate(*id, candidate)));
        }
        if self.named.is_empty() {
            // Without names, only the GPUs of one vendor are selected, because most programs are
            // built for a single vendor.
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
                ids.extend(device_id::find_device(name, &inventory.gpus)?);
            }
            candidates
                .retain(|candidate| ids.iter().any(|id| id_includes_candidate(*id, candidate)));
        }
        match (&self.visible, candidates.is_empty()) {
            (Some(visible), true) => Err(usage!(
                "{visible} leaves no GPU to choose from: unset the variable, or list other GPUs in \
                 it"
            )),
            _ => Ok(()),
        }
    }
}

fn id_includes_candidate(id: DeviceId, candidate: &Candidate) -> bool {
    id.gpu == candidate.gpu && (id.mig.is_none() || id.mig == candidate.mig)
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::Owner;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn make_process(kind: ProcessKind, memory_bytes: Reading<u64>) -> Process {
        fn absent_reading<T>() -> Reading<T> {
            Reading::Absent(Absence::Unknown)
        }
        Process {
            pid: 1,
            kind,
            memory_bytes,
            sm_percent: absent_reading(),
            memory_percent: absent_reading(),
            encoder_percent: absent_reading(),
            decoder_percent: absent_reading(),
            name: absent_reading(),
            program: None,
            command: absent_reading(),
            user: absent_reading(),
            host_memory_bytes: Reading::Absent(Absence::Unknown),
            traced: Reading::Absent(Absence::Unknown),
            started_ms: absent_reading(),
            mig: None,
            mps: false,
            owner: Reading::Now(Owner::default()),
        }
    }

    /// Returns a GPU on which the given processes run and 2 GiB of memory are in use.
    fn make_gpu_sample(processes: Vec<Process>) -> GpuSample {
        let mut sample = GpuSample::new_absent(0, None, 1, Health::Ok, &Absence::Unknown);
        sample.memory.used_bytes = Reading::Now(2 * GIB);
        sample.memory.reserved_bytes = Reading::Now(GIB / 2);
        sample.processes = Reading::Now(processes);
        sample
    }

    fn count_used(processes: Vec<Process>) -> (usize, u64) {
        let sample = make_gpu_sample(processes);
        let users = summarize_device_users(&sample, &sample.memory, None);
        let users = users.value().unwrap();
        (users.computing, users.held_bytes)
    }

    #[test]
    fn display_server_does_not_count_as_user() {
        let draws = || make_process(ProcessKind::Graphics, Reading::Now(GIB));
        let does_both = || make_process(ProcessKind::ComputeAndGraphics, Reading::Now(GIB));
        assert_eq!(
            count_used(vec![]),
            (0, 2 * GIB),
            "of another container's, perhaps"
        );
        assert_eq!(count_used(vec![draws()]), (0, GIB));
        assert_eq!(count_used(vec![draws(), draws()]), (0, 0));
        assert_eq!(count_used(vec![draws(), does_both()]), (1, GIB));
        assert_eq!(
            count_used(vec![make_process(
                ProcessKind::Graphics,
                Reading::Absent(Absence::Unknown)
            )]),
            (0, 0)
        );
        let mut old_driver = make_gpu_sample(vec![]);
        let driver_bytes = |sample: &GpuSample| {
            summarize_device_users(sample, &sample.memory, None)
                .value()
                .unwrap()
                .driver_bytes
        };
        assert_eq!(driver_bytes(&old_driver), DRIVER_BYTES);
        old_driver.memory.reserved_bytes = Reading::Absent(Absence::NotSupported);
        assert_eq!(driver_bytes(&old_driver), DRIVER_BYTES_WITH_RESERVE);
        old_driver.processes = Reading::Absent(Absence::NoPermission);
        let mut crowded = make_gpu_sample(vec![draws()]);
        crowded.processes_omitted = 7;
        assert_eq!(
            summarize_device_users(&crowded, &crowded.memory, None)
                .value()
                .unwrap()
                .computing,
            7
        );
        assert!(
            summarize_device_users(&old_driver, &old_driver.memory, None)
                .value()
                .is_none(),
            "unknown is not nobody"
        );
    }

    #[test]
    fn bad_health_or_compute_mode_makes_gpu_unusable() {
        let computes = || make_process(ProcessKind::Compute, Reading::Now(GIB));
        let why = |sample: &GpuSample, mode| {
            let mut details = GpuDetails::new_absent(0, None, 1, &Absence::Unknown);
            details.modes.compute = Reading::Now(mode);
            find_obstacle(sample, Some(&details)).map(|trouble| trouble.what)
        };
        assert_eq!(
            why(&make_gpu_sample(vec![computes()]), ComputeMode::Default),
            None
        );
        assert_eq!(
            why(&make_gpu_sample(vec![]), ComputeMode::Prohibited),
            Some("in prohibited compute mode".to_owned())
        );
        assert_eq!(
            why(&make_gpu_sample(vec![]), ComputeMode::ExclusiveProcess),
            None
        );
        assert_eq!(
            why(
                &make_gpu_sample(vec![computes()]),
                ComputeMode::ExclusiveProcess
            ),
            Some("in exclusive use".to_owned())
        );
        let mut lost = make_gpu_sample(vec![]);
        lost.health = Health::Lost { since_ms: 1 };
        assert_eq!(
            find_obstacle(&lost, None),
            Some(Obstacle {
                what: "lost".to_owned(),
                gone: true
            })
        );
        lost.health = Health::Hung { since_ms: 1 };
        assert_eq!(
            find_obstacle(&lost, None),
            Some(make_temporary_obstacle("hung"))
        );
    }
}
