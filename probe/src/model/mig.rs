//! Multi-Instance GPU: parts of a GPU that work as GPUs of their own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Activity, Allocation, MemorySample, Reading};

/// Which part of a GPU.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
pub struct MigInstance {
    /// `nvmlDeviceGetGpuInstanceId`.
    pub gpu_instance: u32,
    /// `nvmlDeviceGetComputeInstanceId`, within the GPU instance.
    pub compute_instance: u32,
}

/// A MIG device: what never changes while it exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MigDevice {
    /// NVML's index among the MIG devices of its GPU.
    pub index: u32,
    /// As `MIG-...`; what `CUDA_VISIBLE_DEVICES` takes.
    pub uuid: String,
    /// Which part of the GPU it is.
    #[serde(flatten)]
    #[ts(flatten)]
    pub instance: MigInstance,
    /// Its profile as nvidia-smi writes it, `1g.18gb`, from its name (`nvmlDeviceGetName`).
    pub profile: Reading<String>,
    /// Multiprocessors it has (`nvmlDeviceGetAttributes_v2`).
    pub multiprocessors: Reading<u32>,
    /// Copy engines it has.
    pub copy_engines: Reading<u32>,
    /// Video decoders it has.
    pub decoders: Reading<u32>,
    /// Video encoders it has.
    pub encoders: Reading<u32>,
}

/// A MIG device at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MigSample {
    /// Its UUID.
    pub uuid: String,
    /// Which part of the GPU it is.
    #[serde(flatten)]
    #[ts(flatten)]
    pub instance: MigInstance,
    /// Its memory (`nvmlDeviceGetMemoryInfo_v2` of the MIG device).
    pub memory: MemorySample,
    /// What its parts do (`nvmlGpmMigSampleGet`), in percent of this instance. MIG devices have no
    /// other utilization.
    pub activity: Reading<Activity>,
    /// As [`GpuSample::allocated_to`](super::GpuSample::allocated_to).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<Allocation>>")]
    pub allocated_to: Vec<Allocation>,
}
