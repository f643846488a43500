//! Samples: the readings of all GPUs, their MIG devices and the host at one point in time, and the
//! traces that the driver recorded between two samples.

mod throttle;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Absence, Allocation, Condition, Limits, Process, Reading, absent};
use crate::tagged;

pub use throttle::{REASONS, ReasonInfo, ThrottleCause, ThrottleReason};

/// The readings of all GPUs and the host at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Sample {
    /// The number of the sample, counted from 0 by each collector. A gap shows how many samples a
    /// reader missed.
    pub seq: u64,
    /// The time at which the sample was completed.
    pub at_ms: u64,
    /// The target interval between the collector's samples.
    pub interval_ms: u32,
    /// All GPUs of the inventory, in the same order, including GPUs that are lost or hung.
    pub gpus: Vec<GpuSample>,
    /// The readings of the host machine.
    pub host: HostSample,
}

/// The readings of one GPU at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuSample {
    /// NVML's index of the GPU.
    pub index: u32,
    /// The GPU's UUID, if the driver reports it.
    pub uuid: Option<String>,
    /// The time of these readings. Older than the time of the sample if the GPU did not respond in
    /// time.
    pub at_ms: u64,
    /// Whether the GPU responds, and if not, why.
    pub health: Health,
    /// Utilization in the last sampling period (`nvmlDeviceGetUtilizationRates` and similar calls).
    pub utilization: Utilization,
    /// Activity of the GPU's units from hardware counters; not supported before Hopper.
    pub activity: Reading<Activity>,
    /// The causes that limited the work of the GPU in the latest window of one to ten seconds.
    /// Omitted if not supported.
    #[serde(default, skip_serializing_if = "Reading::is_not_supported")]
    pub limits: Reading<Limits>,
    /// Device memory (`nvmlDeviceGetMemoryInfo_v2`).
    pub memory: MemorySample,
    /// The kind of the memory. Omitted for device memory.
    #[serde(default, skip_serializing_if = "MemoryKind::is_device")]
    pub memory_kind: MemoryKind,
    /// Electrical power of the board.
    pub power: Power,
    /// Temperatures of the GPU and its memory.
    pub temperature: Temperature,
    /// Clock frequencies of the GPU.
    pub clocks: Clocks,
    /// P-state, from 0 (fastest) to 15 (`nvmlDeviceGetPerformanceState`).
    pub performance_state: Reading<u8>,
    /// The reasons for reduced clocks; empty if there are none
    /// (`nvmlDeviceGetCurrentClocksEventReasons`).
    pub throttle_reasons: Reading<Vec<ThrottleReason>>,
    /// The state of the PCIe link.
    pub pcie: PcieLink,
    /// NVLink traffic, as the sum of all links.
    pub nvlink: NvLinks,
    /// The speed of the fastest fan, in percent of its full speed (`nvmlDeviceGetFanSpeed`). Boards
    /// that are cooled by the chassis have no fan.
    pub fan_percent: Reading<f64>,
    /// The MIG devices in NVML's order; empty if MIG is off, not supported if the GPU has no MIG.
    pub mig_devices: Reading<Vec<MigSample>>,
    /// The processes that use the GPU, by PID. If there are too many for one sample, only the
    /// processes with the most memory.
    pub processes: Reading<Vec<Process>>,
    /// The number of processes that are missing from `processes`. If it is not 0, sums over the
    /// list are too small. Omitted if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processes_omitted: u32,
    /// Memory in use that belongs to no listed process, in bytes. Present only if the driver is
    /// read in a PID namespace other than the machine's initial one, such as a container's, where
    /// processes in other namespaces are not visible. Omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub unlisted_memory_bytes: Option<u64>,
    /// The jobs or pods to which a scheduler has allocated the whole GPU, whether or not their
    /// processes use it. A shared GPU has several. Omitted if no allocation is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated_to: Vec<Allocation>,
    /// The conditions of the GPU, the most severe first. A condition is removed from the list when
    /// it ends.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// Whether a GPU responds, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Health {
    /// The GPU responds to all calls.
    Ok,
    /// The system has switched off a laptop's GPU to save power (sysfs `power/runtime_status`). The
    /// driver is not called, because a call would wake the GPU.
    Asleep {
        /// The time at which this state was first seen.
        since_ms: u64,
    },
    /// A call to the driver has not returned. The readings are the last known values.
    Hung {
        /// The time at which the call started.
        since_ms: u64,
    },
    /// The driver reports that the GPU has fallen off the bus.
    Lost {
        /// The time at which this state was first seen.
        since_ms: u64,
    },
    /// The driver refuses to open the GPU, or fails every call for it.
    Failed {
        /// The time at which this state was first seen.
        since_ms: u64,
        /// The reason why the readings are absent.
        reason: Absence,
        /// The meaning of the driver's code, as a clause; empty if there is no explanation.
        #[serde(default)]
        meaning: String,
        /// The remedy, as a clause; empty if there is no known remedy.
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
    /// Returns the state's name in JSON.
    pub fn json_name(&self) -> &'static str {
        self.tag().unwrap_or_default()
    }
}

