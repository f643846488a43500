//! Allocations of GPUs by schedulers. Slurm's prolog writes files, and a server passes on the
//! reports of the kubelet.
//!
//! An allocation is known even if nothing runs on the GPU yet. It also identifies processes whose
//! cgroups and environments name no job, or a pod only by its UID.

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

pub(crate) use self::naming::Naming;
use crate::{
    model::{Allocation, GpuSample},
    owner::clean_name,
    thread,
};

/// The folder in which the prolog of Princeton's jobstats writes files.
pub const SLURM_GPUS: &str = "/run/gpustat";

/// The maximum number of jobs per device. Time-slicing shares a GPU with fewer jobs, and more must
/// not make samples longer.
const MOST_PER_DEVICE: usize = 64;

/// The maximum number of devices, more than any machine has, including MIG devices.
const MOST_DEVICES: usize = 1024;

/// A device that was allocated to a job or pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocatedDevice {
    /// The UUID of a GPU or MIG device, or `gpu-N` for the GPU with the minor number N, the name
    /// that NVIDIA's driver for dynamic resource allocation uses.
    pub device: String,
    /// The job or pod.
    pub to: Allocation,
}

/// The known allocations, shared by threads that find them and threads that read GPUs.
#[derive(Debug, Default)]
pub struct Allocations {
    known: Mutex<Known>,
    changed: Condvar,
}

type ByDevice = BTreeMap<String, Vec<Allocation>>;

#[derive(Debug, Default)]
struct Known {
    slurm: ByDevice,
    kubernetes: ByDevice,
    /// Whether the first reading of Slurm's files has not finished.
    is_reading: bool,
}

impl Allocations {
    /// Replaces the allocations that the kubelet reported before.
    pub fn set_kubernetes(&self, devices: Vec<AllocatedDevice>) {
        self.lock().kubernetes = by_device(devices);
    }

    /// Starts a thread that reads the files of Slurm's prolog every few seconds.
    pub(crate) fn follow_slurm(self: &std::sync::Arc<Self>, folder: PathBuf) {
        self.lock().is_reading = true;
        let all = std::sync::Arc::clone(self);
        let follow = move || gpustat::follow(&folder, |devices| all.set_slurm(devices));
        if thread::spawn("allocations", follow).is_err() {
            self.set_slurm(Vec::new());
        }
    }

    fn set_slurm(&self, devices: Vec<AllocatedDevice>) {
        let mut known = self.lock();
        (known.slurm, known.is_reading) = (by_device(devices), false);
        self.changed.notify_all();
    }

    /// Waits for the first reading of Slurm's files, but at most for `patience`.
    pub(crate) fn wait(&self, patience: Duration) {
        drop(
            self.changed
                .wait_timeout_while(self.lock(), patience, |known| known.is_reading),
        );
    }

    /// Fills in the allocations of a GPU and its MIG devices.
    pub(crate) fn fill(&self, sample: &mut GpuSample, minor_number: Option<u32>) {
        let known = self.lock();
        let by_minor = minor_number.map(|minor| format!("gpu-{minor}"));
        sample.allocated_to = known.of(sample
            .uuid
            .as_deref()
            .into_iter()
            .chain(by_minor.as_deref()));
        for mig in sample.mig_devices.value_mut().into_iter().flatten() {
            mig.allocated_to = known.of([mig.uuid.as_str()]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn of<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<Allocation> {
        let names: Vec<_> = names.into_iter().collect();
        let known = [&self.slurm, &self.kubernetes]
            .into_iter()
            .flat_map(|known| names.iter().map(|name| known.get(*name)));
        known.flatten().flatten().cloned().collect()
    }
}

/// Groups allocations by device, without duplicates and within limits. Names are made printable.
fn by_device(devices: Vec<AllocatedDevice>) -> ByDevice {
    let mut all = ByDevice::new();
    for AllocatedDevice { device, to } in devices {
        if all.len() >= MOST_DEVICES && !all.contains_key(&device) {
            continue;
        }
        let holders = all.entry(device).or_default();
        let to = cleaned(to);
        if holders.len() < MOST_PER_DEVICE && !holders.contains(&to) {
            holders.push(to);
        }
    }
    all
}

fn cleaned(to: Allocation) -> Allocation {
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
