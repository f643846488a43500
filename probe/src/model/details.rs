//! What changes slowly about a GPU: its health, its counters of errors, its settings and its links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Absence, Reading, reading::absent};

/// What changes slowly about one GPU. Read every ten seconds, since much of it costs more than all
/// the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuDetails {
    /// NVML's index.
    pub index: u32,
    /// Its UUID, where the driver has told it.
    pub uuid: Option<String>,
    /// When it was read.
    pub at_ms: u64,
    /// Settings.
    pub modes: Modes,
    /// Settings of the clocks.
    pub application_clocks: ApplicationClocks,
    /// The power limit that was asked for (`nvmlDeviceGetPowerManagementLimit`); the one in force
    /// can be lower.
    pub requested_power_limit_watts: Reading<f64>,
    /// For how long something held the clocks down since the driver was loaded
    /// (`NVML_FI_DEV_PERF_POLICY_*`).
    pub throttled: ThrottledTimes,
    /// Memory errors.
    pub ecc: Ecc,
    /// Pages that were taken out of use; boards before Ampere (`nvmlDeviceGetRetiredPages`).
    pub retired_pages: Reading<RetiredPages>,
    /// Rows that were replaced by spare ones; Ampere and later (`nvmlDeviceGetRemappedRows`).
    pub remapped_rows: Reading<RemappedRows>,
    /// The window through which the host reaches device memory (`nvmlDeviceGetBAR1MemoryInfo`).
    pub bar1: Reading<Bar1>,
    /// Counter: PCIe packets that had to be sent again (`nvmlDeviceGetPcieReplayCounter`).
    pub pcie_replays_total: Reading<u64>,
    /// Each `NVLink`; empty where there is none.
    pub nvlinks: Reading<Vec<NvLink>>,
    /// The `NVLink` fabric of an `NVSwitch` system (`nvmlDeviceGetGpuFabricInfoV`).
    pub fabric: Reading<Fabric>,
    /// Whether the coherent link to a Grace CPU is on (`nvmlDeviceGetC2cModeInfoV`).
    pub c2c_enabled: Reading<bool>,
    /// What the driver asks for (`NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`).
    pub recovery_action: Reading<RecoveryAction>,
    /// Every fan, in NVML's order.
    pub fans: Reading<Vec<Fan>>,
    /// Finished and running processes as the driver accounts for them, where accounting is on
    /// (`nvmlDeviceGetAccountingStats`); the newest 64.
    pub accounting: Reading<Vec<AccountedProcess>>,
}

/// Settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Modes {
    /// The driver keeps the GPU initialized without clients (`nvmlDeviceGetPersistenceMode`).
    pub persistence: Reading<bool>,
    /// Who may compute (`nvmlDeviceGetComputeMode`).
    pub compute: Reading<ComputeMode>,
    /// Error correction now, and after the next reset (`nvmlDeviceGetEccMode`).
    pub ecc: Reading<Mode>,
    /// Multi-Instance GPU now, and after the next reset (`nvmlDeviceGetMigMode`).
    pub mig: Reading<Mode>,
    /// Process accounting (`nvmlDeviceGetAccountingMode`).
    pub accounting: Reading<bool>,
    /// A display is connected and drawn to (`nvmlDeviceGetDisplayActive`).
    pub display_active: Reading<bool>,
    /// Confidential computing, of the whole system (`nvmlSystemGetConfComputeState`).
    pub confidential_compute: Reading<ConfidentialCompute>,
}

/// A setting that changes with a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Mode {
    /// Now.
    pub current: bool,
    /// After the next reset.
    pub pending: bool,
}

/// `nvmlComputeMode_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComputeMode {
    /// Everybody may.
    Default,
    /// One process at a time.
    ExclusiveProcess,
    /// Nobody may.
    Prohibited,
}

/// The state of confidential computing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct ConfidentialCompute {
    /// It is on.
    pub enabled: bool,
    /// In development mode, which protects nothing.
    pub devtools: bool,
}