/// Utilization in the last sampling period, whose length of 1/6 s to 1 s depends on the driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Utilization {
    /// Share of time in which at least one kernel ran, regardless of how much of the GPU the kernel
    /// used.
    pub gpu_percent: Reading<f64>,
    /// Share of time in which device memory was read or written.
    pub memory_percent: Reading<f64>,
    /// Utilization of the video encoder (`nvmlDeviceGetEncoderUtilization`).
    pub encoder_percent: Reading<f64>,
    /// Utilization of the video decoder (`nvmlDeviceGetDecoderUtilization`).
    pub decoder_percent: Reading<f64>,
    /// Utilization of the JPEG decoder (`nvmlDeviceGetJpgUtilization`).
    pub jpeg_percent: Reading<f64>,
    /// Utilization of the optical flow accelerator (`nvmlDeviceGetOfaUtilization`).
    pub ofa_percent: Reading<f64>,
    /// Utilization of the video and JPEG engines together (AMD: `average_mm_activity`,
    /// `vcn_busy_percent`). Omitted if not supported.
    #[serde(default, skip_serializing_if = "Reading::is_not_supported")]
    pub media_percent: Reading<f64>,
}

impl Utilization {
    /// Returns the utilization of the video and image engines.
    pub fn engine_percents(&self) -> [&Reading<f64>; 5] {
        [
            &self.encoder_percent,
            &self.decoder_percent,
            &self.jpeg_percent,
            &self.ofa_percent,
            &self.media_percent,
        ]
    }
}

/// Readings of the GPU's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MemorySample {
    /// Total size of the memory.
    pub total_bytes: Reading<u64>,
    /// Memory allocated by processes.
    pub used_bytes: Reading<u64>,
    /// Memory reserved by the driver and firmware; absent if the driver includes it in `used_bytes`
    /// (before 510).
    pub reserved_bytes: Reading<u64>,
    /// Memory that is not allocated.
    pub free_bytes: Reading<u64>,
    /// Memory of the machine that the GPU may map (AMD: `mem_info_gtt_total`). Omitted if not
    /// supported.
    #[serde(default, skip_serializing_if = "Reading::is_not_supported")]
    pub gtt_total_bytes: Reading<u64>,
    /// Memory of the machine that the GPU has mapped (AMD: `mem_info_gtt_used`). Omitted if not
    /// supported.
    #[serde(default, skip_serializing_if = "Reading::is_not_supported")]
    pub gtt_used_bytes: Reading<u64>,
}

/// The kind of a GPU's memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Dedicated memory on the GPU's board.
    #[default]
    Device,
    /// Memory of the machine that the GPU shares with the CPU.
    Unified,
}

impl MemoryKind {
    /// Returns `true` for dedicated memory. The argument is a reference, because serde passes one.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_device(&self) -> bool {
        *self == Self::Device
    }
}

