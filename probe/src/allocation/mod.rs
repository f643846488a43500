//! Allocations of GPUs by schedulers. For Slurm, the prolog's files are read; for Kubernetes, a
//! server passes on the kubelet's reports.
//!
//! An allocation is known even before anything runs on the GPU. It also helps to name the job or
//! pod of a process. The process's own cgroups and environment may contain no job, or only the UID
//! of its pod.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::sleep,
    time::Duration,
};

use rustix::fs::{CWD, Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

use crate::{
    bounded,
    model::{Allocation, BatchJob, GpuSample, MigInstance, Owner, Process, Reading},
    owner::{clean_name, is_sluid, user_name},
    thread,
};

/// The folder in which the prolog of Princeton's jobstats writes its files.
pub const SLURM_GPU_FOLDER: &str = "/run/gpustat";

/// The maximum number of jobs per device. In practice, fewer jobs share a GPU, even with
/// time-slicing. The limit keeps samples small.
const MAX_JOBS_PER_DEVICE: usize = 64;

/// The maximum number of devices, including MIG devices. No machine has that many.
const MAX_DEVICES: usize = 1024;

/// A device that was allocated to a job or pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocatedDevice {
    /// The UUID of a GPU or MIG device, or `gpu-N` for the GPU with minor number N, the name used
    /// by NVIDIA's driver for dynamic resource allocation.
    pub device: String,
    /// The job or pod to which the device is allocated.
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
    /// Whether the first reading of Slurm's files is still in progress.
    is_reading: bool,
}

impl Allocations {
    /// Replaces the allocations that the kubelet reported earlier.
    pub fn set_kubernetes(&self, devices: Vec<AllocatedDevice>) {
        self.lock().kubernetes = group_by_device(devices);
    }

    /// Starts a thread that reads the files of Slurm's prolog every few seconds.
    pub(crate) fn start_following_slurm_files(self: &Arc<Self>, folder: PathBuf) {
        self.lock().is_reading = true;
        let all = Arc::clone(self);
        let follow = move || follow_slurm_files(&folder, |devices| all.set_slurm(devices));
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
    pub(crate) fn wait_for_first_slurm_reading(&self, patience: Duration) {
        drop(
            self.changed
                .wait_timeout_while(self.lock(), patience, |known| known.is_reading),
        );
    }

    /// Fills in the allocations of a GPU and its MIG devices.
    pub(crate) fn fill_gpu_allocations(&self, sample: &mut GpuSample, minor_number: Option<u32>) {
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
        if holders.len() < MAX_JOBS_PER_DEVICE && !holders.contains(&to) {
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

// The files that Slurm's prolog writes for each GPU or MIG device of a job, and that its epilog
// removes.
//
// The format is that of Princeton's jobstats: `/run/gpustat/<UUID>` contains `<job id> <uid>`.
// Only files owned by root or by this process's user are trusted, and only regular files are
// opened.

/// The interval between two reads of the files.
const SLURM_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The maximum number of bytes read from a file, twice the length of the longest job ID and user
/// ID.
const MAX_JOB_FILE_BYTES: usize = 64;

const WRITABLE_BY_ALL: u32 = 0o002;

/// Reads the files of Slurm's prolog at regular intervals, and calls `set` after each change. Never
/// returns.
fn follow_slurm_files(folder: &Path, set: impl Fn(Vec<AllocatedDevice>)) {
    let own_uid = rustix::process::geteuid().as_raw();
    let (mut names, mut reported) = (HashMap::new(), None);
    loop {
        let jobs = read_slurm_jobs(folder, own_uid);
        if reported.as_ref() != Some(&jobs) {
            // The jobs are first reported without user names, because looking up the names may take
            // long or never return.
            set(to_devices(&jobs, &names));
            names.retain(|uid, _| jobs.iter().any(|job| job.uid == Some(*uid)));
            for uid in jobs.iter().filter_map(|job| job.uid) {
                names.entry(uid).or_insert_with(|| user_name(uid));
            }
            set(to_devices(&jobs, &names));
            reported = Some(jobs);
        }
        sleep(SLURM_POLL_INTERVAL);
    }
}

/// The content of a device's file.
#[derive(Debug, PartialEq, Eq)]
struct DeviceJob {
    device: String,
    job_id: String,
    uid: Option<u32>,
}

fn to_devices(jobs: &[DeviceJob], names: &HashMap<u32, String>) -> Vec<AllocatedDevice> {
    let device = |job: &DeviceJob| {
        let user = job.uid.and_then(|uid| names.get(&uid).cloned());
        AllocatedDevice {
            device: job.device.clone(),
            to: Allocation::Slurm {
                job_id: job.job_id.clone(),
                user,
            },
        }
    };
    jobs.iter().map(device).collect()
}

/// Reads the files of a folder, and returns the jobs by device. Returns no jobs if the folder is
/// missing.
fn read_slurm_jobs(folder: &Path, own_uid: u32) -> Vec<DeviceJob> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    // The folder also contains files named after GPU ordinals. They are ignored, because an ordinal
    // only counts the GPUs of one job.
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| name.starts_with("GPU-") || name.starts_with("MIG-"));
    let jobs = names.take(MAX_DEVICES).filter_map(|device| {
        let text = read_trusted_file(&folder.join(&device), own_uid).ok()?;
        let mut words = text.split_ascii_whitespace();
        let job_id = words
            .next()
            .filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()))?
            .to_owned();
        Some(DeviceJob {
            device,
            job_id,
            uid: words.next().and_then(|uid| uid.parse().ok()),
        })
    });
    let mut jobs: Vec<_> = jobs.collect();
    jobs.sort_by(|one, other| one.device.cmp(&other.device));
    jobs
}

