//! What never changes about a board.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Absence, Reading, reading::absent};

/// What never changes about a board; read once, when it is opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Board {
    /// `nvmlDeviceGetSerial`.
    pub serial: Reading<String>,
    /// `nvmlDeviceGetBoardPartNumber`.
    pub part_number: Reading<String>,
    /// `nvmlDeviceGetVbiosVersion`.
    pub vbios_version: Reading<String>,
    /// `nvmlDeviceGetArchitecture`, in NVIDIA's words, as `Hopper`.
    pub architecture: Reading<String>,
    /// `nvmlDeviceGetCudaComputeCapability`, as `9.0`.
    pub compute_capability: Reading<String>,
    /// CUDA cores (`nvmlDeviceGetNumGpuCores`).
    pub cores: Reading<u32>,
    /// Width of the bus to device memory (`nvmlDeviceGetMemoryBusWidth`).
    pub memory_bus_bits: Reading<u32>,
    /// The number in `/dev/nvidiaN` (`nvmlDeviceGetMinorNumber`).
    pub minor_number: Reading<u32>,
    /// The NUMA node nearest to it (`nvmlDeviceGetNumaNodeId`, else sysfs).
    pub numa_node: Reading<u32>,
    /// The highest generation of PCIe that board and slot can do
    /// (`nvmlDeviceGetMaxPcieLinkGeneration`).
    pub pcie_max_generation: Reading<u32>,
    /// The most lanes that board and slot have (`nvmlDeviceGetMaxPcieLinkWidth`).
    pub pcie_max_width: Reading<u32>,
    /// Highest clocks (`nvmlDeviceGetMaxClockInfo`).
    pub max_clocks: MaxClocks,
    /// Power limits.
    pub power_limits: PowerLimits,
    /// Temperatures at which something happens (`nvmlDeviceGetTemperatureThreshold`).
    pub thresholds: Thresholds,
    /// The source of the energy, on GPUs of AMD and Intel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub energy_source: Option<EnergySource>,
}

/// The source of a GPU's energy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnergySource {
    /// The hardware's counter.
    Counter,
    /// The power that gpumon has read, added up since it started to read the GPU.
    Power,
}

/// Highest clocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MaxClocks {
    /// Graphics engine.
    pub graphics_mhz: Reading<u32>,
    /// Streaming multiprocessors.
    pub sm_mhz: Reading<u32>,
    /// Device memory.
    pub memory_mhz: Reading<u32>,
    /// Video encoder and decoder.
    pub video_mhz: Reading<u32>,
}

/// Between what the power limit can be set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct PowerLimits {
    /// After a reset of the driver (`nvmlDeviceGetPowerManagementDefaultLimit`).
    pub default_watts: Reading<f64>,
    /// The lowest (`nvmlDeviceGetPowerManagementLimitConstraints`).
    pub min_watts: Reading<f64>,
    /// The highest.
    pub max_watts: Reading<f64>,
}

/// Temperatures at which something happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Thresholds {
    /// The GPU switches itself off.
    pub shutdown_celsius: Reading<f64>,
    /// The hardware lowers the clocks.
    pub slowdown_celsius: Reading<f64>,
    /// The software lowers the clocks for the memory's sake.
    pub memory_max_celsius: Reading<f64>,
    /// The software lowers the clocks for the chip's sake.
    pub gpu_max_celsius: Reading<f64>,
}

impl Board {
    /// A board of which nothing is known, for one reason.
    pub fn absent(reason: &Absence) -> Self {
        let energy_source = None;
        absent!(reason; Self { energy_source }; serial, part_number, vbios_version, architecture,
            compute_capability, cores, memory_bus_bits, minor_number, numa_node,
            pcie_max_generation, pcie_max_width, max_clocks, power_limits, thresholds)
    }
}

absent! {
    MaxClocks { graphics_mhz, sm_mhz, memory_mhz, video_mhz }
    PowerLimits { default_watts, min_watts, max_watts }
    Thresholds { shutdown_celsius, slowdown_celsius, memory_max_celsius, gpu_max_celsius }
}
