//! What never changes about a board.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Absence, Reading};

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
    /// The highest generation of PCIe that board and slot can do (`nvmlDeviceGetMaxPcieLinkGeneration`).
    pub pcie_max_generation: Reading<u32>,
    /// The most lanes that board and slot have (`nvmlDeviceGetMaxPcieLinkWidth`).
    pub pcie_max_width: Reading<u32>,
    /// Highest clocks (`nvmlDeviceGetMaxClockInfo`).
    pub max_clocks: MaxClocks,
    /// Power limits.
    pub power_limits: PowerLimits,
    /// Temperatures at which something happens (`nvmlDeviceGetTemperatureThreshold`).
    pub thresholds: Thresholds,
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
        fn absent<T>(reason: &Absence) -> Reading<T> {
            Reading::Absent(reason.clone())
        }
        Self {
            serial: absent(reason),
            part_number: absent(reason),
            vbios_version: absent(reason),
            architecture: absent(reason),
            compute_capability: absent(reason),
            cores: absent(reason),
            memory_bus_bits: absent(reason),
            minor_number: absent(reason),
            numa_node: absent(reason),
            pcie_max_generation: absent(reason),
            pcie_max_width: absent(reason),
            max_clocks: MaxClocks {
                graphics_mhz: absent(reason),
                sm_mhz: absent(reason),
                memory_mhz: absent(reason),
                video_mhz: absent(reason),
            },
            power_limits: PowerLimits {
                default_watts: absent(reason),
                min_watts: absent(reason),
                max_watts: absent(reason),
            },
            thresholds: Thresholds {
                shutdown_celsius: absent(reason),
                slowdown_celsius: absent(reason),
                memory_max_celsius: absent(reason),
                gpu_max_celsius: absent(reason),
            },
        }
    }
}
