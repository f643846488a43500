//! Entry points for fuzz targets. Each entry point takes a file with arbitrary content, which may
//! be untrusted. This module also creates an outcome of a workload, for the entry points and for
//! unit tests.

use std::path::Path;

use gpumon_workload::protocol::RunOutcome;
use serde_json::{Value, json};

use crate::commands::bench::EarlierResults;

/// Opens and plays a recording as `gpumon replay` does.
pub fn replay(recording: &Path) {
    crate::top::fuzzing::fuzz_replay(recording);
}

/// Parses a settings file as every command does, and formats its mistakes.
///
/// # Panics
/// Panics if a mistake has an empty message.
pub fn parse_settings(file: &Path) {
    for (_, parsed) in crate::config::read_and_parse_files(Some(file)).0 {
        assert!(
            parsed
                .mistakes
                .iter()
                .all(|mistake| !mistake.error.to_string().is_empty())
        );
    }
}

/// Reads a notebook with the code of `gpumon notebook report`, and writes both reports.
pub fn report_notebook(file: &Path) {
    crate::commands::notebook::read_and_format(file);
}

/// Reads earlier results as `gpumon bench --compare` does, and compares a fixed outcome with them.
pub fn compare(earlier: &Path) {
    if let Ok(earlier) = EarlierResults::read(earlier) {
        earlier.compare_with(&make_outcome("GPU-a", 100.0));
    }
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
