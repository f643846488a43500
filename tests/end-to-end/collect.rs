//! `gpumon collect`.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use crate::support::{Fake, stdout};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_inventory_comes_first_and_then_numbered_samples() {
    let fake = Fake::new("gpus = 3");
    let output = fake.gpumon(&["collect", "--count", "3", "--interval-ms", "1000"]).output().unwrap();
    assert!(output.status.success());
    let mut lines = lines(&stdout(&output));
    // On a machine with no time to spare even a fake driver can be late, which is an event.
    lines.retain(|line| line["type"] != "event");
    let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["inventory", "sample", "sample", "sample"]);
    assert_eq!(lines[0]["gpus"].as_array().unwrap().len(), 3);
    for (seq, sample) in lines[1..].iter().enumerate() {
        assert_eq!(sample["seq"], seq);
        assert_eq!(sample["interval_ms"], 1000);
    }
    assert_eq!(lines[1]["host"]["network"]["received_bytes_per_second"]["absent"], "warming_up");
    assert!(lines[2]["host"]["network"]["received_bytes_per_second"].is_number());
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let fake = Fake::new("gpus = 1");
    let mut child = fake
        .gpumon(&["collect", "--interval-ms", "100"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert!(output.stderr.is_empty());
}
