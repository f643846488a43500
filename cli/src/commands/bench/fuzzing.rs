//! Earlier results that anybody may have written.

use std::path::Path;

use gpumon_workload::protocol::Outcome;
use serde_json::json;

use super::compare::Earlier;

/// Reads earlier results, and holds one of this machine against them.
pub(crate) fn compare(earlier: &Path) {
    let Ok(earlier) = Earlier::read(earlier) else { return };
    let outcome: Outcome = serde_json::from_value(json!({
        "id": "copy", "backend": "cuda", "device": { "index": 0, "name": "NVIDIA H200", "uuid": "GPU-a" },
        "dtype": "fp32", "n": 1 << 28, "extent": "elements", "memory_bytes": 2_u64 << 30, "host_bytes": 0,
        "moved_bytes": 2_u64 << 30, "operations": 0, "stopped": "steady", "partial": false,
        "device_time": {
            "median_us": 100.0, "low_us": 99.0, "high_us": 101.0, "p5_us": 98.0, "p95_us": 102.0, "min_us": 97.0, "n": 20
        },
        "host_time": {
            "median_us": 110.0, "low_us": 109.0, "high_us": 111.0, "p5_us": 108.0, "p95_us": 112.0, "min_us": 107.0,
            "n": 20
        },
        "rate": { "bytes_per_second": 4.29e12 },
        "roofline": { "limit": "memory", "rated_per_second": 4.917e12, "share": 0.872 },
        "verify": { "ok": true, "checked": 5, "wrong": 0, "largest_error": 0.0, "tolerance": 0.0 },
        "environment": { "from_ms": 1, "to_ms": 2, "gpumon": "0.1.0", "cpu": "Xeon", "threads": 16 }
    }))
    .expect("an outcome as the worker writes it");
    earlier.beside(&outcome);
}
