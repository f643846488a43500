//! The machine around the GPUs at one moment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::model::{Absence, Reading, absent};

/// The machine at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct HostSample {
    /// When these readings were taken.
    pub at_ms: u64,
    /// Processors.
    pub cpu: CpuSample,
    /// Host memory.
    pub memory: RamSample,
    /// Swap space; a total of 0 means that the machine has none.
    pub swap: RamSample,
    /// All disks together.
    pub disk: DiskSample,
    /// All network cards together; loopback is left out.
    pub network: NetworkSample,
}

/// Processors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct CpuSample {
    /// Logical processors.
    pub count: Reading<u32>,
    /// Busy share of all of them since the sample before, 0 to 100.
    pub busy_percent: Reading<f64>,
    /// Load average over one minute: threads that run, can run, or wait for a disk.
    pub load_1m: Reading<f64>,
}

/// Host memory or swap space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RamSample {
    /// All of it.
    pub total_bytes: Reading<u64>,
    /// What programs hold; caches that can be given back are not counted.
    pub used_bytes: Reading<u64>,
}

/// Bytes since boot, and the rates that `derive` makes of two samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct DiskSample {
    /// Counter.
    pub read_bytes_total: Reading<u64>,
    /// Counter.
    pub written_bytes_total: Reading<u64>,
    /// Rate since the sample before.
    pub read_bytes_per_second: Reading<f64>,
    /// Rate since the sample before.
    pub written_bytes_per_second: Reading<f64>,
}

/// Bytes since boot, and the rates that `derive` makes of two samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct NetworkSample {
    /// Counter.
    pub received_bytes_total: Reading<u64>,
    /// Counter.
    pub sent_bytes_total: Reading<u64>,
    /// Rate since the sample before.
    pub received_bytes_per_second: Reading<f64>,
    /// Rate since the sample before.
    pub sent_bytes_per_second: Reading<f64>,
}

absent! {
    CpuSample { count, busy_percent, load_1m }
    RamSample { total_bytes, used_bytes }
    DiskSample { read_bytes_total, written_bytes_total, read_bytes_per_second, written_bytes_per_second }
    NetworkSample { received_bytes_total, sent_bytes_total, received_bytes_per_second, sent_bytes_per_second }
}

impl HostSample {
    /// A machine of which nothing is known, for one reason.
    pub fn absent(at_ms: u64, reason: &Absence) -> Self {
        absent!(reason; Self { at_ms }; cpu, memory, swap, disk, network)
    }
}
