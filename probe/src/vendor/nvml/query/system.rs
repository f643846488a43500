//! What can be asked about the machine.

use serde::{Deserialize, Serialize};

/// A query about the machine. What is not said to be text is numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemQuery {
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
    /// Boxes of boards, the last of which was made for Fermi: `nvmlUnitGetCount`.
    UnitCount,
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
    /// Environment, feature, developers' tools: `nvmlSystemGetConfComputeState`.
    ConfComputeState,
    /// Of the CPU, of the GPUs: `nvmlSystemGetConfComputeCapabilities`.
    ConfComputeCapabilities,
    /// Whether the GPUs accept work: `nvmlSystemGetConfComputeGpusReadyState`.
    ConfComputeReady,
    /// An attacker's advantage: `nvmlSystemGetConfComputeKeyRotationThresholdInfo`.
    ConfComputeKeyRotation,
    /// Environment, feature, developers' tools, mode of several GPUs: `nvmlSystemGetConfComputeSettings`.
    ConfComputeSettings,
    /// Whether the device at this domain, bus and device is being drained: `nvmlDeviceQueryDrainState`.
    DrainState(u32, u32, u32),
}
