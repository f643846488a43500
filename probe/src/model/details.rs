//! Slowly changing readings of a GPU: health, error counters, settings and links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Absence, Reading, reading::absent};

/// Slowly changing readings of one GPU, read every ten seconds, because many of them take longer to
/// read than a whole sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuDetails {
    /// NVML's index of the GPU.
    pub index: u32,
    /// The GPU's UUID, if the driver reports it.
    pub uuid: Option<String>,
    /// The time of the readings.
    pub at_ms: u64,
    /// The modes that the GPU is set to.
    pub modes: Modes,
    /// The application clocks that are set.
    pub application_clocks: ApplicationClocks,
    /// The power limit that was requested (`nvmlDeviceGetPowerManagementLimit`); the limit in force
    /// can be lower.
    pub requested_power_limit_watts: Reading<f64>,
    /// The time with reduced clocks since the driver was loaded, by reason
    /// (`NVML_FI_DEV_PERF_POLICY_*`).
    pub throttled: ThrottledTimes,
    /// Counters of memory errors.
    pub ecc: Ecc,
    /// Retired pages, on boards before Ampere (`nvmlDeviceGetRetiredPages`).
    pub retired_pages: Reading<RetiredPages>,
    /// Remapped rows, on Ampere and later (`nvmlDeviceGetRemappedRows`).
    pub remapped_rows: Reading<RemappedRows>,
    /// The window through which the host maps device memory (`nvmlDeviceGetBAR1MemoryInfo`).
    pub bar1: Reading<Bar1>,
    /// Counter of retransmitted PCIe packets (`nvmlDeviceGetPcieReplayCounter`).
    pub pcie_replays_total: Reading<u64>,
    /// All NVLinks of the GPU; empty if the GPU has none.
    pub nvlinks: Reading<Vec<NvLink>>,
    /// The NVLink fabric of an `NVSwitch` system (`nvmlDeviceGetGpuFabricInfoV`).
    pub fabric: Reading<Fabric>,
    /// Whether the coherent link to a Grace CPU is on (`nvmlDeviceGetC2cModeInfoV`).
    pub c2c_enabled: Reading<bool>,
    /// The recovery that the driver requests (`NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`).
    pub recovery_action: Reading<RecoveryAction>,
    /// All fans of the GPU, in NVML's order.
    pub fans: Reading<Vec<Fan>>,
    /// The newest 64 finished and running processes in the driver's accounting, if accounting is on
    /// (`nvmlDeviceGetAccountingStats`).
    pub accounting: Reading<Vec<AccountedProcess>>,
}

/// The modes that a GPU is set to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Modes {
    /// Whether the driver keeps the GPU initialized without clients
    /// (`nvmlDeviceGetPersistenceMode`).
    pub persistence: Reading<bool>,
    /// The compute mode, which limits the processes on the GPU (`nvmlDeviceGetComputeMode`).
    pub compute: Reading<ComputeMode>,
    /// Whether ECC is on (`nvmlDeviceGetEccMode`).
    pub ecc: Reading<Mode>,
    /// Whether Multi-Instance GPU (MIG) is on (`nvmlDeviceGetMigMode`).
    pub mig: Reading<Mode>,
    /// Whether process accounting is on (`nvmlDeviceGetAccountingMode`).
    pub accounting: Reading<bool>,
    /// Whether a display is connected and in use (`nvmlDeviceGetDisplayActive`).
    pub display_active: Reading<bool>,
    /// The state of confidential computing in the whole system (`nvmlSystemGetConfComputeState`).
    pub confidential_compute: Reading<ConfidentialCompute>,
}

/// A mode that changes at the next reset of the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Mode {
    /// The mode that is in force now.
    pub current: bool,
    /// The mode after the next reset.
    pub pending: bool,
}

/// The values of NVML's `nvmlComputeMode_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComputeMode {
    /// Any number of processes may use the GPU.
    Default,
    /// One process at a time may use the GPU.
    ExclusiveProcess,
    /// No process may use the GPU.
    Prohibited,
}

/// The state of confidential computing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct ConfidentialCompute {
    /// Whether confidential computing is on.
    pub enabled: bool,
    /// Whether the system is in development mode, which protects nothing.
    pub devtools: bool,
}

/// Clocks that a user requested (`nvmlDeviceGetApplicationsClock`); newer drivers do not support
/// them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct ApplicationClocks {
    /// Requested clock of the graphics engine.
    pub graphics_mhz: Reading<u32>,
    /// Requested clock of device memory.
    pub memory_mhz: Reading<u32>,
}

