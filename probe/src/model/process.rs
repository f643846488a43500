//! Processes that use a GPU, their owners, and the allocations of GPUs by schedulers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Absence, MigInstance, Reading, absent};
use crate::tagged;

/// A process that uses a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Process {
    /// The PID reported by the driver. Newer drivers report it in the PID namespace of the caller,
    /// older drivers in the namespace of the host.
    pub pid: u32,
    /// The kind of use: compute, graphics or both.
    pub kind: ProcessKind,
    /// Device memory of the process. In containers, the driver may not be able to report it; the
    /// value is then `unknown`, never 0.
    pub memory_bytes: Reading<u64>,
    /// Share of the last sampling period in which the process's kernels ran
    /// (`nvmlDeviceGetProcessUtilization`, `smUtil`).
    pub sm_percent: Reading<f64>,
    /// Share of the last sampling period in which the process read or wrote device memory
    /// (`memUtil`).
    pub memory_percent: Reading<f64>,
    /// Utilization of the video encoder by the process (`encUtil`).
    pub encoder_percent: Reading<f64>,
    /// Utilization of the video decoder by the process (`decUtil`).
    pub decoder_percent: Reading<f64>,
    /// The script that an interpreter runs, such as `train.py`, otherwise the program's name from
    /// `/proc/PID/comm`. A script's name is part of the command line, so users who may not see the
    /// command line receive the program's name.
    pub name: Reading<String>,
    /// The program's name from `/proc/PID/comm`, if `name` is a script's name. Omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub program: Option<String>,
    /// The command line, with arguments separated by spaces. A command line of more than 1024 bytes
    /// is truncated and ends in `…`. Hidden for other users' processes if gpumon runs as a service.
    pub command: Reading<String>,
    /// The login name of the process's effective user, or the numeric user ID if there is no name.
    pub user: Reading<String>,
    /// Host memory of the process, as in `ps` (`VmRSS` in `/proc/PID/status`), including pages that
    /// are shared with other processes. Read every few seconds.
    #[serde(default = "not_read::<u64>")]
    pub host_memory_bytes: Reading<u64>,
    /// Whether a debugger or another tracer is attached to the process (`TracerPid` in
    /// `/proc/PID/status`). Read every few seconds.
    #[serde(default = "not_read::<bool>")]
    pub traced: Reading<bool>,
    /// The start time of the process. PID and start time together identify a process, because PIDs
    /// are reused.
    pub started_ms: Reading<u64>,
    /// The MIG instance that the process uses. Omitted for processes that use the whole GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub mig: Option<MigInstance>,
    /// Whether the process computes through the Multi-Process Service, which mixes the kernels of
    /// several processes (`nvmlDeviceGetMPSComputeRunningProcesses`).
    #[serde(default)]
    pub mps: bool,
    /// The owners of the process in addition to its user: notebook, job, pod, container and
    /// service.
    pub owner: Reading<Owner>,
}

impl Process {
    /// Returns a process with only the PID, kind and memory that a driver reports. All other
    /// readings are absent.
    pub(crate) fn new_unnamed(pid: u32, kind: ProcessKind, memory_bytes: Reading<u64>) -> Self {
        let (program, mig, mps) = (None, None, false);
        absent!(&Absence::NoAnswer; Self { pid, kind, memory_bytes, program, mig, mps };
            sm_percent, memory_percent, encoder_percent, decoder_percent, name, command, user,
            host_memory_bytes, traced, started_ms, owner)
    }

    /// Returns the notebook that the process belongs to, if there is one.
    pub fn notebook(&self) -> Option<&Notebook> {
        self.owner.value()?.notebook.as_ref()
    }
}

/// Returns the default for readings that are missing from recordings of earlier versions.
fn not_read<T>() -> Reading<T> {
    Reading::Absent(Absence::NotReadYet)
}