/// Electrical power of the board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Power {
    /// The board's power draw, averaged over a second on most boards since Ampere
    /// (`nvmlDeviceGetPowerUsage`).
    pub draw_watts: Reading<f64>,
    /// The board's power draw at the driver's latest measurement, about every 50 ms
    /// (`NVML_FI_DEV_POWER_INSTANT`).
    pub instant_watts: Reading<f64>,
    /// The board's power draw, averaged over the last second even on boards whose `draw_watts` is
    /// not averaged (`NVML_FI_DEV_POWER_AVERAGE`).
    pub average_watts: Reading<f64>,
    /// Counter of the energy used since the driver was loaded, updated every 100 ms
    /// (`nvmlDeviceGetTotalEnergyConsumption`).
    pub energy_joules_total: Reading<f64>,
    /// The power limit in force (`nvmlDeviceGetEnforcedPowerLimit`).
    pub limit_watts: Reading<f64>,
}

impl Power {
    /// Returns the board's power draw, averaged over a second if the driver reports the average.
    pub(crate) fn mean_watts(&self) -> Option<f64> {
        let mean = self.average_watts.value().or(self.draw_watts.value());
        mean.copied()
    }
}

/// Temperatures of the GPU and its memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Temperature {
    /// The temperature of the chip (`nvmlDeviceGetTemperatureV`).
    pub gpu_celsius: Reading<f64>,
    /// The temperature of the memory (`NVML_FI_DEV_MEMORY_TEMP`).
    pub memory_celsius: Reading<f64>,
    /// The difference between the chip's temperature and the temperature at which the clocks are
    /// reduced (`nvmlDeviceGetMarginTemperature`).
    pub margin_celsius: Reading<f64>,
    /// The temperature of the chip's hottest spot (AMD: the `junction` sensor). Omitted if not
    /// supported.
    #[serde(default, skip_serializing_if = "Reading::is_not_supported")]
    pub junction_celsius: Reading<f64>,
}

/// Clock frequencies (`nvmlDeviceGetClockInfo`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Clocks {
    /// Clock of the graphics engine.
    pub graphics_mhz: Reading<u32>,
    /// Clock of the streaming multiprocessors.
    pub sm_mhz: Reading<u32>,
    /// Clock of device memory.
    pub memory_mhz: Reading<u32>,
    /// Clock of the video encoder and decoder.
    pub video_mhz: Reading<u32>,
    /// Clock of the parts of the chip around the graphics engine (AMD: `socclk`). Omitted if not
    /// supported.
    #[serde(default, skip_serializing_if = "Reading::is_not_supported")]
    pub soc_mhz: Reading<u32>,
    /// Clock of the fabric between the parts of the chip (AMD: `fclk`). Omitted if not supported.
    #[serde(default, skip_serializing_if = "Reading::is_not_supported")]
    pub fabric_mhz: Reading<u32>,
}

/// The current state of the PCIe link, which uses a lower generation while idle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct PcieLink {
    /// The current generation (`nvmlDeviceGetCurrPcieLinkGeneration`).
    pub generation: Reading<u32>,
    /// Number of lanes (`nvmlDeviceGetCurrPcieLinkWidth`).
    pub width: Reading<u32>,
    /// Data sent by the GPU per second, since the previous sample (GPM's `PCIE_TX_PER_SEC`). The
    /// rate is about 9 % higher than that of the copied data, because packets have headers. Without
    /// GPM, the value is from `nvmlDeviceGetPcieThroughput`, with the time of that reading.
    pub tx_bytes_per_second: Reading<f64>,
    /// Data received by the GPU per second, since the previous sample (GPM's `PCIE_RX_PER_SEC`).
    /// The rate is about 9 % higher than that of the copied data. Without GPM, the value is from
    /// `nvmlDeviceGetPcieThroughput`, with the time of that reading.
    pub rx_bytes_per_second: Reading<f64>,
}