/// The time with reduced clocks by reason, as counters in seconds since the driver was loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct ThrottledTimes {
    /// Time with reduced clocks because of the power limit.
    pub power_seconds_total: Reading<f64>,
    /// Time with reduced clocks because of the temperature.
    pub thermal_seconds_total: Reading<f64>,
    /// Time with reduced clocks to match the slowest GPU of a sync boost group.
    pub sync_boost_seconds_total: Reading<f64>,
    /// Time with reduced clocks because of the board's limit.
    pub board_limit_seconds_total: Reading<f64>,
    /// Time with reduced clocks because of low utilization.
    pub low_utilization_seconds_total: Reading<f64>,
    /// Time with reduced clocks because of the chip's reliable voltage.
    pub reliability_seconds_total: Reading<f64>,
}

/// Memory errors since the driver was loaded (volatile) and over the lifetime of the board
/// (aggregate).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Ecc {
    /// Errors since the driver was loaded (`nvmlDeviceGetTotalEccErrors`).
    pub volatile: EccCounts,
    /// Errors over the lifetime of the board (`nvmlDeviceGetTotalEccErrors`).
    pub aggregate: EccCounts,
    /// Volatile counts by location (`nvmlDeviceGetMemoryErrorCounter`), without locations that the
    /// board does not count.
    pub volatile_by_location: Reading<Vec<EccLocation>>,
    /// Aggregate counts by location (`nvmlDeviceGetMemoryErrorCounter`).
    pub aggregate_by_location: Reading<Vec<EccLocation>>,
}

/// Counters of memory errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct EccCounts {
    /// Errors that the hardware corrected.
    pub corrected_total: Reading<u64>,
    /// Errors that the hardware could not correct.
    pub uncorrected_total: Reading<u64>,
}

/// Memory errors at one location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct EccLocation {
    /// The location: `device_memory`, `sram`, `l1_cache`, `l2_cache`, `register_file`,
    /// `texture_memory`, `texture_shm` or `cbu`.
    pub location: String,
    /// Errors that the hardware corrected.
    pub corrected_total: u64,
    /// Errors that the hardware could not correct.
    pub uncorrected_total: u64,
}

/// Pages that were taken out of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RetiredPages {
    /// Pages retired after several corrected errors.
    pub single_bit: u32,
    /// Pages retired after an uncorrected error.
    pub double_bit: u32,
    /// Whether more pages will be retired at the next reset of the GPU.
    pub pending: bool,
}

/// Rows that were replaced by spare rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RemappedRows {
    /// Rows remapped after corrected errors.
    pub correctable: u32,
    /// Rows remapped after uncorrected errors.
    pub uncorrectable: u32,
    /// Whether a row will be remapped at the next reset of the GPU.
    pub pending: bool,
    /// Whether a row could not be remapped.
    pub failed: bool,
    /// Number of memory banks by remaining spare rows (`nvmlDeviceGetRowRemapperHistogram`).
    pub spare: Option<SpareRows>,
}

/// Number of memory banks by remaining spare rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct SpareRows {
    /// Banks with all spare rows left.
    pub max: u32,
    /// Banks with most spare rows left.
    pub high: u32,
    /// Banks with some spare rows left.
    pub partial: u32,
    /// Banks with few spare rows left.
    pub low: u32,
    /// Banks with no spare rows left.
    pub none: u32,
}

/// The window through which the host maps device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Bar1 {
    /// The size of the window.
    pub total_bytes: u64,
    /// The part of the window that is mapped.
    pub used_bytes: u64,
}

/// One NVLink of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct NvLink {
    /// The number of the link.
    pub link: u32,
    /// Whether the link is up (`nvmlDeviceGetNvLinkState`).
    pub active: Reading<bool>,
    /// The NVLink version, such as `4.0` (`nvmlDeviceGetNvLinkVersion`).
    pub version: Reading<String>,
    /// The speed of the link in each direction, in bytes per second
    /// (`NVML_FI_DEV_NVLINK_GET_SPEED`).
    pub bytes_per_second: Reading<f64>,
    /// The kind of device at the other end (`nvmlDeviceGetNvLinkRemoteDeviceType`).
    pub remote: Reading<NvLinkRemote>,
    /// The PCI bus ID of the device at the other end (`nvmlDeviceGetNvLinkRemotePciInfo_v2`).
    pub remote_pci_bus_id: Reading<String>,
    /// Counter of data sent, in bytes (`NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX`, per link).
    pub tx_bytes_total: Reading<u64>,
    /// Counter of data received, in bytes (`NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX`, per link).
    pub rx_bytes_total: Reading<u64>,
    /// Counter of errors: the sum of replays, recoveries and CRC errors.
    pub errors_total: Reading<u64>,
    /// Counter of retransmitted packets (`NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY`).
    #[serde(default = "not_read")]
    pub replays_total: Reading<u64>,
    /// Counter of recoveries, in which the link was retrained
    /// (`NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY`).
    #[serde(default = "not_read")]
    pub recoveries_total: Reading<u64>,
    /// Counter of packets with a wrong checksum (`NVML_FI_DEV_NVLINK_ERROR_DL_CRC`).
    #[serde(default = "not_read")]
    pub crc_errors_total: Reading<u64>,
}