/// The kind of GPU use of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessKind {
    /// The process has a CUDA or OpenCL context (nvidia-smi's `C`).
    Compute,
    /// The process uses graphics (nvidia-smi's `G`).
    Graphics,
    /// The process uses both compute and graphics (nvidia-smi's `C+G`).
    ComputeAndGraphics,
}

/// The owners of a process in addition to its user. An owner is omitted if the process has none of
/// this kind, or if the reader may not see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[ts(optional_fields)]
pub struct Owner {
    /// The notebook whose kernel is the process or one of its ancestors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notebook: Option<Notebook>,
    /// The Slurm job that the process belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slurm: Option<BatchJob>,
    /// The PBS or TORQUE job that the process belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pbs: Option<BatchJob>,
    /// The LSF job that the process belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lsf: Option<BatchJob>,
    /// The Kubernetes pod that the process belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Pod>,
    /// The container in which the process runs, including a container within a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// The systemd service or scope that started the process, such as `ollama.service`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The rank of the process in a distributed job. The launcher sets it in the environment:
    /// torchrun in `RANK`, Open MPI in `OMPI_COMM_WORLD_RANK`, MPICH in `PMI_RANK`, Slurm in
    /// `SLURM_PROCID`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The ancestors, starting with the parent, without PID 1 of the PID namespace.
    pub parents: Vec<Ancestor>,
    /// Whether only the cgroup has been read so far. The notebook, the ancestors, and a batch job
    /// that is recorded only in the environment are still missing. The value stays `true` if the
    /// process's files cannot be read. Omitted if everything has been read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(optional, as = "Option<bool>")]
    pub partial: bool,
}

impl Owner {
    /// Returns the smallest group that the process belongs to: its notebook, batch job, pod,
    /// container or service. Returns `None` for a process without a group, such as a program in a
    /// login session.
    pub fn job(&self) -> Option<Job> {
        if let Some(notebook) = &self.notebook {
            return Some(Job {
                path: Some(notebook.path.clone()),
                ..Job::new(JobKind::Notebook, &notebook.kernel_id)
            });
        }
        let batch = self.batch_job().map(|(kind, job)| Job {
            private: job.private,
            ..Job::new(kind, &job.job_id)
        });
        let pod = || {
            let pod = self.pod.as_ref()?;
            Some(Job {
                name: pod.name.as_ref().map(|_| pod.label()),
                ..Job::new(JobKind::Pod, &pod.uid)
            })
        };
        let container = || {
            let container = self.container.as_ref()?;
            Some(Job::new(JobKind::Container, &container.id))
        };
        let service = || Some(Job::new(JobKind::Service, self.service()?));
        batch.or_else(pod).or_else(container).or_else(service)
    }

    /// Returns the process's batch job and its kind.
    pub fn batch_job(&self) -> Option<(JobKind, &BatchJob)> {
        let jobs = [
            (JobKind::Slurm, &self.slurm),
            (JobKind::Pbs, &self.pbs),
            (JobKind::Lsf, &self.lsf),
        ];
        jobs.into_iter()
            .find_map(|(kind, job)| Some((kind, job.as_ref()?)))
    }

    /// Returns mutable references to the job fields of all batch systems.
    pub fn batch_jobs_mut(&mut self) -> [&mut Option<BatchJob>; 3] {
        [&mut self.slurm, &mut self.pbs, &mut self.lsf]
    }

    /// Returns the systemd service that started the process. User managers (`user@….service`) and
    /// scopes are ignored, because they contain everything that a user or session starts.
    pub fn service(&self) -> Option<&str> {
        self.unit
            .as_deref()
            .filter(|unit| unit.ends_with(".service") && !unit.starts_with("user@"))
    }
}

/// A group of processes: a notebook, batch job, pod, container or service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// The kind of the job.
    pub kind: JobKind,
    /// The ID of the Jupyter kernel, of the Slurm, PBS or LSF job, or of the container; the UID of
    /// the pod; or the name of the service.
    pub id: String,
    /// The path of the notebook. Omitted for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Reading<String>>,
    /// The namespace and name of the pod, such as `research/train-0`, if they are available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the ID comes only from the processes' environment, which only their user and root
    /// can read. Omitted if `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