/// Clocks that a user asked for (`nvmlDeviceGetApplicationsClock`); newer drivers have given them
/// up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct ApplicationClocks {
    /// Graphics engine.
    pub graphics_mhz: Reading<u32>,
    /// Device memory.
    pub memory_mhz: Reading<u32>,
}

/// For how long each thing held the clocks down. Counters in seconds, since the driver was loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct ThrottledTimes {
    /// The power limit.
    pub power_seconds_total: Reading<f64>,
    /// Heat.
    pub thermal_seconds_total: Reading<f64>,
    /// In step with the slowest GPU of a sync boost group.
    pub sync_boost_seconds_total: Reading<f64>,
    /// The board's limit.
    pub board_limit_seconds_total: Reading<f64>,
    /// Too little to do for higher clocks.
    pub low_utilization_seconds_total: Reading<f64>,
    /// The voltage that the chip bears.
    pub reliability_seconds_total: Reading<f64>,
}

/// Memory errors: since the driver was loaded (volatile), and in the board's life (aggregate).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Ecc {
    /// Since the driver was loaded (`nvmlDeviceGetTotalEccErrors`).
    pub volatile: EccCounts,
    /// In the board's life.
    pub aggregate: EccCounts,
    /// Volatile counts by place (`nvmlDeviceGetMemoryErrorCounter`); places that the board does not
    /// count are left out.
    pub volatile_by_location: Reading<Vec<EccLocation>>,
    /// Aggregate counts by place.
    pub aggregate_by_location: Reading<Vec<EccLocation>>,
}

/// Counters of memory errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct EccCounts {
    /// Corrected by the hardware.
    pub corrected_total: Reading<u64>,
    /// Not corrected.
    pub uncorrected_total: Reading<u64>,
}

/// Memory errors at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct EccLocation {
    /// `device_memory`, `sram`, `l1_cache`, `l2_cache`, `register_file`, `texture_memory`,
    /// `texture_shm`, or `cbu`.
    pub location: String,
    /// Corrected by the hardware.
    pub corrected_total: u64,
    /// Not corrected.
    pub uncorrected_total: u64,
}

/// Pages that were taken out of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RetiredPages {
    /// After several corrected errors.
    pub single_bit: u32,
    /// After an uncorrected error.
    pub double_bit: u32,
    /// More wait for a reset of the GPU.
    pub pending: bool,
}

/// Rows that were replaced by spare ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RemappedRows {
    /// After corrected errors.
    pub correctable: u32,
    /// After uncorrected errors.
    pub uncorrectable: u32,
    /// One waits for a reset of the GPU.
    pub pending: bool,
    /// One could not be replaced.
    pub failed: bool,
    /// Banks by how many spare rows they have left (`nvmlDeviceGetRowRemapperHistogram`).
    pub spare: Option<SpareRows>,
}

/// Banks of memory by how many spare rows they have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct SpareRows {
    /// All.
    pub max: u32,
    /// Most.
    pub high: u32,
    /// Some.
    pub partial: u32,
    /// Few.
    pub low: u32,
    /// None.
    pub none: u32,
}

/// The window through which the host reaches device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Bar1 {
    /// Its size.
    pub total_bytes: u64,
    /// Mapped.
    pub used_bytes: u64,
}

