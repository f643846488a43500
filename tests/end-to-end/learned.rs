//! Learned values of each GPU are kept when the process ends.

use std::{fs, path::Path};

use serde_json::Value;

use crate::support::{FakeNvml, Server, stderr_text, wait_for_condition};

const BUSY_GPU: &str = "[[gpu]]\nindex = 0\nutilization_percent = 90\npower_watts = 400\n";

/// Returns the seconds of load that were observed on the only GPU.
fn learned_seconds(file: &Path) -> Option<f64> {
    let content: Value = serde_json::from_str(&fs::read_to_string(file).ok()?).unwrap();
    let [gpu] = &content["gpus"].as_object()?.values().collect::<Vec<_>>()[..] else {
        panic!("{content}")
    };
    Some(
        gpu["baseline"]["bands"]
            .as_object()?
            .values()
            .map(|band| band["seconds"].as_f64().unwrap())
            .sum(),
    )
}

/// A collector reports its learned values every ten seconds.
#[test]
fn collector_starts_with_valid_or_damaged_learned_values() {
    let fake = FakeNvml::new(BUSY_GPU);
    let file = fake.path("learned.json");
    fs::write(&file, "{\"version\":1,\"gpus\":{\"GPU-").unwrap();
    let mut learned_s = 0.0;
    for is_broken in [true, false] {
        let arguments = [
            "collect",
            "--count",
            "125",
            "--interval-ms",
            "100",
            "--state",
            file.to_str().unwrap(),
        ];
        let output = fake.gpumon_command(&arguments).output().unwrap();
        let said = stderr_text(&output);
        assert!(output.status.success(), "{said}");
        assert_eq!(
            said.contains("learned.json cannot be used"),
            is_broken,
            "{said}"
        );
        let seconds = learned_seconds(&file).unwrap();
        assert!(seconds > learned_s + 5.0, "{seconds} after {learned_s}");
        learned_s = seconds;
    }
}

#[test]
fn learned_values_survive_killed_server() {
    let fake = FakeNvml::new(BUSY_GPU);
    let folder = fake.path("data");
    let file = folder.join("learned.json");
    let has_learned = || learned_seconds(&file) > Some(5.0);
    // On a busy machine, a collector gets few samples to learn from, and may have no time to write
    // the file. So up to eight servers continue with the same file, one after another.
    for _ in 0..8 {
        if has_learned() {
            return;
        }
        let mut server = Server::start_with_fake(
            &fake,
            &[
                "--interval-ms",
                "100",
                "--data-dir",
                folder.to_str().unwrap(),
            ],
        );
        // Without clients, the collector learns and saves only every ten seconds. So it has saved
        // at least once after 21 seconds.
        let mut first_ms = None;
        wait_for_condition("the learned values were saved", || {
            let at_ms = server.get("/api/v1/usage").json()["at_ms"].as_u64();
            // The time is zero until the first sample.
            let at_ms = at_ms.filter(|at_ms| *at_ms > 0);
            first_ms = first_ms.or(at_ms);
            at_ms.is_some() && at_ms >= first_ms.map(|first| first + 21_000)
        });
        let collector = server.collector_pid().expect("it has answered");
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        wait_for_condition("the collector has ended", || {
            !Path::new(&format!("/proc/{collector}")).exists()
        });
    }
    assert!(has_learned(), "{:?}", learned_seconds(&file));
}