impl Job {
    /// Creates a job with only a kind and an ID.
    pub fn new(kind: JobKind, id: impl Into<String>) -> Self {
        Self {
            kind,
            id: id.into(),
            path: None,
            name: None,
            private: false,
        }
    }

    /// Returns `true` if more is known about the job than its kind and ID.
    pub fn has_details(&self) -> bool {
        self.path.is_some() || self.name.is_some() || self.private
    }
}

/// The kinds of jobs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// A Jupyter kernel and the processes that it started.
    Notebook,
    /// A job run by Slurm.
    Slurm,
    /// A job run by PBS or TORQUE.
    Pbs,
    /// A job run by LSF.
    Lsf,
    /// A pod run by Kubernetes.
    Pod,
    /// A container outside of pods.
    Container,
    /// A service run by systemd.
    Service,
}

impl JobKind {
    const WORDS: [(Self, &'static str); 7] = [
        (Self::Notebook, "notebook"),
        (Self::Slurm, "slurm"),
        (Self::Pbs, "pbs"),
        (Self::Lsf, "lsf"),
        (Self::Pod, "pod"),
        (Self::Container, "container"),
        (Self::Service, "service"),
    ];

    /// Returns the kind's name in JSON.
    pub fn json_name(self) -> &'static str {
        Self::WORDS[self as usize].1
    }

    /// Returns the kind with this name in JSON.
    pub fn from_json_name(word: &str) -> Option<Self> {
        Self::WORDS
            .into_iter()
            .find(|(_, its)| *its == word)
            .map(|(kind, _)| kind)
    }

    /// Returns the name of the batch system that runs jobs of this kind; `None` for other kinds.
    pub fn batch_system(self) -> Option<&'static str> {
        match self {
            Self::Slurm => Some("Slurm"),
            Self::Pbs => Some("PBS"),
            Self::Lsf => Some("LSF"),
            Self::Notebook | Self::Pod | Self::Container | Self::Service => None,
        }
    }
}

/// A Jupyter kernel and its notebook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Notebook {
    /// The ID that Jupyter assigned to the kernel.
    pub kernel_id: String,
    /// The name of the kernel specification, such as `python3` or `julia-1.11`, if the connection
    /// file contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub kernel_name: Option<String>,
    /// The path of the notebook from the connection file, relative to Jupyter's root directory or
    /// absolute, as Jupyter wrote it. Only the user of the process and the user of the server can
    /// see the path. `no_permission` if the file cannot be opened or is not a regular file;
    /// `unknown` if there is no file, or if the file contains no path because Jupyter did not start
    /// the kernel.
    #[serde(default = "unknown_path")]
    pub path: Reading<String>,
    /// The PID of the kernel, which differs from the process's own PID if the kernel started the
    /// process.
    pub kernel_pid: u32,
}

/// Returns the default for paths that are missing from recordings of earlier versions.
fn unknown_path() -> Reading<String> {
    Reading::Absent(Absence::Unknown)
}

/// A job of a batch system, or one of the job's steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct BatchJob {
    /// The ID as the batch system writes it: `88123` for Slurm, `88123.server` or `88123[7].server`
    /// for PBS, `88123` or `88123[7]` for LSF. If the ID of a Slurm job is unknown, this is the
    /// job's SLUID, which Slurm 26.05 uses in cgroup names.
    pub job_id: String,
    /// The step of a Slurm job, such as `0`, `batch` or `interactive`, if it is available.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub step: Option<String>,
    /// Whether the ID comes only from the process's environment, which only its user and root can
    /// read. Other users do not receive the job. Omitted if `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

impl BatchJob {
    /// Creates a job without a step. Everybody may see its ID.
    pub(crate) fn new(job_id: String) -> Self {
        Self {
            job_id,
            step: None,
            private: false,
        }
    }
}