/// The traffic over all NVLinks of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct NvLinks {
    /// Data sent by the GPU per second, since the previous sample (GPM's
    /// `NVLINK_TOTAL_TX_PER_SEC`). The rate is about 2.5 % higher than that of the copied data.
    /// Without GPM, the value is the growth of `NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX` over all
    /// links, which counts exactly the copied data, with the time of that reading.
    pub tx_bytes_per_second: Reading<f64>,
    /// Data received by the GPU per second, since the previous sample (GPM's
    /// `NVLINK_TOTAL_RX_PER_SEC`). The rate is about 2.5 % higher than that of the copied data.
    /// Without GPM, the value is the growth of `NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX` over all
    /// links, with the time of that reading.
    pub rx_bytes_per_second: Reading<f64>,
}

/// Returns `true` for 0. The argument is a reference, because serde passes one.
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
    /// Returns a sample whose readings are all absent for the given reason.
    pub fn new_absent(
        index: u32,
        uuid: Option<String>,
        at_ms: u64,
        health: Health,
        reason: &Absence,
    ) -> Self {
        let (processes_omitted, unlisted_memory_bytes) = (0, None);
        let memory_kind = MemoryKind::Device;
        let (allocated_to, conditions) = (Vec::new(), Vec::new());
        let limits = Reading::NOT_SUPPORTED;
        absent!(reason; Self {
            index, uuid, at_ms, health, memory_kind, processes_omitted, unlisted_memory_bytes,
            allocated_to, conditions, limits
        }; utilization, activity, memory, power, temperature, clocks, performance_state, throttle_reasons, pcie, nvlink,
            fan_percent, mig_devices, processes)
    }

    /// Returns the number of processes that use the GPU, or `None` if processes are not listed or
    /// some of them are not visible.
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

/// The activity of a GPU's units since the previous sample, averaged over all multiprocessors, from
/// hardware counters (NVML's GPU Performance Monitoring, on Hopper and later).
/// `utilization.gpu_percent` is 100 as soon as one kernel runs; these values show how much of the
/// GPU the kernel used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Activity {
    /// Share of time in which the graphics or compute engine was busy (`GRAPHICS_UTIL`).
    pub graphics_percent: Reading<f64>,
    /// Share of time in which a multiprocessor had at least one warp (`SM_UTIL`).
    pub sm_percent: Reading<f64>,
    /// Resident warps as a share of the maximum (`SM_OCCUPANCY`).
    pub occupancy_percent: Reading<f64>,
    /// Share of time in which the tensor cores were busy (`ANY_TENSOR_UTIL`).
    pub tensor_percent: Reading<f64>,
    /// Share of time in which the tensor cores worked on half-precision or narrower floating-point
    /// numbers (`HMMA_TENSOR_UTIL`).
    pub tensor_half_percent: Reading<f64>,
    /// Share of time in which the tensor cores worked on integers (`IMMA_TENSOR_UTIL`).
    pub tensor_integer_percent: Reading<f64>,
    /// Share of time in which the tensor cores worked on double-precision numbers
    /// (`DFMA_TENSOR_UTIL`).
    pub tensor_double_percent: Reading<f64>,
    /// Share of time in which the double-precision units were busy (`FP64_UTIL`).
    pub fp64_percent: Reading<f64>,
    /// Share of time in which the single-precision units were busy (`FP32_UTIL`).
    pub fp32_percent: Reading<f64>,
    /// Share of time in which the half-precision units were busy (`FP16_UTIL`).
    pub fp16_percent: Reading<f64>,
    /// Share of time in which the integer units were busy (`INTEGER_UTIL`).
    pub integer_percent: Reading<f64>,
    /// Used bandwidth of device memory as a share of the peak bandwidth (`DRAM_BW_UTIL`).
    pub dram_bandwidth_percent: Reading<f64>,
}

absent! {
    Activity { graphics_percent, sm_percent, occupancy_percent, tensor_percent, tensor_half_percent,
        tensor_integer_percent, tensor_double_percent, fp64_percent, fp32_percent, fp16_percent, integer_percent,
        dram_bandwidth_percent }
}

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
    pub allocated_to: Vec<Allocation>,
}

