//! The diagnostics of `gpumon doctor`.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    time::Instant,
};

use serde_json::Value;

use crate::support::{
    FakeNvml, Server, TEST_TIMEOUT, gpumon_command, send_socket_request, stderr_text, stdout_text,
};

/// GPUs without processes, because the PIDs of simulated processes do not exist.
const IDLE_GPUS: &str =
    "[[gpu]]\nindex = 0\nprofile = \"idle\"\n[[gpu]]\nindex = 1\nprofile = \"idle\"\n";

fn parse_json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", stderr_text(output)))
}

/// Returns the verdicts of all findings of this check.
fn find_verdicts(report: &Value, check: &str) -> Vec<String> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks
        .filter(|found| found["check"] == check)
        .map(|found| found["verdict"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn doctor_on_healthy_machine_shows_readings_and_succeeds() {
    let fake = FakeNvml::without_functions(IDLE_GPUS, &["nvmlDeviceGetEncoderUtilization"]);
    let output = fake.gpumon_command(&["doctor", "--json"]).output().unwrap();
    let report = parse_json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(report["well"], true);
    assert_eq!(find_verdicts(&report, "driver"), ["ok"]);
    assert_eq!(find_verdicts(&report, "gpu 1")[0], "ok");
    assert_eq!(find_verdicts(&report, "processes"), ["ok"]);
    let library = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|found| found["check"] == "library")
        .unwrap();
    assert!(
        library["finding"]
            .as_str()
            .unwrap()
            .contains(fake.path("").to_str().unwrap()),
        "{library}"
    );
    let readings = &report["readings"];
    assert!(
        readings["present"]
            .as_array()
            .unwrap()
            .contains(&"power.draw_watts".into()),
        "{readings}"
    );
    let missing = readings["missing"].as_array().unwrap();
    let group = missing.iter().find(|group| {
        group["readings"]
            .as_array()
            .unwrap()
            .contains(&"utilization.encoder_percent".into())
    });
    let group = group.expect("a hidden function must be reported as a missing reading");
    assert_eq!(group["reason"], "not supported by this board or driver");
    assert_eq!(group["gpus"], serde_json::json!([0, 1]));

    let text = stdout_text(&fake.gpumon_command(&["doctor"]).output().unwrap());
    assert!(
        text.contains("ok       gpu 0") && text.contains("no problems found"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(
        text.contains("not supported by this board or driver")
            && text.contains("utilization.encoder_percent"),
        "{text}"
    );
}

#[test]
fn driver_newer_than_tested_is_noted() {
    let fake = FakeNvml::new(&format!(
        "[answers]\nnvmlSystemGetDriverVersion = \"9999.1\"\n{IDLE_GPUS}"
    ));
    let output = fake.gpumon_command(&["doctor", "--json"]).output().unwrap();
    assert_eq!(
        (
            output.status.code(),
            find_verdicts(&parse_json(&output), "nvidia-smi")
        ),
        (Some(0), vec!["note".to_owned()])
    );
    let table = stdout_text(&fake.gpumon_command(&["smi"]).output().unwrap());
    assert!(table.contains("KMD Version: 9999.1 "), "{table}");
}

#[test]
fn hanging_and_lost_gpus_are_reported_in_time() {
    // GPU 3 hangs after its first reading. The second reading only begins two seconds after the
    // first, because gpumon waits for GPU 1, which does not respond.
    let scenario = "gpus = 4\n[[fault]]\ngpu = 1\nkind = \"hang\"\n[[fault]]\ngpu = 2\nkind = \
                    \"lost\"\n[[fault]]\ngpu = 3\nkind = \"hang\"\nfrom_s = 1.5\n";
    let fake = FakeNvml::new(scenario);
    let begun = Instant::now();
    let output = fake.gpumon_command(&["doctor", "--json"]).output().unwrap();
    assert!(
        begun.elapsed() < TEST_TIMEOUT,
        "the command took {:?}",
        begun.elapsed()
    );
    let report = parse_json(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(report["well"], false);
    for (check, verdict) in [
        ("gpu 0", "ok"),
        ("gpu 1", "problem"),
        ("gpu 2", "problem"),
        ("gpu 3", "problem"),
    ] {
        assert_eq!(
            find_verdicts(&report, check)[0],
            verdict,
            "{check} in {report:#}"
        );
    }
    assert_eq!(find_verdicts(&report, "server"), ["note"]);
    let text = stdout_text(
        &fake
            .gpumon_command(&["doctor", "--control=/nowhere/x.sock"])
            .output()
            .unwrap(),
    );
    assert!(
        text.contains("has fallen off the bus") && text.contains("3 problems"),
        "{text}"
    );
    assert!(
        text.contains("note     server        none at /nowhere/x.sock (No such file"),
        "{text}"
    );
}

#[test]
fn missing_driver_sets_exit_code_after_other_checks() {
    for (scenario, code, check) in [
        ("gpus = 0", 6, "gpus"),
        ("init_error = { code = 9 }", 9, "driver"),
        ("init_error = { code = 18 }", 18, "driver"),
        ("init_error = { code = 4 }", 4, "driver"),
    ] {
        let fake = FakeNvml::new(scenario);
        let output = fake.gpumon_command(&["doctor", "--json"]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{scenario}");
        assert_eq!(stderr_text(&output), "", "all findings are in the report");
        let report = parse_json(&output);
        assert_eq!(find_verdicts(&report, check), ["problem"], "{report:#}");
        let found = report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|found| found["verdict"] == "problem")
            .unwrap();
        assert!(found["cure"].is_string());
        assert_eq!(find_verdicts(&report, "kernel log").len(), 1);
    }
    let output = gpumon_command(&["--nvml-lib", "/nowhere/libnvidia-ml.so.1", "doctor"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(12));
    let text = stdout_text(&output);
    assert!(
        text.contains("problem  library") && text.contains("--source"),
        "{text}"
    );
}

#[test]
fn hanging_driver_does_not_block_doctor() {
    let fake = FakeNvml::new("gpus = 1\n[[fault]]\nkind = \"hang\"\ncall = \"nvmlInit_v2\"\n");
    let begun = Instant::now();
    let output = fake.gpumon_command(&["doctor", "--json"]).output().unwrap();
    assert!(
        begun.elapsed() < TEST_TIMEOUT,
        "the command took {:?}",
        begun.elapsed()
    );
    assert_eq!(output.status.code(), Some(1));
    let report = parse_json(&output);
    assert_eq!(find_verdicts(&report, "driver"), ["problem"]);
    assert_eq!(find_verdicts(&report, "server").len(), 1);
}

#[test]
fn processes_missing_in_proc_cause_warning() {
    let fake =
        FakeNvml::new("gpus = 1\n[[process]]\ngpu = 0\npid = 4100000000\nmemory = \"1 GiB\"\n");
    let output = fake.gpumon_command(&["doctor", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report = parse_json(&output);
    assert_eq!(
        find_verdicts(&report, "processes"),
        ["warning"],
        "{report:#}"
    );
    assert!(stdout_text(&output).contains("--pid=host"));
}

#[test]
fn running_server_is_reported_with_state() {
    let fake = FakeNvml::new(IDLE_GPUS);
    let server = Server::start_with_fake(&fake, &[]);
    crate::support::wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    let found = || {
        let report = parse_json(&fake.gpumon_command(&["doctor", "--json"]).output().unwrap());
        let found = report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|found| found["check"] == "server")
            .cloned();
        found.unwrap()
    };
    let running = found();
    assert_eq!(running["verdict"], "ok");
    assert!(
        running["finding"]
            .as_str()
            .unwrap()
            .contains("control.sock"),
        "{running}"
    );
    assert_eq!(
        send_socket_request(&fake.control_path(), "POST /api/v1/pause").status,
        200
    );
    let paused = found();
    assert_eq!(paused["verdict"], "note");
    assert_eq!(paused["cure"], "`gpumon resume`");
}

#[test]
fn simulated_gpus_are_labeled() {
    let output = gpumon_command(&["--source", "sim:2", "doctor", "--control", "/nowhere/x"])
        .output()
        .unwrap();
    let text = stdout_text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("simulated") && !text.contains("library"),
        "{text}"
    );
}

#[test]
fn package_of_same_name_causes_warning() {
    // The folder is next to the program, because hard links only work within one file system. A
    // symbolic link would not do, because gpumon would follow it to its original folder.
    let program = Path::new(env!("CARGO_BIN_EXE_gpumon"));
    let environment = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    let installed = environment.path().join("bin/gpumon");
    fs::create_dir(environment.path().join("bin")).unwrap();
    fs::hard_link(program, &installed).unwrap();
    let verdicts_there = || {
        let output = Command::new(&installed)
            .args(["--source", "sim:1", "doctor", "--json"])
            .output()
            .unwrap();
        find_verdicts(&parse_json(&output), "package")
    };
    assert!(verdicts_there().is_empty());
    let packages = environment.path().join("lib/python3.11/site-packages");
    fs::create_dir_all(packages.join("gpumon-0.0.11.dist-info")).unwrap();
    assert_eq!(verdicts_there(), ["warning"]);
}

/// Returns the finding and the remedy of every check that is not ok.
fn find_complaints(report: &Value, check: &str) -> Vec<(String, String)> {
    let found = report["checks"].as_array().unwrap().iter();
    let found = found.filter(|found| found["check"] == check && found["verdict"] != "ok");
    let text = |found: &Value, key: &str| found[key].as_str().unwrap_or_default().to_owned();
    found
        .map(|found| (text(found, "finding"), text(found, "cure")))
        .collect()
}

#[test]
fn missing_permission_does_not_cause_destructive_advice() {
    let devices = "gpus = 2\n[[fault]]\nkind = \"returns\"\ngpu = 1\ncall = \
                   \"nvmlDeviceGetHandleByIndex_v2\"\ncode = 4\n";
    let mig = "gpus = 1\n[returns]\nnvmlDeviceGetMigDeviceHandleByIndex = 4\n[[gpu]]\nindex = 0\n\
               mig = [{ profile = \"3g.71gb\", gpu_instance = 2 }]\n";
    for (scenario, check, finding) in [
        (devices, "gpu 1", "denies access to this user"),
        (mig, "gpu 0", "this user cannot access any MIG device"),
    ] {
        let report = parse_json(
            &FakeNvml::new(scenario)
                .gpumon_command(&["doctor", "--json"])
                .output()
                .unwrap(),
        );
        let complaints = find_complaints(&report, check);
        let own = complaints.iter().find(|(found, _)| found.contains(finding));
        assert!(own.is_some_and(|(_, cure)| !cure.is_empty()), "{report:#}");
        for (_, cure) in &complaints {
            for word in ["reset", "reboot", "mig -cgi", "disable"] {
                assert!(!cure.contains(word), "{cure}");
            }
        }
    }
}

#[test]
fn hidden_mig_devices_are_absent_with_reason() {
    let mig = "mig = [{ profile = \"1g.18gb\", gpu_instance = 7 }, { profile = \"1g.18gb\", \
               gpu_instance = 8 }]\n";
    let fault = "[[fault]]\nkind = \"returns\"\ngpu = 0\ncall = \
                 \"nvmlDeviceGetMigDeviceHandleByIndex\"\ncode = 4\n";
    let hidden = FakeNvml::new(&format!("[[gpu]]\nindex = 0\n{mig}{fault}")).read_json();
    assert_eq!(
        hidden["sample"]["gpus"][0]["mig_devices"]["absent"], "no_permission",
        "{hidden:#}"
    );
    let shown = FakeNvml::new(&format!("[[gpu]]\nindex = 0\n{mig}")).read_json();
    assert_eq!(
        shown["sample"]["gpus"][0]["mig_devices"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn unknown_error_at_driver_start_is_explained() {
    let output = FakeNvml::new("init_error = { code = 999 }")
        .gpumon_command(&["doctor", "--json"])
        .output()
        .unwrap();
    let complaints = find_complaints(&parse_json(&output), "driver");
    assert!(
        complaints[0]
            .0
            .contains("NVML error 999 (an unknown error)"),
        "{complaints:?}"
    );
    assert!(
        complaints[0].1.contains("dmesg") || complaints[0].1.contains("daemon-reload"),
        "{complaints:?}"
    );
}

#[test]
fn driver_older_than_tested_is_noted() {
    let fake = FakeNvml::new(&format!(
        "[answers]\nnvmlSystemGetDriverVersion = \"470.256.02\"\n{IDLE_GPUS}"
    ));
    let output = fake.gpumon_command(&["doctor", "--json"]).output().unwrap();
    let complaints = find_complaints(&parse_json(&output), "driver");
    assert_eq!(output.status.code(), Some(0), "{complaints:?}");
    assert!(
        complaints[0].0.contains(
            "driver 470.256.02 is older than 580, the oldest driver that gpumon was tested with"
        ),
        "{complaints:?}"
    );
}
