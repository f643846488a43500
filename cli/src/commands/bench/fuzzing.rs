//! Fuzz target that reads a file of earlier results, which may be untrusted.

use std::path::Path;

use gpumon_workload::protocol::RunOutcome;
use serde_json::{Value, json};

use super::baseline::EarlierResults;

/// Reads the results in `earlier` and compares a fixed outcome with them.
pub(crate) fn compare_with_file(earlier: &Path) {
    let Ok(earlier) = EarlierResults::read(earlier) else {
        return;
    };
    earlier.compare_with(&make_outcome("GPU-a", 100.0));
}

fn make_times(median_us: f64) -> Value {
    json!({
        "median_us": median_us, "low_us": median_us - 1.0, "high_us": median_us + 1.0, "p5_us": median_us - 2.0,
        "p95_us": median_us + 2.0, "min_us": median_us - 3.0, "n": 20
    })
}

/// Returns a verified outcome of the workload `copy` on a GPU, with `median_us` as its device time.
pub(crate) fn make_outcome(uuid: &str, median_us: f64) -> RunOutcome {
    serde_json::from_value(json!({
        "id": "copy", "backend": "cuda", "device": { "index": 0, "name": "NVIDIA H200", "uuid": uuid },
        "dtype": "fp32", "n": 1 << 28, "extent": "elements", "memory_bytes": 2_u64 << 30, "host_bytes": 0,
        "moved_bytes": 2_u64 << 30, "operations": 0, "device_time": make_times(median_us),
        "host_time": make_times(median_us + 10.0), "stopped": "steady", "partial": false,
        "rate": { "bytes_per_second": 4.29e12 },
        "roofline": { "limit": "memory", "rated_per_second": 4.917e12, "share": 0.872 },
        "verify": { "ok": true, "checked": 5, "wrong": 0, "largest_error": 0.0, "tolerance": 0.0 },
        "environment": { "from_ms": 1, "to_ms": 2, "gpumon": "0.1.0", "cpu": "Xeon", "threads": 16 }
    }))
    .expect("the outcome has the worker's format")
}
