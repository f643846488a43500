//! Learned values of each GPU are kept when the process ends.

use std::{fs, path::Path};

use serde_json::Value;

use crate::support::{Fake, Server, eventually, stderr};

const BUSY: &str = "[[gpu]]\nindex = 0\nutilization_percent = 90\npower_watts = 400\n";

/// Returns the seconds of load that were observed on the only GPU.
fn seconds_in(file: &Path) -> Option<f64> {
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
fn a_collector_goes_on_with_what_was_learned_before_and_a_broken_file_costs_no_reading() {
    let fake = Fake::new(BUSY);
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
        let output = fake.gpumon(&arguments).output().unwrap();
        let said = stderr(&output);
        assert!(output.status.success(), "{said}");
        assert_eq!(
            said.contains("learned.json is not used"),
            is_broken,
            "{said}"
        );
        let seconds = seconds_in(&file).unwrap();
        assert!(seconds > learned_s + 5.0, "{seconds} after {learned_s}");
        learned_s = seconds;
    }
}

#[test]
fn a_killed_server_keeps_what_was_learned() {
    let fake = Fake::new(BUSY);
    let folder = fake.path("data");
    let file = folder.join("learned.json");
    let has_learned = || seconds_in(&file) > Some(5.0);
    // On a busy machine, there are fewer samples to learn from, and the collector may have no time
    // to write the file. So the next server continues with the same file.
    for _ in 0..8 {
        if has_learned() {
            return;
        }
        let mut server = Server::over(
            &fake,
            &[
                "--interval-ms",
                "100",
                "--data-dir",
                folder.to_str().unwrap(),
            ],
        );
        // Without clients, the collector learns and saves every ten seconds. After 21 seconds, it
        // has saved at least once.
        let mut first_ms = None;
        eventually("enough is known", || {
            let at_ms = server.get("/api/v1/usage").json()["at_ms"].as_u64();
            // The time is zero until the first sample.
            let at_ms = at_ms.filter(|at_ms| *at_ms > 0);
            first_ms = first_ms.or(at_ms);
            at_ms.is_some() && at_ms >= first_ms.map(|first| first + 21_000)
        });
        let collector = server.collector().expect("it has answered");
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        eventually("the collector has ended", || {
            !Path::new(&format!("/proc/{collector}")).exists()
        });
    }
    assert!(has_learned(), "{:?}", seconds_in(&file));
}
