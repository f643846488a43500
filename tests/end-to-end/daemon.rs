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
    FakeNvml, Server, assert_refused, assert_refused_with, copy_program, gpumon_command,
    stderr_text, stdout_text, wait_for_condition,
};

/// The user ID of `nobody`.
const NOBODY_UID: u32 = 65_534;

/// Returns a server with at least one sample, and a [`FakeNvml`] whose commands cannot read GPUs
/// themselves.
fn serve_scenario(scenario: &str, arguments: &[&str]) -> (FakeNvml, Server) {
    let fake = FakeNvml::new(scenario);
    let server = Server::start_with_fake(&fake, arguments);
    wait_for_condition("the server has a sample", || {
        server.get("/readyz").status == 200
    });
    (fake, server)
}

fn command_without_library(fake: &FakeNvml, arguments: &[&str]) -> Command {
    let mut command = fake.gpumon_command(arguments);
    command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
    command
}

#[test]
fn command_without_driver_uses_server_and_its_history() {
    let (fake, server) = serve_scenario(
        "gpus = 2\n[[gpu]]\nindex = 0\nutilization_percent = 100",
        &["--interval-ms", "200"],
    );
    wait_for_condition("the server has a history", || {
        server.get("/api/v1/snapshot?history_s=60").json()["history"]["times_ms"]
            .as_array()
            .unwrap()
            .len()
            > 1
    });
    let output = command_without_library(&fake, &[]).output().unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    let table = stdout_text(&output);
    let line = table
        .lines()
        .find(|line| line.trim_start().starts_with("0 H200"))
        .unwrap();
    assert!(
        line.contains("100 %") && line.contains('^'),
        "the line contains a chart of the last minute: {table}"
    );
    assert_refused(command_without_library(&fake, &["--no-daemon"]), 12, "");
}

#[test]
fn every_output_format_uses_server() {
    let (fake, server) = serve_scenario("gpus = 2", &["--interval-ms", "200"]);
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    wait_for_condition("the server knows the topology", || {
        !is_empty(&server.get("/api/v1/snapshot").json()["inventory"]["topology"])
    });
    for arguments in [
        &["--short"][..],
        &["--csv"],
        &["--csv", "--processes"],
        &["--json"],
        &["-i", "1"],
    ] {
        let output = command_without_library(&fake, arguments).output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr_text(&output)
        );
    }
    let json: Value = serde_json::from_slice(
        &command_without_library(&fake, &["--json"])
            .output()
            .unwrap()
            .stdout,
    )
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
fn explicit_source_takes_precedence_over_server() {
    let (fake, _server) = serve_scenario("gpus = 2", &["--interval-ms", "200"]);
    let simulated = stdout_text(
        &fake
            .gpumon_command(&["--source", "sim:1"])
            .output()
            .unwrap(),
    );
    assert!(simulated.contains("simulated  1 x"), "{simulated}");
    assert_refused(
        fake.gpumon_command(&["--nvml-lib", "/nowhere/libnvidia-ml.so.1"]),
        12,
        "/nowhere",
    );
}

#[test]
fn paused_server_is_skipped_unless_explicitly_selected() {
    let (fake, _server) = serve_scenario("gpus = 1", &["--interval-ms", "200"]);
    assert!(
        fake.gpumon_command(&["pause"])
            .output()
            .unwrap()
            .status
            .success()
    );
    assert!(
        fake.gpumon_command(&[]).output().unwrap().status.success(),
        "the command reads the GPUs itself"
    );
    let control = fake.control_path();
    let mut insisted = fake.gpumon_command(&["--control", control.to_str().unwrap()]);
    insisted.env_remove("GPUMON_CONTROL");
    assert_refused_with(insisted, 1, &["paused", "--no-daemon"]);
}

#[test]
fn explicitly_selected_but_missing_server_is_refused() {
    assert_refused(
        gpumon_command(&["--control", "/nowhere/gpumon.sock"]),
        1,
        "/nowhere/gpumon.sock",
    );
    assert_refused(
        gpumon_command(&["--control", "/nowhere/gpumon.sock", "--no-daemon"]),
        2,
        "",
    );
    let fake = FakeNvml::new("gpus = 1");
    assert!(
        fake.gpumon_command(&[]).output().unwrap().status.success(),
        "a server that only a variable names may be missing"
    );
    assert!(
        fake.gpumon_command(&["--no-daemon"])
            .output()
            .unwrap()
            .status
            .success()
    );
}

#[test]
fn commands_ignore_server_with_simulated_gpus() {
    let runtime = tempfile::tempdir().unwrap();
    fs::set_permissions(runtime.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let program = runtime.path().join("gpumon");
    copy_program(env!("CARGO_BIN_EXE_gpumon"), &program);
    // For root, there is only one default socket on the machine, so the test runs as another user.
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        chown(runtime.path(), Some(NOBODY_UID), Some(NOBODY_UID)).unwrap();
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
            command.uid(NOBODY_UID);
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
    wait_for_condition("the server has a sample", || {
        server.get("/readyz").status == 200
    });
    let socket = runtime.path().join("gpumon.sock");
    wait_for_condition("the named server answers", || {
        let named = run(&["--control", socket.to_str().unwrap()]).output();
        stdout_text(&named.unwrap()).contains("simulated  3 x")
    });
    let found = run(&[]).output().unwrap();
    assert_eq!(found.status.code(), Some(12), "{}", stdout_text(&found));
}

#[test]
fn history_length_is_selected_by_option() {
    let (_fake, server) = serve_scenario("gpus = 1", &["--interval-ms", "200"]);
    let history = || {
        server
            .get("/api/v1/snapshot?history_s=60&metrics=power.draw_watts&brief=true")
            .json()
    };
    wait_for_condition("the server has a history", || {
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
fn command_line_hidden_by_server_is_read_locally() {
    // Only root can start another user's process.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut stranger = Command::new("sleep")
        .arg("614")
        .uid(NOBODY_UID)
        .gid(NOBODY_UID)
        .spawn()
        .unwrap();
    let (fake, server) = serve_scenario(
        &format!(
            "gpus = 1\n[[process]]\ngpu = 0\npid = {}\nmemory = \"1 GiB\"\n",
            stranger.id()
        ),
        &["--interval-ms", "200"],
    );
    let reported =
        server.get("/api/v1/snapshot").json()["sample"]["gpus"][0]["processes"][0]["command"]
            .clone();
    let table = stdout_text(&command_without_library(&fake, &[]).output().unwrap());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert_eq!(reported["absent"], "hidden");
    assert!(table.contains("sleep 614"), "{table}");
}
