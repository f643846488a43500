//! Multi-Instance GPU (MIG): parts of a GPU that programs use as separate GPUs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Activity, Allocation, MemorySample, Reading};

/// The part of a GPU that a MIG device uses.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
pub struct MigInstance {
    /// The ID of the GPU instance (`nvmlDeviceGetGpuInstanceId`).
    pub gpu_instance: u32,
    /// The ID of the compute instance within the GPU instance (`nvmlDeviceGetComputeInstanceId`).
    pub compute_instance: u32,
}

/// The constant properties of a MIG device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MigDevice {
    /// NVML's index among the MIG devices of the GPU.
    pub index: u32,
    /// The UUID, such as `MIG-...`, for use in `CUDA_VISIBLE_DEVICES`.
    pub uuid: String,
    /// The part of the GPU that the device uses.
    #[serde(flatten)]
    #[ts(flatten)]
    pub instance: MigInstance,
    /// The profile in nvidia-smi's format, such as `1g.18gb`, from the name of the device
    /// (`nvmlDeviceGetName`).
    pub profile: Reading<String>,
    /// Number of multiprocessors (`nvmlDeviceGetAttributes_v2`).
    pub multiprocessors: Reading<u32>,
    /// Number of copy engines (`nvmlDeviceGetAttributes_v2`).
    pub copy_engines: Reading<u32>,
    /// Number of video decoders (`nvmlDeviceGetAttributes_v2`).
    pub decoders: Reading<u32>,
    /// Number of video encoders (`nvmlDeviceGetAttributes_v2`).
    pub encoders: Reading<u32>,
}

/// The readings of a MIG device at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MigSample {
    /// The UUID of the device.
    pub uuid: String,
    /// The part of the GPU that the device uses.
    #[serde(flatten)]
    #[ts(flatten)]
    pub instance: MigInstance,
    /// Device memory of the MIG device (`nvmlDeviceGetMemoryInfo_v2`).
    pub memory: MemorySample,
    /// Activity of the units, as a share of the MIG device's capacity (`nvmlGpmMigSampleGet`). MIG
    /// devices have no other utilization reading.
    pub activity: Reading<Activity>,
    /// The jobs or pods to which a scheduler has allocated the device, whether or not their
    /// processes use the device. Omitted if no allocation is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<Allocation>>")]
    pub allocated_to: Vec<Allocation>,
}
