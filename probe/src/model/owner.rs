//! Whose process it is, beyond the login name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Absence, Reading};

/// What a process belongs to. Each part is `None`, and left out of JSON, where the process is no
/// such thing, or where this user may not look.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Owner {
    /// The notebook whose kernel it is, or whose kernel started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub notebook: Option<Notebook>,
    /// The Slurm job it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub slurm: Option<BatchJob>,
    /// The PBS or TORQUE job that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub pbs: Option<BatchJob>,
    /// The LSF job that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub lsf: Option<BatchJob>,
    /// The Kubernetes pod it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub pod: Option<Pod>,
    /// The container it runs in, also within a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub container: Option<Container>,
    /// The systemd service or scope it was started by, as `ollama.service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub unit: Option<String>,
    /// Its ancestors, from the parent upwards; the first process of the PID namespace is left out.
    pub parents: Vec<Ancestor>,
    /// Whether only its cgroup has been read so far, but not the notebook, the ancestors or a batch
    /// job that only the environment names. It stays `true` for a process whose files do not
    /// answer. Left out of JSON if everything has been read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(optional, as = "Option<bool>")]
    pub partial: bool,
}

impl Owner {
    /// The smallest of these that is more than a process: its notebook, batch job, pod, container
    /// or service; `None` where it is of none, as a program of a login session.
    pub fn job(&self) -> Option<Job> {
        let of = |kind, id: &str| Job {
            kind,
            id: id.to_owned(),
            path: None,
            name: None,
            private: false,
        };
        if let Some(notebook) = &self.notebook {
            let path = Some(notebook.path.clone());
            return Some(Job {
                path,
                ..of(JobKind::Notebook, &notebook.kernel_id)
            });
        }
        let batch = self.batch_job().map(|(kind, job)| Job {
            private: job.private,
            ..of(kind, &job.job_id)
        });
        let pod = || {
            let pod = self.pod.as_ref()?;
            Some(Job {
                name: pod.name.as_ref().map(|_| pod.label()),
                ..of(JobKind::Pod, &pod.uid)
            })
        };
        let container = || {
            self.container
                .as_ref()
                .map(|container| of(JobKind::Container, &container.id))
        };
        let service = || self.service().map(|unit| of(JobKind::Service, unit));
        batch.or_else(pod).or_else(container).or_else(service)
    }

    /// Returns the batch job that it runs in, with its kind.
    pub fn batch_job(&self) -> Option<(JobKind, &BatchJob)> {
        let jobs = [
            (JobKind::Slurm, &self.slurm),
            (JobKind::Pbs, &self.pbs),
            (JobKind::Lsf, &self.lsf),
        ];
        jobs.into_iter()
            .find_map(|(kind, job)| Some((kind, job.as_ref()?)))
    }

    /// Returns the fields that [`Self::batch_job`] reads.
    pub fn batch_jobs_mut(&mut self) -> [&mut Option<BatchJob>; 3] {
        [&mut self.slurm, &mut self.pbs, &mut self.lsf]
    }

    /// The systemd service that started it. Everything that a user starts is in the service of
    /// their own manager, and scopes are of sessions: both say nothing.
    pub fn service(&self) -> Option<&str> {
        self.unit
            .as_deref()
            .filter(|unit| unit.ends_with(".service") && !unit.starts_with("user@"))
    }
}

/// What processes are of together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// What it is.
    pub kind: JobKind,
    /// The ID of the Jupyter kernel, of the Slurm, PBS or LSF job, or of the container; the UID of
    /// the pod; or the name of the service.
    pub id: String,
    /// Of a notebook, as [`Notebook::path`]; left out of JSON where it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Reading<String>>,
    /// Of a pod, its namespace and name, as `research/train-0`, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether only the environment of its processes has the ID, which only their user and root can
    /// read. Left out of JSON where it is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

impl Job {
    /// Returns `true` if it is more than a kind and an ID.
    pub fn has_details(&self) -> bool {
        self.path.is_some() || self.name.is_some() || self.private
    }
}

/// Kinds of what processes are of together.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// A Jupyter kernel and what it started.
    Notebook,
    /// A Slurm job.
    Slurm,
    /// A PBS job.
    Pbs,
    /// An LSF job.
    Lsf,
    /// A Kubernetes pod.
    Pod,
    /// A container.
    Container,
    /// A systemd service.
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

    /// As it is in JSON.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize].1
    }

    /// The one with this word.
    pub fn from_word(word: &str) -> Option<Self> {
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

/// A Jupyter kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Notebook {
    /// Jupyter's id of the kernel.
    pub kernel_id: String,
    /// The name of its kernel specification, as `python3` or `julia-1.11`, where the connection
    /// file tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub kernel_name: Option<String>,
    /// The notebook's path, relative to Jupyter's root or absolute as Jupyter wrote it, from the
    /// connection file. Hidden from all users except the process's and the server's;
    /// `no_permission` where that file is refused or is no regular file; `unknown` where there is
    /// none, or it does not tell, as of a kernel that was started by other means.
    #[serde(default = "unknown")]
    pub path: Reading<String>,
    /// The PID of the kernel itself; another than the process's own where the process is a child of
    /// the kernel.
    pub kernel_pid: u32,
}

/// Recordings of earlier versions leave out what they do not know.
fn unknown() -> Reading<String> {
    Reading::Absent(Absence::Unknown)
}

/// A job of a batch system, or a step of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct BatchJob {
    /// The ID as the batch system writes it: `88123` for Slurm, `88123.server` or `88123[7].server`
    /// for PBS, `88123` or `88123[7]` for LSF. If the ID of a Slurm job is unknown, this is its
    /// SLUID, by which Slurm 26.05 names cgroups.
    pub job_id: String,
    /// The step of a Slurm job, such as `0`, `batch` or `interactive`, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub step: Option<String>,
    /// Whether only the environment of the process has the ID, which only its user and root can
    /// read. Other users do not get such a job. Left out of JSON where it is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(optional, as = "Option<bool>")]
    pub private: bool,
}

/// A Kubernetes pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Pod {
    /// Its UID, as Kubernetes writes it.
    pub uid: String,
    /// Its namespace, where the kubelet has told a server which pod holds this GPU, and it is one
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub namespace: Option<String>,
    /// Its name, where its namespace is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub name: Option<String>,
}

impl Pod {
    /// Its name with its namespace, as `research/train-0`, or its UID where they are not known.
    pub fn label(&self) -> String {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
            _ => self.uid.clone(),
        }
    }
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Container {
    /// What runs it.
    pub runtime: ContainerRuntime,
    /// Its whole id of 64 hexadecimal digits.
    pub id: String,
    /// Its name in its pod, where the kubelet has told it and one container alone holds this GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub name: Option<String>,
}

impl Container {
    /// Its name, or the first digits of its id, as `docker ps` shows them.
    pub fn label(&self) -> &str {
        self.name
            .as_deref()
            .unwrap_or_else(|| self.id.get(..12).unwrap_or(&self.id))
    }
}

/// Container runtimes, as cgroup names tell them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContainerRuntime {
    /// Docker Engine.
    Docker,
    /// Podman.
    Podman,
    /// containerd under Kubernetes.
    Containerd,
    /// CRI-O under Kubernetes.
    Crio,
    /// One that the cgroup does not name.
    Unknown,
}

/// A process further up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Ancestor {
    /// Its PID.
    pub pid: u32,
    /// Its name, from `/proc/PID/comm`.
    pub name: String,
}
