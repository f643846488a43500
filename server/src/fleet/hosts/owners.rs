//! Converts GPU owners to the fleet's data model.

use gpumon_fleet::model::{FleetOwner, OwnerKind};
use gpumon_probe::model::{Allocation, GpuSample, Job, JobKind, Process};

/// Returns all owners of a GPU without duplicates: the owners of its processes and of its
/// allocations.
pub(super) fn gpu_owners(sample: &GpuSample) -> Vec<FleetOwner> {
    let processes = sample.processes.value().into_iter().flatten();
    let mut owners: Vec<_> = processes.filter_map(process_owner).collect();
    owners.extend(sample.allocated_to.iter().map(allocation_owner));
    owners.sort();
    owners.dedup();
    owners
}

/// Returns the owner of a process, or `None` if neither its user nor its job is known.
fn process_owner(process: &Process) -> Option<FleetOwner> {
    let user = process.user.value().cloned();
    let owner = process.owner.value();
    if let Some(pod) = owner.and_then(|owner| owner.pod.as_ref()) {
        let id = pod.name.clone().unwrap_or_else(|| pod.uid.clone());
        return Some(FleetOwner {
            user,
            kind: OwnerKind::Pod,
            id,
            namespace: pod.namespace.clone(),
        });
    }
    let job = owner.and_then(gpumon_probe::model::Owner::job);
    (user.is_some() || job.is_some()).then(|| job_owner(user, job.as_ref()))
}

/// Returns the owner of a job. If `job` is `None` or private, the owner is the user.
pub(super) fn job_owner(user: Option<String>, job: Option<&Job>) -> FleetOwner {
    // All viewers of the fleet see the same owners, so private jobs must not be named.
    let Some(job) = job.filter(|job| !job.private) else {
        return FleetOwner {
            user,
            kind: OwnerKind::User,
            id: String::new(),
            namespace: None,
        };
    };
    let kind = match job.kind {
        JobKind::Notebook => OwnerKind::Notebook,
        JobKind::Slurm => OwnerKind::SlurmJob,
        JobKind::Pbs => OwnerKind::PbsJob,
        JobKind::Lsf => OwnerKind::LsfJob,
        JobKind::Pod => OwnerKind::Pod,
        JobKind::Container => OwnerKind::Container,
        JobKind::Service => OwnerKind::Unit,
    };
    let pod = job
        .name
        .as_ref()
        .filter(|_| job.kind == JobKind::Pod)
        .and_then(|name| name.split_once('/'));
    let (namespace, id) = pod.map_or((None, job.id.clone()), |(space, name)| {
        (Some(space.to_owned()), name.to_owned())
    });
    FleetOwner {
        user,
        kind,
        id,
        namespace,
    }
}

fn allocation_owner(allocation: &Allocation) -> FleetOwner {
    match allocation {
        Allocation::Slurm { job_id, user } => FleetOwner {
            user: user.clone(),
            kind: OwnerKind::SlurmJob,
            id: job_id.clone(),
            namespace: None,
        },
        Allocation::Kubernetes { namespace, pod, .. } => FleetOwner {
            user: None,
            kind: OwnerKind::Pod,
            id: pod.clone(),
            namespace: Some(namespace.clone()),
        },
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, BatchJob, Health, Notebook, Owner, ProcessKind, Reading};

    use super::*;

    fn make_process(user: Option<&str>, owner: Owner) -> Process {
        let absent = || Reading::Absent(Absence::NeedsGpumon);
        Process {
            pid: 7,
            kind: ProcessKind::Compute,
            memory_bytes: Reading::Now(1),
            sm_percent: absent(),
            memory_percent: absent(),
            encoder_percent: absent(),
            decoder_percent: absent(),
            name: Reading::Absent(Absence::Unknown),
            program: None,
            command: Reading::Absent(Absence::Unknown),
            user: user.map(str::to_owned).ok_or(Absence::Unknown).into(),
            host_memory_bytes: Reading::Absent(Absence::Unknown),
            traced: Reading::Absent(Absence::Unknown),
            started_ms: Reading::Absent(Absence::Unknown),
            mig: None,
            mps: false,
            owner: Reading::Now(owner),
        }
    }

    #[test]
    fn gpu_owners_have_no_duplicates() {
        let kernel = Notebook {
            kernel_id: "k".to_owned(),
            kernel_name: None,
            path: Reading::Absent(Absence::Hidden),
            kernel_pid: 7,
        };
        let notebook = Owner {
            notebook: Some(kernel),
            ..Owner::default()
        };
        let slurm = Owner {
            slurm: Some(BatchJob {
                job_id: "41".to_owned(),
                step: None,
                private: false,
            }),
            ..Owner::default()
        };
        let mut sample = GpuSample::new_absent(0, None, 1, Health::Ok, &Absence::Unknown);
        assert_eq!(gpu_owners(&sample), []);
        sample.processes = Reading::Now(vec![
            make_process(Some("ana"), notebook),
            make_process(Some("bob"), slurm.clone()),
            make_process(Some("bob"), slurm),
            make_process(Some("ana"), Owner::default()),
            make_process(None, Owner::default()),
        ]);
        sample.allocated_to = vec![Allocation::Slurm {
            job_id: "41".to_owned(),
            user: Some("bob".to_owned()),
        }];
        let owners: Vec<_> = gpu_owners(&sample)
            .into_iter()
            .map(|it| (it.user.unwrap(), it.kind, it.id))
            .collect();
        let of = |user: &str, kind, id: &str| (user.to_owned(), kind, id.to_owned());
        assert_eq!(
            owners,
            [
                of("ana", OwnerKind::Notebook, "k"),
                of("ana", OwnerKind::User, ""),
                of("bob", OwnerKind::SlurmJob, "41"),
            ]
        );
    }
}
