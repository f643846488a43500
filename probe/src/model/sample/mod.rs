//! What was read at one moment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{
    Absence, Activity, Allocation, Condition, MigSample, Process, Reading, reading::absent,
};
use crate::tagged;

mod host;
mod throttle;

pub use host::{CpuSample, DiskSample, HostSample, NetworkSample, RamSample};
pub use throttle::{REASONS, ReasonInfo, ThrottleCause, ThrottleReason};

/// All GPUs and the host at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Sample {
    /// Counts up by one from 0 for each sample of a collector; a gap tells a reader how many it
    /// missed.
    pub seq: u64,
    /// When the sample was put together.
    pub at_ms: u64,
    /// The time between samples that the collector aims at.
    pub interval_ms: u32,
    /// Every GPU of the inventory, in its order, also those that are lost or hung.
    pub gpus: Vec<GpuSample>,
    /// The machine around them.
    pub host: HostSample,
}

/// One GPU at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuSample {
    /// NVML's index.
    pub index: u32,
    /// Its UUID, where the driver has told it.
    pub uuid: Option<String>,
    /// When these readings were taken. Older than the sample's own time where the GPU did not
    /// answer in time.
    pub at_ms: u64,
    /// Whether it answers.
    pub health: Health,
    /// Shares of the last sampling period (`nvmlDeviceGetUtilizationRates` and its relatives).
    pub utilization: Utilization,
    /// What the parts of the GPU do, where the hardware counts it; not supported before Hopper.
    pub activity: Reading<Activity>,
    /// Device memory (`nvmlDeviceGetMemoryInfo_v2`).
    pub memory: MemorySample,
    /// The kind of its memory; left out of JSON for device memory.
    #[serde(default, skip_serializing_if = "MemoryKind::is_device")]
    #[ts(optional, as = "Option<MemoryKind>")]
    pub memory_kind: MemoryKind,
    /// Electrical power.
    pub power: Power,
    /// Temperatures.
    pub temperature: Temperature,
    /// Clock frequencies.
    pub clocks: Clocks,
    /// P-state, 0 (fastest) to 15 (`nvmlDeviceGetPerformanceState`).
    pub performance_state: Reading<u8>,
    /// What holds the clocks down just now; empty when nothing does
    /// (`nvmlDeviceGetCurrentClocksEventReasons`).
    pub throttle_reasons: Reading<Vec<ThrottleReason>>,
    /// The PCIe link as it runs now.
    pub pcie: PcieLink,
    /// All NVLinks together.
    pub nvlink: NvLinks,
    /// The fastest fan's speed, in percent of its full speed (`nvmlDeviceGetFanSpeed`). A board
    /// that the chassis cools has none.
    pub fan_percent: Reading<f64>,
    /// Its MIG devices, in NVML's order; empty where MIG is off, not supported where there is no
    /// MIG.
    pub mig_devices: Reading<Vec<MigSample>>,
    /// The processes that hold the GPU, by PID. Where there are too many for one sample, those with
    /// the most memory.
    pub processes: Reading<Vec<Process>>,
    /// How many more hold it and are left out of `processes`, so that sums over the list are not
    /// those of the GPU; left out of JSON where it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(optional, as = "Option<u32>")]
    pub processes_omitted: u32,
    /// Memory in use that no listed process holds, in bytes. It is present only if the driver is
    /// read in a PID namespace other than the machine's first one, such as a container's, where
    /// processes of other namespaces are not visible. Left out of JSON otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub unlisted_memory_bytes: Option<u64>,
    /// To whom a scheduler has given it as a whole, also where none of their processes is on it;
    /// several, where it is shared. Left out of JSON where that is not known, or it is nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<Allocation>>")]
    pub allocated_to: Vec<Allocation>,
    /// What is the matter with it, the worst first. Filled in by `derive`; a condition leaves the
    /// list when it is over.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// Whether a GPU answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Health {
    /// It does.
    Ok,
    /// A laptop's GPU that the system has switched off to save power. Asking the driver would wake
    /// it, so it is not asked (sysfs `power/runtime_status`).
    Asleep {
        /// When that was first seen.
        since_ms: u64,
    },
    /// A call to the driver has not come back; the readings are the last known.
    Hung {
        /// When the call began.
        since_ms: u64,
    },
    /// The driver says that it has fallen off the bus.
    Lost {
        /// When that was first seen.
        since_ms: u64,
    },
    /// The driver refuses to open it, or fails every call about it.
    Failed {
        /// When that was first seen.
        since_ms: u64,
        /// The reason why its readings are absent.
        reason: Absence,
        /// The meaning of the driver's code, as a clause; empty if there is no explanation.
        #[serde(default)]
        meaning: String,
        /// What to do about it, as a clause; empty if there is no advice.
        #[serde(default)]
        advice: String,
    },
}