/// A pod run by Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Pod {
    /// The UID of the pod, in Kubernetes' format.
    pub uid: String,
    /// The namespace of the pod, if the kubelet reports exactly one pod for this GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub namespace: Option<String>,
    /// The name of the pod, if its namespace is available.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub name: Option<String>,
}

impl Pod {
    /// Returns the namespace and name, such as `research/train-0`, or the UID if the name is
    /// unknown.
    pub fn label(&self) -> String {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
            _ => self.uid.clone(),
        }
    }
}

/// A container in which processes run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Container {
    /// The runtime of the container.
    pub runtime: ContainerRuntime,
    /// The full ID of 64 hexadecimal digits.
    pub id: String,
    /// The name of the container in its pod, if the kubelet reports exactly one container for this
    /// GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub name: Option<String>,
}

impl Container {
    /// Returns the name, or the first twelve digits of the ID, as in `docker ps`.
    pub fn label(&self) -> &str {
        self.name
            .as_deref()
            .unwrap_or_else(|| self.id.get(..12).unwrap_or(&self.id))
    }
}

/// The container runtimes that can be recognized from cgroup names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContainerRuntime {
    /// A container of Docker Engine.
    Docker,
    /// A container of Podman.
    Podman,
    /// A container of containerd under Kubernetes.
    Containerd,
    /// A container of CRI-O under Kubernetes.
    Crio,
    /// A runtime that the cgroup does not name.
    Unknown,
}

/// An ancestor of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Ancestor {
    /// The PID of the ancestor.
    pub pid: u32,
    /// The program's name, from `/proc/PID/comm`.
    pub name: String,
}

/// The job or pod to which a scheduler has allocated a GPU or MIG device, whether or not its
/// processes use the device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, TS, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Allocation {
    /// A job of Slurm, from the file that the prolog wrote into `/run/gpustat`.
    Slurm {
        /// The ID of the job, from `SLURM_JOB_ID`.
        job_id: String,
        /// The login name of the job's user, or the numeric user ID if there is no name. Omitted if
        /// the file does not contain the user.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        user: Option<String>,
    },
    /// A container of a Kubernetes pod, as reported by the kubelet.
    Kubernetes {
        /// The namespace of the pod.
        namespace: String,
        /// The name of the pod.
        pod: String,
        /// The name of the container in the pod.
        container: String,
    },
}

tagged!(Allocation by "by" {
    "slurm" => Slurm { job_id, user },
    "kubernetes" => Kubernetes { namespace, pod, container },
});

impl Allocation {
    /// Returns the job or pod. A pod is identified by its name, because the kubelet reports no
    /// UIDs.
    pub fn job(&self) -> Job {
        match self {
            Self::Slurm { job_id, .. } => Job::new(JobKind::Slurm, job_id),
            Self::Kubernetes { namespace, pod, .. } => {
                let name = format!("{namespace}/{pod}");
                Job {
                    name: Some(name.clone()),
                    ..Job::new(JobKind::Pod, name)
                }
            }
        }
    }

    /// Returns a label such as `slurm 88123` or `pod research/train-0`.
    pub fn label(&self) -> String {
        match self {
            Self::Slurm { job_id, .. } => format!("slurm {job_id}"),
            Self::Kubernetes { namespace, pod, .. } => format!("pod {namespace}/{pod}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::examples;

    #[test]
    fn process_of_old_recording_lacks_newer_fields() {
        let mut recorded = serde_json::to_value(examples::make_process(7, 1)).unwrap();
        for added in ["host_memory_bytes", "traced"] {
            recorded.as_object_mut().unwrap().remove(added).unwrap();
        }
        let process: Process = serde_json::from_value(recorded).unwrap();
        assert_eq!(
            process.host_memory_bytes,
            Reading::Absent(Absence::NotReadYet)
        );
        assert_eq!(process.traced, Reading::Absent(Absence::NotReadYet));
    }
}
