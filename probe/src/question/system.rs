//! What can be asked about the machine.

use serde::{Deserialize, Serialize};

/// A question about the machine. What is not said to be text is numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemQuestion {
    /// Text: `nvmlSystemGetDriverVersion`.
    DriverVersion,
    /// Text: `nvmlSystemGetNVMLVersion`.
    NvmlVersion,
    /// 1000 * major + 10 * minor: `nvmlSystemGetCudaDriverVersion_v2`.
    CudaVersion,
    /// `nvmlDeviceGetCount_v2`.
    DeviceCount,
    /// `nvmlGetExcludedDeviceCount`.
    ExcludedDeviceCount,
    /// Text, `bus id, UUID` of an excluded device: `nvmlGetExcludedDeviceInfoByIndex`.
    ExcludedDevice(u32),
    /// Text: `nvmlSystemGetProcessName`.
    ProcessName(u32),
    /// `nvmlGetVgpuDriverCapabilities` with this `nvmlVgpuDriverCapability_t`.
    VgpuDriverCapability(u32),
    /// `nvmlSystemGetNvlinkBwMode`.
    NvlinkBandwidthMode,
    /// The indices of the GPUs near this CPU: `nvmlSystemGetTopologyGpuSet`.
    GpusNearCpu(u32),
}
