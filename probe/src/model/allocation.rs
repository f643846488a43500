//! To whom a scheduler has given a GPU.

use schemars::JsonSchema;
use serde::Serialize;
use ts_rs::TS;

use super::{Job, JobKind};
use crate::tagged;

/// To whom a scheduler has given a GPU or MIG device, whether or not a process of theirs is on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, TS, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Allocation {
    /// By Slurm, as its prolog wrote it into `/run/gpustat`.
    Slurm {
        /// `SLURM_JOB_ID`.
        job_id: String,
        /// The login name of the job's user, or the number where there is no name; left out of JSON
        /// where the file does not tell it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        user: Option<String>,
    },
    /// By Kubernetes, as the kubelet tells a server.
    Kubernetes {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        pod: String,
        /// The container's name in the pod.
        container: String,
    },
}

tagged!(Allocation by "by" {
    "slurm" => Slurm { job_id, user },
    "kubernetes" => Kubernetes { namespace, pod, container },
});

impl Allocation {
    /// The job or pod that it is for. The kubelet tells no UIDs: a pod is known by its name.
    pub fn job(&self) -> Job {
        match self {
            Self::Slurm { job_id, .. } => Job {
                kind: JobKind::Slurm,
                id: job_id.clone(),
                path: None,
                name: None,
                private: false,
            },
            Self::Kubernetes { namespace, pod, .. } => {
                let name = format!("{namespace}/{pod}");
                Job {
                    kind: JobKind::Pod,
                    id: name.clone(),
                    path: None,
                    name: Some(name),
                    private: false,
                }
            }
        }
    }

    /// As it is shown, `slurm 88123` or `pod research/train-0`.
    pub fn label(&self) -> String {
        match self {
            Self::Slurm { job_id, .. } => format!("slurm {job_id}"),
            Self::Kubernetes { namespace, pod, .. } => format!("pod {namespace}/{pod}"),
        }
    }
}