tagged!(Health by "state" {
    "ok" => Ok,
    "asleep" => Asleep { since_ms },
    "hung" => Hung { since_ms },
    "lost" => Lost { since_ms },
    "failed" => Failed { since_ms, reason, meaning: default, advice: default },
});

impl Health {
    /// Its state in a word, as it is in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Asleep { .. } => "asleep",
            Self::Hung { .. } => "hung",
            Self::Lost { .. } => "lost",
            Self::Failed { .. } => "failed",
        }
    }
}

/// Shares of the last sampling period, which the driver makes 1/6 s to 1 s long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Utilization {
    /// Time in which at least one kernel ran. It does not tell how much of the GPU that kernel
    /// used.
    pub gpu_percent: Reading<f64>,
    /// Time in which device memory was read or written.
    pub memory_percent: Reading<f64>,
    /// Video encoder (`nvmlDeviceGetEncoderUtilization`).
    pub encoder_percent: Reading<f64>,
    /// Video decoder (`nvmlDeviceGetDecoderUtilization`).
    pub decoder_percent: Reading<f64>,
    /// JPEG decoder (`nvmlDeviceGetJpgUtilization`).
    pub jpeg_percent: Reading<f64>,
    /// Optical flow accelerator (`nvmlDeviceGetOfaUtilization`).
    pub ofa_percent: Reading<f64>,
    /// Video and JPEG engines together (AMD: `average_mm_activity`, `vcn_busy_percent`).
    /// Left out of JSON if not supported.
    #[serde(
        default = "Reading::<f64>::not_supported",
        skip_serializing_if = "Reading::is_not_supported"
    )]
    #[ts(optional, as = "Option<Reading<f64>>")]
    pub media_percent: Reading<f64>,
}

impl Utilization {
    /// Returns the shares of the engines for video and images.
    pub fn engines(&self) -> [&Reading<f64>; 5] {
        [
            &self.encoder_percent,
            &self.decoder_percent,
            &self.jpeg_percent,
            &self.ofa_percent,
            &self.media_percent,
        ]
    }
}

/// Device memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MemorySample {
    /// All of it.
    pub total_bytes: Reading<u64>,
    /// Allocated by processes.
    pub used_bytes: Reading<u64>,
    /// Kept by the driver and firmware; absent where the driver counts it into `used_bytes` (before
    /// 510).
    pub reserved_bytes: Reading<u64>,
    /// Not allocated.
    pub free_bytes: Reading<u64>,
    /// The machine's memory that the GPU may map (AMD: `mem_info_gtt_total`).
    /// Left out of JSON if not supported.
    #[serde(
        default = "Reading::<u64>::not_supported",
        skip_serializing_if = "Reading::is_not_supported"
    )]
    #[ts(optional, as = "Option<Reading<u64>>")]
    pub gtt_total_bytes: Reading<u64>,
    /// The machine's memory that the GPU has mapped (AMD: `mem_info_gtt_used`).
    /// Left out of JSON if not supported.
    #[serde(
        default = "Reading::<u64>::not_supported",
        skip_serializing_if = "Reading::is_not_supported"
    )]
    #[ts(optional, as = "Option<Reading<u64>>")]
    pub gtt_used_bytes: Reading<u64>,
}

/// The kind of a GPU's memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Memory of the GPU's own.
    #[default]
    Device,
    /// The machine's memory, which the GPU shares with the CPU.
    Unified,
}

impl MemoryKind {
    /// Returns `true` for memory of the GPU's own. serde passes a reference.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_device(&self) -> bool {
        *self == Self::Device
    }
}

/// Electrical power.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Power {
    /// The board's draw, averaged over a second on most boards since Ampere
    /// (`nvmlDeviceGetPowerUsage`).
    pub draw_watts: Reading<f64>,
    /// The board's draw at the last of the driver's own measurements, about every 50 ms
    /// (`NVML_FI_DEV_POWER_INSTANT`).
    pub instant_watts: Reading<f64>,
    /// The board's draw, averaged over the last second also on boards whose `draw_watts` is not
    /// (`NVML_FI_DEV_POWER_AVERAGE`).
    pub average_watts: Reading<f64>,
    /// Counter: the energy since the driver was loaded, in steps of 100 ms
    /// (`nvmlDeviceGetTotalEnergyConsumption`).
    pub energy_joules_total: Reading<f64>,
    /// The limit in force (`nvmlDeviceGetEnforcedPowerLimit`).
    pub limit_watts: Reading<f64>,
}

