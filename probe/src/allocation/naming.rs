//! What an allocation tells of the processes on its device.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{Allocation, BatchJob, GpuSample, MigInstance, Owner, Process, Reading},
    owner::is_sluid,
};

/// The names of one GPU's processes, by the MIG instance that they run in.
#[derive(Debug, Default)]
pub(crate) struct Naming(BTreeMap<Option<MigInstance>, Device>);

#[derive(Debug, Default)]
struct Device {
    holders: Vec<Allocation>,
    /// The pods and containers of the processes on it, as their cgroups have it.
    pods: BTreeSet<String>,
    containers: BTreeSet<String>,
}

impl Naming {
    pub(crate) fn new(sample: &GpuSample) -> Self {
        let mig = sample.mig_devices.value().into_iter().flatten();
        let parts = mig.map(|mig| (Some(mig.instance), &mig.allocated_to));
        let held = parts
            .chain([(None, &sample.allocated_to)])
            .filter(|(_, holders)| !holders.is_empty());
        let device = |holders: &Vec<Allocation>| Device {
            holders: holders.clone(),
            ..Device::default()
        };
        Self(
            held.map(|(instance, holders)| (instance, device(holders)))
                .collect(),
        )
    }

    /// Whether nothing is allocated, so that there is nothing to be named.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in what the cgroup of each process on the GPU tells, before any is named.
    pub(crate) fn see(&mut self, mig: Option<MigInstance>, owner: &Owner) {
        let Some(device) = self.0.get_mut(&mig) else {
            return;
        };
        if let Some(pod) = owner
            .pod
            .as_ref()
            .filter(|pod| !device.pods.contains(&pod.uid))
        {
            device.pods.insert(pod.uid.clone());
        }
        if let Some(container) = owner
            .container
            .as_ref()
            .filter(|one| !device.containers.contains(&one.id))
        {
            device.containers.insert(container.id.clone());
        }
    }

    /// Fills in what its device's allocation alone tells of a process.
    pub(crate) fn name(&self, process: &mut Process) {
        let Some(device) = self.0.get(&process.mig) else {
            return;
        };
        let user = process.user.value().cloned();
        let Reading::Now(owner) = &mut process.owner else {
            return;
        };
        device.name_pod(owner);
        device.name_job(owner, user.as_deref());
    }
}

impl Device {
    /// Names the pod, where there is one alone that it can be: the kubelet tells no UIDs.
    fn name_pod(&self, owner: &mut Owner) {
        let Some(pod) = owner.pod.as_mut().filter(|_| self.pods.len() == 1) else {
            return;
        };
        let told = self.holders.iter().filter_map(|holder| match holder {
            Allocation::Kubernetes {
                namespace,
                pod,
                container,
            } => Some((namespace, pod, container)),
            Allocation::Slurm { .. } => None,
        });
        let told: Vec<_> = told.collect();
        let Some((namespace, name, container)) = told.first() else {
            return;
        };
        if told
            .iter()
            .any(|(its_namespace, its_name, _)| (its_namespace, its_name) != (namespace, name))
        {
            return;
        }
        (pod.namespace, pod.name) = (Some((*namespace).clone()), Some((*name).clone()));
        if let (1, 1, Some(own)) = (told.len(), self.containers.len(), &mut owner.container) {
            own.name = Some((*container).clone());
        }
    }

    /// A process that nothing else says to be of a job, or of one by its SLUID alone, is of the one
    /// that holds the device, unless it is another user's: a monitor's or a display's.
    fn name_job(&self, owner: &mut Owner, user: Option<&str>) {
        let jobs = self.holders.iter().filter_map(|holder| match holder {
            Allocation::Slurm { job_id, user } => Some((job_id, user.as_deref())),
            Allocation::Kubernetes { .. } => None,
        });
        let [(job_id, its_user)] = jobs.collect::<Vec<_>>()[..] else {
            return;
        };
        let step = match &owner.slurm {
            Some(job) if !is_sluid(&job.job_id) => return,
            Some(job) => job.step.clone(),
            // Which job it says to be of is not known yet.
            None if owner.partial || owner.batch_job().is_some() => return,
            None if its_user.is_none() || user != its_user => return,
            None => None,
        };
        owner.slurm = Some(BatchJob {
            job_id: job_id.clone(),
            step,
            private: false,
        });
    }
}
