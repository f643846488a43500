//! The readings of the host machine at one time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::model::{Absence, Reading, absent};

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
