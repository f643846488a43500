//! To whom schedulers have given GPUs: Slurm's prolog leaves files, and a server passes on what the
//! kubelet tells.
//!
//! An allocation tells who holds a GPU on which nothing runs yet, and names the processes on it
//! whose cgroups and environments name nobody, or a pod by its UID alone.

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

/// Where the prolog of Princeton's jobstats writes.
pub const SLURM_GPUS: &str = "/run/gpustat";

/// More than share a GPU by time-slicing; whoever asks Kubernetes for more must not make samples
/// longer without end.
const MOST_PER_DEVICE: usize = 64;

/// More than a machine has, MIG devices included.
const MOST_DEVICES: usize = 1024;

/// A device that was given to somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocatedDevice {
    /// The UUID of a GPU or MIG device, or `gpu-N` for the GPU with the minor number N, as NVIDIA's
    /// driver for dynamic resource allocation names them.
    pub device: String,
    /// To whom.
    pub to: Allocation,
}

/// What is known of it, shared by those who find out and those who read GPUs.
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
    /// Whether Slurm's files are being read for the first time.
    is_reading: bool,
}

impl Allocations {
    /// Replaces what the kubelet told before.
    pub fn set_kubernetes(&self, devices: Vec<AllocatedDevice>) {
        self.lock().kubernetes = by_device(devices);
    }

    /// Reads the files of Slurm's prolog every few seconds, on a thread of its own.
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

    /// Waits until Slurm's files have been read for the first time, but no longer than `patience`.
    pub(crate) fn wait(&self, patience: Duration) {
        drop(
            self.changed
                .wait_timeout_while(self.lock(), patience, |known| known.is_reading),
        );
    }

    /// Says of a GPU and its MIG devices to whom they are given.
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

/// Each holder of a device once, within limits, and with names that can be shown.
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
