//! The constant properties of a board.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Absence, Reading, reading::absent};

/// The constant properties of a board, read once when the GPU is opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Board {
    /// The serial number of the board (`nvmlDeviceGetSerial`).
    pub serial: Reading<String>,
    /// The part number of the board (`nvmlDeviceGetBoardPartNumber`).
    pub part_number: Reading<String>,
    /// The version of the VBIOS (`nvmlDeviceGetVbiosVersion`).
    pub vbios_version: Reading<String>,
    /// NVIDIA's name of the architecture, such as `Hopper` (`nvmlDeviceGetArchitecture`).
    pub architecture: Reading<String>,
    /// The CUDA compute capability, such as `9.0` (`nvmlDeviceGetCudaComputeCapability`).
    pub compute_capability: Reading<String>,
    /// Number of CUDA cores (`nvmlDeviceGetNumGpuCores`).
    pub cores: Reading<u32>,
    /// Width of the bus to device memory, in bits (`nvmlDeviceGetMemoryBusWidth`).
    pub memory_bus_bits: Reading<u32>,
    /// The number in `/dev/nvidiaN` (`nvmlDeviceGetMinorNumber`).
    pub minor_number: Reading<u32>,
    /// The NUMA node nearest to the GPU (`nvmlDeviceGetNumaNodeId`, otherwise sysfs).
    pub numa_node: Reading<u32>,
    /// The highest PCIe generation that both board and slot support
    /// (`nvmlDeviceGetMaxPcieLinkGeneration`).
    pub pcie_max_generation: Reading<u32>,
    /// The maximum number of PCIe lanes that both board and slot support
    /// (`nvmlDeviceGetMaxPcieLinkWidth`).
    pub pcie_max_width: Reading<u32>,
    /// The maximum clocks of the GPU (`nvmlDeviceGetMaxClockInfo`).
    pub max_clocks: MaxClocks,
    /// The default, minimum and maximum power limits.
    pub power_limits: PowerLimits,
    /// Temperatures at which the GPU protects itself (`nvmlDeviceGetTemperatureThreshold`).
    pub thresholds: Thresholds,
    /// The source of the energy readings, on GPUs of AMD and Intel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub energy_source: Option<EnergySource>,
}

/// The source of a GPU's energy readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnergySource {
    /// The energy counter of the hardware.
    Counter,
    /// The power readings, integrated by gpumon since it started to read the GPU.
    Power,
}

/// The maximum clocks of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MaxClocks {
    /// Maximum clock of the graphics engine.
    pub graphics_mhz: Reading<u32>,
    /// Maximum clock of the streaming multiprocessors.
    pub sm_mhz: Reading<u32>,
    /// Maximum clock of device memory.
    pub memory_mhz: Reading<u32>,
    /// Maximum clock of the video encoder and decoder.
    pub video_mhz: Reading<u32>,
}

/// The default power limit, and the range in which the limit can be set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct PowerLimits {
    /// The power limit after a reset of the driver (`nvmlDeviceGetPowerManagementDefaultLimit`).
    pub default_watts: Reading<f64>,
    /// The lowest power limit that can be set (`nvmlDeviceGetPowerManagementLimitConstraints`).
    pub min_watts: Reading<f64>,
    /// The highest power limit that can be set (`nvmlDeviceGetPowerManagementLimitConstraints`).
    pub max_watts: Reading<f64>,
}

/// Temperatures at which the GPU protects itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Thresholds {
    /// The temperature at which the GPU switches itself off.
    pub shutdown_celsius: Reading<f64>,
    /// The temperature at which the hardware reduces the clocks.
    pub slowdown_celsius: Reading<f64>,
    /// The memory temperature at which the software reduces the clocks.
    pub memory_max_celsius: Reading<f64>,
    /// The GPU temperature at which the software reduces the clocks.
    pub gpu_max_celsius: Reading<f64>,
}

impl Board {
    /// Returns a board whose readings are all absent for the given reason.
    pub fn new_absent(reason: &Absence) -> Self {
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