/// Values of one metric of one GPU from the driver's own buffer (`nvmlDeviceGetSamples`).
///
/// Consecutive traces of a GPU and metric do not overlap, and omit no value unless `gap` is `true`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Trace {
    /// NVML's index of the GPU.
    pub index: u32,
    /// The GPU's UUID, if the driver reports it.
    pub uuid: Option<String>,
    /// The metric that was recorded.
    pub metric: TraceMetric,
    /// The driver's timestamp of the first value, in microseconds since the Unix epoch.
    pub start_us: u64,
    /// The time from `start_us` to each value, in microseconds, in ascending order.
    pub offsets_us: Vec<u32>,
    /// The recorded values, one for each offset.
    pub values: Vec<f64>,
    /// Whether values before the first one may be missing, because the driver's buffer was read too
    /// late.
    pub gap: bool,
}

/// The metrics that the driver records.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TraceMetric {
    /// The board's power draw in watts, 50 times a second (`NVML_TOTAL_POWER_SAMPLES`).
    PowerWatts,
    /// Share of time in which a kernel ran, with 5 values per second
    /// (`NVML_GPU_UTILIZATION_SAMPLES`).
    GpuPercent,
    /// Share of time in which device memory was read or written, with 5 values per second
    /// (`NVML_MEMORY_UTILIZATION_SAMPLES`).
    MemoryPercent,
}

/// The readings of the host machine at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct HostSample {
    /// The time of these readings.
    pub at_ms: u64,
    /// Readings of the processors.
    pub cpu: CpuSample,
    /// Readings of host memory.
    pub memory: RamSample,
    /// Readings of swap space; the total is 0 if the machine has none.
    pub swap: RamSample,
    /// Disk traffic, as the sum of all disks.
    pub disk: DiskSample,
    /// Network traffic, as the sum of all network cards, without the loopback interface.
    pub network: NetworkSample,
}

/// Readings of the processors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct CpuSample {
    /// Number of logical processors.
    pub count: Reading<u32>,
    /// Busy share of all processors since the previous sample, 0 to 100.
    pub busy_percent: Reading<f64>,
    /// Load average over one minute: the number of threads that are running, can run, or are
    /// waiting for a disk.
    pub load_1m: Reading<f64>,
}

/// Readings of host memory or swap space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RamSample {
    /// The total size of the memory.
    pub total_bytes: Reading<u64>,
    /// Memory in use by programs, excluding caches that can be freed.
    pub used_bytes: Reading<u64>,
}

/// Data read and written since boot, and the rates between two samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct DiskSample {
    /// Counter of data read, in bytes.
    pub read_bytes_total: Reading<u64>,
    /// Counter of data written, in bytes.
    pub written_bytes_total: Reading<u64>,
    /// Read rate since the previous sample.
    pub read_bytes_per_second: Reading<f64>,
    /// Write rate since the previous sample.
    pub written_bytes_per_second: Reading<f64>,
}

/// Data received and sent since boot, and the rates between two samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct NetworkSample {
    /// Counter of data received, in bytes.
    pub received_bytes_total: Reading<u64>,
    /// Counter of data sent, in bytes.
    pub sent_bytes_total: Reading<u64>,
    /// Receive rate since the previous sample.
    pub received_bytes_per_second: Reading<f64>,
    /// Send rate since the previous sample.
    pub sent_bytes_per_second: Reading<f64>,
}

absent! {
    CpuSample { count, busy_percent, load_1m }
    RamSample { total_bytes, used_bytes }
    DiskSample { read_bytes_total, written_bytes_total, read_bytes_per_second, written_bytes_per_second }
    NetworkSample { received_bytes_total, sent_bytes_total, received_bytes_per_second, sent_bytes_per_second }
}

impl HostSample {
    /// Returns a sample whose readings are all absent for the given reason.
    pub fn new_absent(at_ms: u64, reason: &Absence) -> Self {
        absent!(reason; Self { at_ms }; cpu, memory, swap, disk, network)
    }
}
