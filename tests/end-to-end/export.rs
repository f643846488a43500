//! `gpumon export` of MIG devices and the host, from a recording and from history.

use serde_json::Value;

use crate::support::{
    FakeNvml, Server, assert_refused, parse_json_lines, stderr_text, stdout_text,
    wait_for_condition,
};

const SCENARIO: &str = "[[gpu]]\nindex = 0\n[[gpu]]\nindex = 1\n\
                        mig = [[0, [{ profile = \"3g.71gb\", gpu_instance = 2 }, \
                        { profile = \"1g.18gb\", gpu_instance = 7 }]]]\n";
const METRICS: &str =
    "power.draw_watts,mig.memory.total_bytes,host.cpu.busy_percent,host.memory.used_bytes";

/// Checks the JSON rows of GPUs, MIG devices and the host, and the columns in CSV.
#[track_caller]
fn check_export(fake: &FakeNvml, of: &[&str]) {
    let run = |more: &[&str]| {
        let output = fake
            .gpumon_command(&[&["export"], of, more].concat())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{of:?} {more:?}: {}",
            stderr_text(&output)
        );
        stdout_text(&output)
    };
    let rows = parse_json_lines(&run(&["--format", "ndjson", "--metrics", METRICS]));
    let first = rows
        .iter()
        .take_while(|row| row["time_ms"] == rows[0]["time_ms"])
        .collect::<Vec<_>>();
    let kinds: Vec<_> = first
        .iter()
        .map(|row| row["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["gpu", "gpu", "mig", "mig", "host"], "{first:?}");
    assert!(
        first[0]["power_draw_watts"].is_number() && first[0]["host_memory_used_bytes"].is_null(),
        "{first:?}"
    );
    for mig in &first[2..4] {
        assert!(
            mig["uuid"].as_str().unwrap().starts_with("MIG-") && mig["parent"] == first[1]["uuid"],
            "{mig}"
        );
        assert!(
            mig["mig_memory_total_bytes"].as_f64() > Some(1e9) && mig["power_draw_watts"].is_null(),
            "{mig}"
        );
    }
    let mut profiles: Vec<_> = first[2..4]
        .iter()
        .map(|mig| mig["name"].as_str().unwrap())
        .collect();
    profiles.sort_unstable();
    assert_eq!(profiles, ["1g.18gb", "3g.71gb"]);
    let host = first[4];
    assert!(
        host["host_memory_used_bytes"].as_f64() > Some(1e6) && host["uuid"] == Value::Null,
        "{host}"
    );

    let csv = run(&["--metrics", "host.memory.total_bytes"]);
    let mut lines = csv.lines();
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("time,time_ms,index,uuid,name,kind,parent,host_memory_total_bytes")
    );
    assert!(
        csv.lines().count() > 1 && lines.all(|line| line.contains(",,,,host,,")),
        "{csv}"
    );
    // If no fields of the host or of MIG devices are selected, the CSV has no columns for the host
    // or for MIG devices.
    let plain = run(&["--metrics", "power"]);
    let header = plain.lines().next().unwrap();
    assert!(
        !header.contains("kind") && !header.contains("host_") && !plain.contains("MIG-"),
        "{plain}"
    );
}

#[test]
fn mig_devices_and_host_are_exported_if_requested() {
    let fake = FakeNvml::new(SCENARIO);
    let source = format!("sim:{}", fake.path("scenario.toml").display());
    let [recording, folder] =
        ["a.gz", "history"].map(|name| fake.path(name).to_str().unwrap().to_owned());
    let arguments = [
        "--source",
        &source,
        "record",
        &recording,
        "--interval-ms",
        "200",
        "--duration",
        "2s",
    ];
    let recorded = fake.gpumon_command(&arguments).output().unwrap();
    assert!(recorded.status.success(), "{}", stderr_text(&recorded));
    check_export(&fake, &[&recording]);

    let mut server = Server::start_with_fake(
        &fake,
        &[
            "--source",
            &source,
            "--interval-ms",
            "200",
            "--data-dir",
            &folder,
        ],
    );
    wait_for_condition("the server has a history", || {
        server.get("/api/v1/history").json()["times_ms"]
            .as_array()
            .unwrap()
            .len()
            > 2
    });
    check_export(&fake, &[]);
    server.terminate();
    check_export(&fake, &["--data-dir", &folder]);
    let none = ["export", "--data-dir", &folder, "--metrics", "fan"];
    assert_refused(fake.gpumon_command(&none), 1, "choose from the readings");
}
