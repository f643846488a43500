//! The causes that limit the work of a GPU: the example in the guide "Why is it slow?", and GPUs
//! without limits.

use std::{fs, ops::RangeInclusive};

use serde_json::Value;

use crate::{
    docs::find_files,
    support::{gpumon_command, parse_json_lines, stderr_text, stdout_text},
};

/// The main cause of each GPU of the guide's scenario, and the range of its share in percent.
const EXPECTED: [(&str, RangeInclusive<f64>); 12] = [
    ("idle", 99.0..=100.0),
    ("host", 79.0..=81.0),
    ("input", 89.0..=91.0),
    ("transfer", 99.0..=100.0),
    ("communication", 99.0..=100.0),
    ("tensor", 75.0..=85.0),
    ("memory", 80.0..=95.0),
    ("compute", 80.0..=95.0),
    ("latency", 75.0..=90.0),
    ("power", 55.0..=65.0),
    ("shared", 45.0..=55.0),
    ("unknown", 75.0..=90.0),
];

/// The causes that need hardware counters.
const COUNTED: [&str; 5] = ["communication", "memory", "tensor", "compute", "latency"];

/// Returns the samples of simulated GPUs.
fn collect_samples(scenario: &str, count: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    fs::write(&file, scenario).unwrap();
    let source = format!("sim:{}", file.display());
    let output = gpumon_command(&["--source", &source, "collect", "--count", count])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    let mut records = parse_json_lines(&stdout_text(&output));
    records.retain(|record| record["type"] == "sample");
    records
}

/// Returns the limits of a GPU, which may be older than the sample.
fn find_limits(sample: &Value, gpu: usize) -> &Value {
    let limits = &sample["gpus"][gpu]["limits"];
    limits.get("value").unwrap_or(limits)
}

#[test]
fn documented_example_shows_every_cause() {
    let page = include_str!("../../docs/guides/why-is-it-slow.md");
    let (_, scenario) = find_files(page)
        .find(|(name, _)| *name == "slow.toml")
        .unwrap();
    let samples = collect_samples(scenario, "5");
    let sample = samples.last().unwrap();
    assert_eq!(sample["gpus"].as_array().unwrap().len(), EXPECTED.len());
    for (gpu, (main, range)) in EXPECTED.into_iter().enumerate() {
        let limits = find_limits(sample, gpu);
        assert_eq!(limits["main"], main, "{limits}");
        let share = |cause: &str| &limits[format!("{cause}_percent")];
        assert!(range.contains(&share(main).as_f64().unwrap()), "{limits}");
        let sum: f64 = EXPECTED
            .iter()
            .filter_map(|(cause, _)| share(cause).as_f64())
            .sum();
        assert!((99.0..=101.0).contains(&sum), "{limits}");
        for cause in COUNTED {
            let is_absent = share(cause)["absent"] == "not_supported";
            assert_eq!(is_absent, main == "unknown", "{cause}: {limits}");
        }
        // The input of this machine may add a sentence.
        let text = page
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{main}: ")))
            .unwrap();
        assert!(
            limits["text"].as_str().unwrap().starts_with(text),
            "{text}: {limits}"
        );
    }
    let waiting = &find_limits(sample, 4)["evidence"];
    assert_eq!(waiting["slow_gpu"], 5, "{waiting}");
    assert!(waiting["wait_ms"].as_u64().unwrap() > 900, "{waiting}");
    let owners = &find_limits(sample, 10)["owners"];
    for (owner, pid) in [5_000_010, 5_000_011].into_iter().enumerate() {
        assert_eq!(owners[owner]["pids"][0], pid, "{owners}");
        let first = &owners[owner]["limits"]["shares"][0];
        assert_eq!(first["cause"], "shared", "{owners}");
    }
}

#[test]
fn lost_or_divided_gpu_has_no_limits() {
    let scenario = r#"
        gpus = 3
        [[fault]]
        gpu = 0
        kind = "lost"
        from_s = 3
        [[gpu]]
        index = 1
        mig = [{ profile = "3g.71gb", gpu_instance = 1 }]
    "#;
    let samples = collect_samples(scenario, "7");
    let has_limits = |sample: &Value, gpu| find_limits(sample, gpu)["main"].is_string();
    assert!(samples.iter().any(|sample| has_limits(sample, 0)));
    let last = samples.last().unwrap();
    assert_eq!(find_limits(last, 0)["absent"], "gpu_lost");
    assert!(find_limits(last, 1).is_null() && has_limits(last, 2));
}