fn read_trusted_file(path: &Path, own_uid: u32) -> io::Result<String> {
    // With these flags, opening a pipe does not wait for its writer, and symbolic links are not
    // followed.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    let status = file.metadata()?;
    let is_trusted = [0, own_uid].contains(&status.uid()) && status.mode() & WRITABLE_BY_ALL == 0;
    if !status.is_file() || !is_trusted {
        return Err(ErrorKind::PermissionDenied.into());
    }
    String::from_utf8(bounded::read_from(file, MAX_JOB_FILE_BYTES)?)
        .map_err(|_| ErrorKind::InvalidData.into())
}

/// The job and pod names for the processes of one GPU. They are derived from the allocations of the
/// whole GPU (`None`) or of each MIG instance.
#[derive(Debug, Default)]
pub(crate) struct ProcessNaming(BTreeMap<Option<MigInstance>, DeviceHolders>);

#[derive(Debug, Default)]
struct DeviceHolders {
    holders: Vec<Allocation>,
    /// The pods and containers of the device's processes, according to their cgroups.
    pods: BTreeSet<String>,
    containers: BTreeSet<String>,
}

impl ProcessNaming {
    pub(crate) fn new(sample: &GpuSample) -> Self {
        let mig = sample.mig_devices.items().iter();
        let parts = mig.map(|mig| (Some(mig.instance), &mig.allocated_to));
        let held = parts
            .chain([(None, &sample.allocated_to)])
            .filter(|(_, holders)| !holders.is_empty());
        let device = |holders: &Vec<Allocation>| DeviceHolders {
            holders: holders.clone(),
            ..DeviceHolders::default()
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
    /// before [`Self::fill_job_or_pod`].
    pub(crate) fn record_owner(&mut self, mig: Option<MigInstance>, owner: &Owner) {
        let Some(device) = self.0.get_mut(&mig) else {
            return;
        };
        if let Some(pod) = &owner.pod
            && !device.pods.contains(&pod.uid)
        {
            device.pods.insert(pod.uid.clone());
        }
        if let Some(container) = &owner.container
            && !device.containers.contains(&container.id)
        {
            device.containers.insert(container.id.clone());
        }
    }

    /// Fills in the job or pod of a process from the allocation of its device, if the process's own
    /// data does not name them.
    pub(crate) fn fill_job_or_pod(&self, process: &mut Process) {
        let Some(device) = self.0.get(&process.mig) else {
            return;
        };
        let user = process.user.value().cloned();
        let Reading::Now(owner) = &mut process.owner else {
            return;
        };
        device.fill_pod_name(owner);
        device.fill_allocated_job(owner, user.as_deref());
    }
}

impl DeviceHolders {
    /// Fills in the pod's name if the device has only one pod. Several pods cannot be
    /// distinguished, because the kubelet does not report their UIDs.
    fn fill_pod_name(&self, owner: &mut Owner) {
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

    /// Fills in the job to which the device is allocated. This is done if the process has no batch
    /// job, or if only the SLUID of its Slurm job is known. Processes of other users, such as
    /// monitors and displays, are skipped.
    fn fill_allocated_job(&self, owner: &mut Owner, user: Option<&str>) {
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
            // If the owner is incomplete, the process may have a job that has not been read yet.
            None if owner.partial || owner.batch_job().is_some() => return,
            None if its_user.is_none() || user != its_user => return,
            None => None,
        };
        owner.slurm = Some(BatchJob {
            step,
            ..BatchJob::new(job_id.clone())
        });
    }
}

#[cfg(test)]
mod tests;
