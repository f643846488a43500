//! Job and pod names for processes, derived from the allocation of their device.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{Allocation, BatchJob, GpuSample, MigInstance, Owner, Process, Reading},
    owner::is_sluid,
};

/// The names for the processes of one GPU, by MIG instance.
#[derive(Debug, Default)]
pub(crate) struct ProcessNaming(BTreeMap<Option<MigInstance>, Device>);

#[derive(Debug, Default)]
struct Device {
    holders: Vec<Allocation>,
    /// The pods and containers of the device's processes, according to their cgroups.
    pods: BTreeSet<String>,
    containers: BTreeSet<String>,
}

impl ProcessNaming {
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

    /// Returns `true` if nothing is allocated, so that no process gets a name.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records the pod and container of a process. Must be called for all processes of the GPU
    /// before [`Self::name_process`].
    pub(crate) fn record_owner(&mut self, mig: Option<MigInstance>, owner: &Owner) {
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

    /// Fills in the job or pod of a process if only its device's allocation has this information.
    pub(crate) fn name_process(&self, process: &mut Process) {
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
    /// Fills in the pod's name if the device has only one pod. Several pods cannot be
    /// distinguished, because the kubelet does not report their UIDs.
    fn name_pod(&self, owner: &mut Owner) {
        let Some(pod) = owner.pod.as_mut().filter(|_| self.pods.len() == 1) else {
            return;
        };
        let reported = self.holders.iter().filter_map(|holder| match holder {
            Allocation::Kubernetes {
                namespace,
                pod,
                container,
            } => Some((namespace, pod, container)),
            Allocation::Slurm { .. } => None,
        });
        let reported: Vec<_> = reported.collect();
        let Some((namespace, name, container)) = reported.first() else {
            return;
        };
        if reported
            .iter()
            .any(|(its_namespace, its_name, _)| (its_namespace, its_name) != (namespace, name))
        {
            return;
        }
        (pod.namespace, pod.name) = (Some((*namespace).clone()), Some((*name).clone()));
        if let (1, 1, Some(own)) = (reported.len(), self.containers.len(), &mut owner.container) {
            own.name = Some((*container).clone());
        }
    }

    /// Fills in the job that the device is allocated to if the process has no job, or only a job
    /// with a SLUID. Processes of other users, such as monitors and displays, are skipped.
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
            // The process may have a job that has not been read yet.
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