/// Returns the default for counters that are missing from recordings of earlier versions.
fn not_read() -> Reading<u64> {
    Reading::Absent(Absence::NotReadYet)
}

/// The kind of device at the other end of an NVLink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NvLinkRemote {
    /// The link leads to another GPU.
    Gpu,
    /// The link leads to an IBM NPU.
    Npu,
    /// The link leads to an `NVSwitch`.
    Switch,
    /// The driver reports no device.
    Unknown,
}

/// The NVLink fabric of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Fabric {
    /// The state of the GPU's registration with the fabric.
    pub state: FabricState,
    /// The `nvmlReturn_t` of the completed registration; 0 is success.
    pub status: u32,
    /// The UUID of the fabric.
    pub cluster_uuid: String,
    /// The ID of the clique. GPUs of one clique can communicate.
    pub clique_id: u32,
}

/// The values of NVML's `nvmlGpuFabricState_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FabricState {
    /// The GPU has no fabric.
    NotSupported,
    /// The registration has not started.
    NotStarted,
    /// The GPU is waiting for the fabric manager.
    InProgress,
    /// The registration is complete; `status` contains the result.
    Completed,
}

/// The recovery that the driver requests before the GPU is used again
/// (`nvmlDeviceGpuRecoveryAction_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAction {
    /// No recovery is needed.
    None,
    /// Reset the GPU before using it.
    GpuReset,
    /// Reboot the machine before using the GPU.
    NodeReboot,
    /// Stop the programs that use peer-to-peer transfers, and start no new ones.
    DrainP2p,
    /// Let running programs end, then reset the GPU.
    DrainAndReset,
}

impl RecoveryAction {
    /// All actions, ordered by NVML's number.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::GpuReset,
        Self::NodeReboot,
        Self::DrainP2p,
        Self::DrainAndReset,
    ];
}

/// A fan of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Fan {
    /// Speed in percent of the full speed (`nvmlDeviceGetFanSpeed_v2`).
    pub speed_percent: Reading<f64>,
    /// Speed in revolutions per minute (`nvmlDeviceGetFanSpeedRPM`).
    pub rpm: Reading<u32>,
}

/// A process in the driver's accounting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct AccountedProcess {
    /// The PID of the process.
    pub pid: u32,
    /// Whether the process is still running.
    pub running: bool,
    /// Share of the process's lifetime in which its kernels ran.
    pub gpu_percent: Reading<f64>,
    /// Share of the process's lifetime in which it read or wrote device memory.
    pub memory_percent: Reading<f64>,
    /// The process's peak device memory.
    pub max_memory_bytes: Reading<u64>,
    /// The lifetime of the process; 0 while it runs.
    pub time_ms: u64,
    /// The time at which the process started, in microseconds since 1970.
    pub started_us: u64,
}

absent! {
    Modes { persistence, compute, ecc, mig, accounting, display_active, confidential_compute }
    ApplicationClocks { graphics_mhz, memory_mhz }
    ThrottledTimes { power_seconds_total, thermal_seconds_total, sync_boost_seconds_total, board_limit_seconds_total,
        low_utilization_seconds_total, reliability_seconds_total }
    Ecc { volatile, aggregate, volatile_by_location, aggregate_by_location }
    EccCounts { corrected_total, uncorrected_total }
}

impl GpuDetails {
    /// Returns details whose readings are all absent for the given reason.
    pub fn new_absent(index: u32, uuid: Option<String>, at_ms: u64, reason: &Absence) -> Self {
        absent!(reason; Self { index, uuid, at_ms }; modes, application_clocks, requested_power_limit_watts, throttled,
            ecc, retired_pages, remapped_rows, bar1, pcie_replays_total, nvlinks, fabric, c2c_enabled, recovery_action,
            fans, accounting)
    }
}