/// Temperatures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Temperature {
    /// The chip (`nvmlDeviceGetTemperatureV`).
    pub gpu_celsius: Reading<f64>,
    /// The memory (`NVML_FI_DEV_MEMORY_TEMP`).
    pub memory_celsius: Reading<f64>,
    /// How much warmer the chip may get before its clocks are lowered
    /// (`nvmlDeviceGetMarginTemperature`).
    pub margin_celsius: Reading<f64>,
    /// The hottest place of the chip (AMD: the `junction` sensor).
    /// Left out of JSON if not supported.
    #[serde(
        default = "Reading::<f64>::not_supported",
        skip_serializing_if = "Reading::is_not_supported"
    )]
    #[ts(optional, as = "Option<Reading<f64>>")]
    pub junction_celsius: Reading<f64>,
}

/// Clock frequencies (`nvmlDeviceGetClockInfo`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Clocks {
    /// Graphics engine.
    pub graphics_mhz: Reading<u32>,
    /// Streaming multiprocessors.
    pub sm_mhz: Reading<u32>,
    /// Device memory.
    pub memory_mhz: Reading<u32>,
    /// Video encoder and decoder.
    pub video_mhz: Reading<u32>,
    /// The parts of the chip around the graphics engine (AMD: `socclk`).
    /// Left out of JSON if not supported.
    #[serde(
        default = "Reading::<u32>::not_supported",
        skip_serializing_if = "Reading::is_not_supported"
    )]
    #[ts(optional, as = "Option<Reading<u32>>")]
    pub soc_mhz: Reading<u32>,
    /// The fabric between the parts of the chip (AMD: `fclk`).
    /// Left out of JSON if not supported.
    #[serde(
        default = "Reading::<u32>::not_supported",
        skip_serializing_if = "Reading::is_not_supported"
    )]
    #[ts(optional, as = "Option<Reading<u32>>")]
    pub fabric_mhz: Reading<u32>,
}

/// The PCIe link as it runs now; it idles at a lower generation than it can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct PcieLink {
    /// `nvmlDeviceGetCurrPcieLinkGeneration`.
    pub generation: Reading<u32>,
    /// Lanes (`nvmlDeviceGetCurrPcieLinkWidth`).
    pub width: Reading<u32>,
    /// What crossed the link from the GPU since the sample before (GPM's `PCIE_TX_PER_SEC`): about
    /// 9 % more than was copied, since packets have headers. Without GPM,
    /// `nvmlDeviceGetPcieThroughput`, with its time.
    pub tx_bytes_per_second: Reading<f64>,
    /// The same in the other direction (GPM's `PCIE_RX_PER_SEC`).
    pub rx_bytes_per_second: Reading<f64>,
}

/// All NVLinks of a GPU together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct NvLinks {
    /// What crossed the links from the GPU since the sample before (GPM's
    /// `NVLINK_TOTAL_TX_PER_SEC`): about 2.5 % more than was copied. Without GPM, the growth of
    /// `NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX` over all links, with its time: exactly what was
    /// copied.
    pub tx_bytes_per_second: Reading<f64>,
    /// The same in the other direction (GPM's `NVLINK_TOTAL_RX_PER_SEC`).
    pub rx_bytes_per_second: Reading<f64>,
}

/// As serde asks for it.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

absent! {
    Utilization { gpu_percent, memory_percent, encoder_percent, decoder_percent, jpeg_percent,
        ofa_percent; media_percent }
    MemorySample { total_bytes, used_bytes, reserved_bytes, free_bytes;
        gtt_total_bytes, gtt_used_bytes }
    Power { draw_watts, instant_watts, average_watts, energy_joules_total, limit_watts }
    Temperature { gpu_celsius, memory_celsius, margin_celsius; junction_celsius }
    Clocks { graphics_mhz, sm_mhz, memory_mhz, video_mhz; soc_mhz, fabric_mhz }
    PcieLink { generation, width, tx_bytes_per_second, rx_bytes_per_second }
    NvLinks { tx_bytes_per_second, rx_bytes_per_second }
}

impl GpuSample {
    /// A GPU of which nothing is known, for one reason.
    pub fn absent(
        index: u32,
        uuid: Option<String>,
        at_ms: u64,
        health: Health,
        reason: &Absence,
    ) -> Self {
        let (processes_omitted, unlisted_memory_bytes) = (0, None);
        let memory_kind = MemoryKind::Device;
        let (allocated_to, conditions) = (Vec::new(), Vec::new());
        absent!(reason; Self {
            index, uuid, at_ms, health, memory_kind, processes_omitted, unlisted_memory_bytes,
            allocated_to, conditions
        }; utilization, activity, memory, power, temperature, clocks, performance_state, throttle_reasons, pcie, nvlink,
            fan_percent, mig_devices, processes)
    }

    /// Returns the number of processes that hold the GPU; `None` if processes are not listed or
    /// some are not visible.
    pub fn process_count(&self) -> Option<u32> {
        let listed = self
            .processes
            .value()
            .filter(|_| self.unlisted_memory_bytes.is_none())?;
        Some(
            u32::try_from(listed.len())
                .unwrap_or(u32::MAX)
                .saturating_add(self.processes_omitted),
        )
    }
}
