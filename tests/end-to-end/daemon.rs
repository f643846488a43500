//! `gpumon` commands that are answered by a running server.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    process::Command,
};

use serde_json::Value;

use crate::support::{
    Fake, Server, copy_program, eventually, gpumon, refused, refused_with, stderr, stdout,
};

/// The user ID of `nobody`.
const NOBODY: u32 = 65_534;

/// Returns a server with at least one sample, and a `Fake` whose commands cannot read GPUs
/// themselves.
fn served(scenario: &str, arguments: &[&str]) -> (Fake, Server) {
    let fake = Fake::new(scenario);
    let server = Server::over(&fake, arguments);
    eventually("it has a sample", || server.get("/readyz").status == 200);
    (fake, server)
}

fn without_library(fake: &Fake, arguments: &[&str]) -> Command {
    let mut command = fake.gpumon(arguments);
    command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
    command
}

#[test]
fn a_server_answers_without_the_driver_and_with_the_past() {
    let (fake, server) = served(
        "gpus = 2\n[[gpu]]\nindex = 0\nutilization_percent = 100",
        &["--interval-ms", "200"],
    );
    eventually("it has a past", || {
        server.get("/api/v1/snapshot?history_s=60").json()["history"]["times_ms"]
            .as_array()
            .unwrap()
            .len()
            > 1
    });
    let output = without_library(&fake, &[]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    let line = table
        .lines()
        .find(|line| line.trim_start().starts_with("0 H200"))
        .unwrap();
    assert!(
        line.contains("100 %") && line.contains('^'),
        "a minute of work: {table}"
    );
    refused(without_library(&fake, &["--no-daemon"]), 12, "");
}

#[test]
fn every_form_comes_from_the_server() {
    let (fake, server) = served("gpus = 2", &["--interval-ms", "200"]);
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    eventually("it knows how they are linked", || {
        !is_empty(&server.get("/api/v1/snapshot").json()["inventory"]["topology"])
    });
    for arguments in [
        &["--short"][..],
        &["--csv"],
        &["--csv", "--processes"],
        &["--json"],
        &["-i", "1"],
    ] {
        let output = without_library(&fake, arguments).output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    let json: Value =
        serde_json::from_slice(&without_library(&fake, &["--json"]).output().unwrap().stdout)
            .unwrap();
    assert!(
        json["details"].as_array().unwrap().len() == 2 && json.get("history").is_none(),
        "{json}"
    );
    let snapshot = server.get("/api/v1/snapshot").json();
    assert_eq!(json["inventory"], snapshot["inventory"]);
    assert_eq!(
        json["collector"]["since_ms"],
        snapshot["collector"]["since_ms"]
    );
}

#[test]
fn what_this_command_names_is_read_and_not_the_server() {
    let (fake, _server) = served("gpus = 2", &["--interval-ms", "200"]);
    let simulated = stdout(&fake.gpumon(&["--source", "sim:1"]).output().unwrap());
    assert!(simulated.contains("simulated  1 x"), "{simulated}");
    refused(
        fake.gpumon(&["--nvml-lib", "/nowhere/libnvidia-ml.so.1"]),
        12,
        "/nowhere",
    );
}

#[test]
fn a_server_that_reads_nothing_is_passed_over_unless_it_was_insisted_on() {
    let (fake, _server) = served("gpus = 1", &["--interval-ms", "200"]);
    assert!(fake.gpumon(&["pause"]).output().unwrap().status.success());
    assert!(
        fake.gpumon(&[]).output().unwrap().status.success(),
        "the GPUs are read here"
    );
    let control = fake.control();
    let mut insisted = fake.gpumon(&["--control", control.to_str().unwrap()]);
    insisted.env_remove("GPUMON_CONTROL");
    refused_with(insisted, 1, &["paused", "--no-daemon"]);
}

#[test]
fn a_server_that_was_named_and_is_not_there_is_an_error() {
    refused(
        gpumon(&["--control", "/nowhere/gpumon.sock"]),
        1,
        "/nowhere/gpumon.sock",
    );
    refused(
        gpumon(&["--control", "/nowhere/gpumon.sock", "--no-daemon"]),
        2,
        "",
    );
    let fake = Fake::new("gpus = 1");
    assert!(
        fake.gpumon(&[]).output().unwrap().status.success(),
        "a variable names it for when it is there"
    );
    assert!(
        fake.gpumon(&["--no-daemon"])
            .output()
            .unwrap()
            .status
            .success()
    );
}

#[test]
fn simulated_gpus_of_a_server_are_not_taken_for_this_machine_s() {
    let runtime = tempfile::tempdir().unwrap();
    fs::set_permissions(runtime.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let program = runtime.path().join("gpumon");
    copy_program(env!("CARGO_BIN_EXE_gpumon"), &program);
    // For root, there is only one default socket on the machine, so the test runs as another user.
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        chown(runtime.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command
            .args(arguments)
            .env_remove("GPUMON_CONTROL")
            .env_remove("GPUMON_SOURCE");
        command
            .env("XDG_RUNTIME_DIR", runtime.path())
            .env("XDG_CONFIG_HOME", runtime.path());
        command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
        if is_root {
            command.uid(NOBODY);
        }
        command
    };
    let server = Server::start(run(&[
        "--source",
        "sim:3",
        "serve",
        "--listen",
        "127.0.0.1:0",
    ]));
    eventually("it has a sample", || server.get("/readyz").status == 200);
    let socket = runtime.path().join("gpumon.sock");
    eventually("the server that was named answers", || {
        let named = run(&["--control", socket.to_str().unwrap()]).output();
        stdout(&named.unwrap()).contains("simulated  3 x")
    });
    let found = run(&[]).output().unwrap();
    assert_eq!(found.status.code(), Some(12), "{}", stdout(&found));
}

#[test]
fn history_is_given_as_far_as_it_is_asked_for() {
    let (_fake, server) = served("gpus = 1", &["--interval-ms", "200"]);
    let history = || {
        server
            .get("/api/v1/snapshot?history_s=60&metrics=power.draw_watts&brief=true")
            .json()
    };
    eventually("there is a past", || {
        history()["history"]["gpus"][0]["metrics"].is_object()
    });
    let history = history();
    assert_eq!(history["details"].as_array().unwrap().len(), 0);
    let metrics = history["history"]["gpus"][0]["metrics"]
        .as_object()
        .unwrap();
    assert_eq!(metrics.keys().collect::<Vec<_>>(), ["power.draw_watts"]);
    for (query, words) in [
        ("history_s=0", "1 to 600"),
        ("history_s=x", "history_s"),
        ("metrics=power", "power.draw_watts"),
        ("metric=power", "metrics"),
    ] {
        let answer = server.get(&format!("/api/v1/snapshot?{query}"));
        assert!(
            answer.status == 400 && answer.body.contains(words),
            "{query}: {}",
            answer.body
        );
    }
}

#[test]
fn a_command_that_a_server_hides_is_shown_to_whoever_may_see_it_anyway() {
    // Only root can start another user's process.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut stranger = Command::new("sleep")
        .arg("614")
        .uid(NOBODY)
        .gid(NOBODY)
        .spawn()
        .unwrap();
    let (fake, server) = served(
        &format!(
            "gpus = 1\n[[process]]\ngpu = 0\npid = {}\nmemory = \"1 GiB\"\n",
            stranger.id()
        ),
        &["--interval-ms", "200"],
    );
    let told =
        server.get("/api/v1/snapshot").json()["sample"]["gpus"][0]["processes"][0]["command"]
            .clone();
    let table = stdout(&without_library(&fake, &[]).output().unwrap());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert_eq!(told["absent"], "hidden");
    assert!(table.contains("sleep 614"), "{table}");
}
