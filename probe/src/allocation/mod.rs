//! Allocations of GPUs by schedulers. For Slurm, the prolog's files are read; for Kubernetes, a
//! server passes on the kubelet's reports.
//!
//! An allocation is known even before anything runs on the GPU. It also identifies the job or pod
//! of processes whose cgroups and environment contain no job, or only a pod's UID.

mod gpustat;
mod naming;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};

pub(crate) use self::naming::ProcessNaming;
use crate::{
    model::{Allocation, GpuSample},
    owner::clean_name,
    thread,
};

/// The folder in which the prolog of Princeton's jobstats writes its files.
pub const SLURM_GPU_FOLDER: &str = "/run/gpustat";

/// The maximum number of jobs per device. Fewer jobs share a GPU even with time-slicing, and the
/// limit keeps samples small.
const MAX_PER_DEVICE: usize = 64;

/// The maximum number of devices, including MIG devices. No machine has as many.
const MAX_DEVICES: usize = 1024;

/// A device that was allocated to a job or pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocatedDevice {
    /// The UUID of a GPU or MIG device, or `gpu-N` for the GPU with minor number N, the name used
    /// by NVIDIA's driver for dynamic resource allocation.
    pub device: String,
    /// The job or pod.
    pub to: Allocation,
}

/// The known allocations, shared by the threads that determine allocations and the threads that
/// read GPUs.
#[derive(Debug, Default)]
pub struct Allocations {
    known: Mutex<KnownAllocations>,
    changed: Condvar,
}

type ByDevice = BTreeMap<String, Vec<Allocation>>;

#[derive(Debug, Default)]
struct KnownAllocations {
    slurm: ByDevice,
    kubernetes: ByDevice,
    /// Whether Slurm's files have not yet been read for the first time.
    is_reading: bool,
}

impl Allocations {
    /// Replaces the allocations that the kubelet reported earlier.
    pub fn set_kubernetes(&self, devices: Vec<AllocatedDevice>) {
        self.lock().kubernetes = group_by_device(devices);
    }

    /// Starts a thread that reads the files of Slurm's prolog every few seconds.
    pub(crate) fn follow_slurm(self: &std::sync::Arc<Self>, folder: PathBuf) {
        self.lock().is_reading = true;
        let all = std::sync::Arc::clone(self);
        let follow = move || gpustat::follow_files(&folder, |devices| all.set_slurm(devices));
        if thread::spawn("allocations", follow).is_err() {
            self.set_slurm(Vec::new());
        }
    }

    fn set_slurm(&self, devices: Vec<AllocatedDevice>) {
        let mut known = self.lock();
        (known.slurm, known.is_reading) = (group_by_device(devices), false);
        self.changed.notify_all();
    }

    /// Waits until Slurm's files have been read for the first time, but no longer than `patience`.
    pub(crate) fn wait_for_first_reading(&self, patience: Duration) {
        drop(
            self.changed
                .wait_timeout_while(self.lock(), patience, |known| known.is_reading),
        );
    }

    /// Fills in the allocations of a GPU and its MIG devices.
    pub(crate) fn fill(&self, sample: &mut GpuSample, minor_number: Option<u32>) {
        let known = self.lock();
        let by_minor = minor_number.map(|minor| format!("gpu-{minor}"));
        sample.allocated_to = known.find_allocations(
            sample
                .uuid
                .as_deref()
                .into_iter()
                .chain(by_minor.as_deref()),
        );
        for mig in sample.mig_devices.value_mut().into_iter().flatten() {
            mig.allocated_to = known.find_allocations([mig.uuid.as_str()]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, KnownAllocations> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownAllocations {
    fn find_allocations<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<Allocation> {
        let names: Vec<_> = names.into_iter().collect();
        let known = [&self.slurm, &self.kubernetes]
            .into_iter()
            .flat_map(|known| names.iter().map(|name| known.get(*name)));
        known.flatten().flatten().cloned().collect()
    }
}

/// Groups allocations by device, removes duplicates, applies the limits, and makes names printable.
fn group_by_device(devices: Vec<AllocatedDevice>) -> ByDevice {
    let mut all = ByDevice::new();
    for AllocatedDevice { device, to } in devices {
        if all.len() >= MAX_DEVICES && !all.contains_key(&device) {
            continue;
        }
        let holders = all.entry(device).or_default();
        let to = clean_allocation(to);
        if holders.len() < MAX_PER_DEVICE && !holders.contains(&to) {
            holders.push(to);
        }
    }
    all
}

fn clean_allocation(to: Allocation) -> Allocation {
    match to {
        Allocation::Slurm { job_id, user } => Allocation::Slurm {
            job_id: clean_name(&job_id),
            user: user.as_deref().map(clean_name),
        },
        Allocation::Kubernetes {
            namespace,
            pod,
            container,
        } => Allocation::Kubernetes {
            namespace: clean_name(&namespace),
            pod: clean_name(&pod),
            container: clean_name(&container),
        },
    }
}
