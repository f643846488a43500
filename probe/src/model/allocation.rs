//! GPUs that a scheduler has allocated to jobs and pods.

use schemars::JsonSchema;
use serde::Serialize;
use ts_rs::TS;

use super::{Job, JobKind};
use crate::tagged;

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

    /// Returns a label such as `slurm 88123` or `pod research/train-0`.
    pub fn label(&self) -> String {
        match self {
            Self::Slurm { job_id, .. } => format!("slurm {job_id}"),
            Self::Kubernetes { namespace, pod, .. } => format!("pod {namespace}/{pod}"),
        }
    }
}
