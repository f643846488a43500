//! Memory of a GPU or of one of its MIG devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::model::Reading;

/// Device memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MemorySample {
    /// All of it.
    pub total_bytes: Reading<u64>,
    /// Allocated by processes.
    pub used_bytes: Reading<u64>,
    /// Kept by the driver and firmware; absent where the driver counts it into `used_bytes` (before 510).
    pub reserved_bytes: Reading<u64>,
    /// Not allocated.
    pub free_bytes: Reading<u64>,
}