/// One `NVLink` of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct NvLink {
    /// Its number.
    pub link: u32,
    /// Whether it is up (`nvmlDeviceGetNvLinkState`).
    pub active: Reading<bool>,
    /// Its version, as `4.0` (`nvmlDeviceGetNvLinkVersion`).
    pub version: Reading<String>,
    /// Its speed in bytes per second each way (`NVML_FI_DEV_NVLINK_GET_SPEED`).
    pub bytes_per_second: Reading<f64>,
    /// What is at its other end (`nvmlDeviceGetNvLinkRemoteDeviceType`).
    pub remote: Reading<NvLinkRemote>,
    /// The PCI bus id of what is at its other end (`nvmlDeviceGetNvLinkRemotePciInfo_v2`).
    pub remote_pci_bus_id: Reading<String>,
    /// Counter: data sent, in bytes (`NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX`, per link).
    pub tx_bytes_total: Reading<u64>,
    /// Counter: data received, in bytes (`NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX`, per link).
    pub rx_bytes_total: Reading<u64>,
    /// Counter: errors of the three kinds below.
    pub errors_total: Reading<u64>,
    /// Counter: packets that had to be sent again (`NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY`).
    #[serde(default = "not_read")]
    pub replays_total: Reading<u64>,
    /// Counter: the link was trained anew (`NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY`).
    #[serde(default = "not_read")]
    pub recoveries_total: Reading<u64>,
    /// Counter: packets with a wrong checksum (`NVML_FI_DEV_NVLINK_ERROR_DL_CRC`).
    #[serde(default = "not_read")]
    pub crc_errors_total: Reading<u64>,
}

/// Recordings of earlier versions do not have it.
fn not_read() -> Reading<u64> {
    Reading::Absent(Absence::NotReadYet)
}

/// What is at the other end of an `NVLink`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NvLinkRemote {
    /// Another GPU.
    Gpu,
    /// An IBM NPU.
    Npu,
    /// An `NVSwitch`.
    Switch,
    /// The driver does not know.
    Unknown,
}

/// The `NVLink` fabric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Fabric {
    /// How far the GPU's registration has come.
    pub state: FabricState,
    /// The fabric manager's `nvmlReturn_t` once it has completed; 0 is success.
    pub status: u32,
    /// The fabric's UUID.
    pub cluster_uuid: String,
    /// GPUs of one clique reach each other.
    pub clique_id: u32,
}

/// `nvmlGpuFabricState_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FabricState {
    /// There is no fabric.
    NotSupported,
    /// Nobody has begun.
    NotStarted,
    /// It waits for the fabric manager.
    InProgress,
    /// It is done; its status tells how well.
    Completed,
}

/// What the driver asks for before the GPU is used again (`nvmlDeviceGpuRecoveryAction_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAction {
    /// Nothing.
    None,
    /// Reset the GPU.
    GpuReset,
    /// Reboot the machine.
    NodeReboot,
    /// End the programs that use peer-to-peer, and leave no new one in.
    DrainP2p,
    /// Let running programs end, then reset the GPU.
    DrainAndReset,
}

impl RecoveryAction {
    /// Every action, by NVML's number.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::GpuReset,
        Self::NodeReboot,
        Self::DrainP2p,
        Self::DrainAndReset,
    ];
}

/// One fan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Fan {
    /// Percent of its full speed (`nvmlDeviceGetFanSpeed_v2`).
    pub speed_percent: Reading<f64>,
    /// Turns per minute (`nvmlDeviceGetFanSpeedRPM`).
    pub rpm: Reading<u32>,
}

/// A process as the driver accounts for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct AccountedProcess {
    /// Its PID.
    pub pid: u32,
    /// Whether it still runs.
    pub running: bool,
    /// Time in which its kernels ran, over its life.
    pub gpu_percent: Reading<f64>,
    /// Time in which it read or wrote device memory, over its life.
    pub memory_percent: Reading<f64>,
    /// The most memory it held.
    pub max_memory_bytes: Reading<u64>,
    /// How long it ran; 0 while it runs.
    pub time_ms: u64,
    /// When it started.
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
    /// Details of which nothing is known, for one reason.
    pub fn absent(index: u32, uuid: Option<String>, at_ms: u64, reason: &Absence) -> Self {
        absent!(reason; Self { index, uuid, at_ms }; modes, application_clocks, requested_power_limit_watts, throttled,
            ecc, retired_pages, remapped_rows, bar1, pcie_replays_total, nvlinks, fabric, c2c_enabled, recovery_action,
            fans, accounting)
    }
}
