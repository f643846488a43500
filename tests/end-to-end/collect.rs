//! The records of `gpumon collect`.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use crate::support::{FakeNvml, parse_json_lines, stdout_text};

#[test]
fn inventory_is_followed_by_numbered_samples() {
    let fake = FakeNvml::new("gpus = 3");
    let output = fake
        .gpumon_command(&["collect", "--count", "3", "--interval-ms", "1000"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let mut lines = parse_json_lines(&stdout_text(&output));
    assert_eq!(lines[0]["type"], "inventory");
    let details: Vec<_> = lines
        .iter()
        .filter(|line| line["type"] == "details")
        .map(|line| &line["index"])
        .collect();
    assert_eq!(
        details.len(),
        3,
        "slowly changing values are sent every ten seconds: {details:?}"
    );
    // The collector sends a second inventory as soon as it knows the links of the GPUs. The output
    // may also contain events and traces.
    let (mut samples, mut seen) = (0, false);
    lines.retain(|line| {
        samples += u32::from(line["type"] == "sample");
        line["type"] == "sample"
            || (line["type"] == "inventory" && !std::mem::replace(&mut seen, true))
    });
    assert_eq!(samples, 3);
    assert_eq!(lines[0]["gpus"].as_array().unwrap().len(), 3);
    for (seq, sample) in lines[1..].iter().enumerate() {
        assert_eq!(sample["seq"], seq);
        assert_eq!(sample["interval_ms"], 1000);
    }
    assert_eq!(
        lines[1]["host"]["network"]["received_bytes_per_second"]["absent"],
        "warming_up"
    );
}

#[test]
fn network_rate_is_reported_after_two_readings() {
    let fake = FakeNvml::new("");
    let mut command = fake.gpumon_command(&["collect", "--count", "60", "--interval-ms", "1000"]);
    let mut collector = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(collector.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let has_rate = lines.any(|line| {
        let rate = &serde_json::from_str::<Value>(&line).unwrap()["host"]["network"]["received_bytes_per_second"];
        rate.is_number() || rate["value"].is_number()
    });
    collector.kill().unwrap();
    collector.wait().unwrap();
    assert!(has_rate);
}

#[test]
fn hardware_counters_report_activity_after_two_samples() {
    let scenario = "[[gpu]]\nindex = 0\nnvlinks = 18\nutilization_percent = 80\n";
    let collect = |fake: &FakeNvml| {
        let output = fake
            .gpumon_command(&["collect", "--count", "3", "--interval-ms", "1000"])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            crate::support::stderr_text(&output)
        );
        let mut lines = parse_json_lines(&stdout_text(&output));
        lines.retain(|line| line["type"] == "sample");
        lines
            .into_iter()
            .map(|line| line["gpus"][0].clone())
            .collect::<Vec<_>>()
    };
    let samples = collect(&FakeNvml::new(scenario));
    assert_eq!(samples[0]["activity"]["absent"], "warming_up");
    let activity = &samples[2]["activity"];
    let tensor = activity["tensor_percent"].as_f64().unwrap();
    assert!((tensor - 80.0 * 0.58).abs() < 0.1, "{activity}");
    let received = samples[2]["pcie"]["rx_bytes_per_second"].as_f64().unwrap();
    assert!(
        (received / (80.0 * 2.4e7) - 1.0).abs() < 0.01,
        "the driver's MiB are converted to bytes: {received}"
    );
    assert!(samples[2]["nvlink"]["tx_bytes_per_second"].is_number());
    // For GPUs without links, the hardware counters report 0, but gpumon must report
    // `not_supported`.
    let samples = collect(&FakeNvml::new("gpus = 1"));
    assert_eq!(
        samples[2]["nvlink"]["tx_bytes_per_second"]["absent"],
        "not_supported"
    );

    // If a library cannot free GPM samples, none are requested.
    let samples = collect(&FakeNvml::without_functions(
        scenario,
        &["nvmlGpmSampleFree"],
    ));
    assert_eq!(samples[2]["activity"]["absent"], "not_supported");
    assert!(samples[2]["power"]["draw_watts"].is_number());
}

#[test]
fn board_without_gpm_has_link_rates() {
    let scenario =
        "[[gpu]]\nindex = 0\narchitecture = \"ampere\"\nnvlinks = 12\nutilization_percent = 50\n";
    let output = FakeNvml::new(scenario)
        .gpumon_command(&["collect", "--count", "5", "--interval-ms", "1000"])
        .output()
        .unwrap();
    let mut lines = parse_json_lines(&stdout_text(&output));
    lines.retain(|line| line["type"] == "sample");
    let gpu = &lines[4]["gpus"][0];
    assert_eq!(gpu["activity"]["absent"], "not_supported");
    let nvlink = gpu["nvlink"]["tx_bytes_per_second"]["value"]
        .as_f64()
        .unwrap();
    assert!(
        (nvlink / (50.0 * 4.1e8) - 1.0).abs() < 0.1,
        "the driver's KiB are converted to bytes: {gpu}"
    );
    let pcie = gpu["pcie"]["rx_bytes_per_second"]["value"]
        .as_f64()
        .unwrap();
    assert!(
        (pcie / (50.0 * 2.4e7) - 1.0).abs() < 0.1,
        "the driver's KB are converted to bytes: {gpu}"
    );
}

#[test]
fn threads_call_gpm_functions_one_at_a_time() {
    let fake = FakeNvml::new("gpus = 16\n");
    let mut command = fake.gpumon_command(&["collect", "--count", "150", "--interval-ms", "200"]);
    let mut collector = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(collector.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let has_all = lines.any(|line| {
        let sample = serde_json::from_str::<Value>(&line).unwrap();
        let gpus = sample["gpus"].as_array().filter(|gpus| gpus.len() == 16);
        gpus.is_some_and(|gpus| gpus.iter().all(|gpu| gpu["activity"]["absent"].is_null()))
    });
    collector.kill().unwrap();
    collector.wait().unwrap();
    assert!(has_all);
}

#[test]
fn energy_counter_matches_power_over_time() {
    let fake = FakeNvml::new("[[gpu]]\nindex = 0\npower_watts = 500\n");
    let output = fake
        .gpumon_command(&["collect", "--count", "7", "--interval-ms", "1000"])
        .output()
        .unwrap();
    let mut lines = parse_json_lines(&stdout_text(&output));
    lines.retain(|line| line["type"] == "sample");
    let (first, last) = (&lines[0]["gpus"][0], &lines[lines.len() - 1]["gpus"][0]);
    // The counter is only read every five seconds. Samples in between contain the old reading, and
    // the time at which it was read.
    let counter = |gpu: &Value| {
        let reading = &gpu["power"]["energy_joules_total"];
        match reading.as_f64() {
            Some(joules) => (joules, gpu["at_ms"].as_f64().unwrap()),
            None => (
                reading["value"].as_f64().unwrap(),
                reading["at_ms"].as_f64().unwrap(),
            ),
        }
    };
    let ((begun_joules, begun_ms), (joules, at_ms)) = (counter(first), counter(last));
    let watts = (joules - begun_joules) / ((at_ms - begun_ms) / 1000.0);
    // The counter only changes every 100 ms. This causes an error of up to 2 % in 5 s.
    assert!(
        (watts / 500.0 - 1.0).abs() < 0.05,
        "the mean power is {watts} W"
    );
}

#[test]
fn closed_pipe_ends_collector_quietly() {
    let fake = FakeNvml::new("gpus = 1");
    let mut child = fake
        .gpumon_command(&["collect", "--interval-ms", "100"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert_eq!(output.stderr, b"");
}
