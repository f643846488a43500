//! Programs that a server starts do not receive its token.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::{RUN_TOKEN, bearer_header};
use crate::support::{FakeNvml, Server, send_get, send_request, wait_for_condition};

/// Returns the environment variables of a running process.
fn read_environment(pid: u32) -> String {
    fs::read(format!("/proc/{pid}/environ"))
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', "\n"))
        .unwrap_or_default()
}

/// Returns a command that writes its environment variables into a file, and the file.
fn make_environment_printer(fake: &FakeNvml, name: &str) -> (String, PathBuf) {
    let file = fake.path(name);
    (
        format!("env > {0}.part && mv {0}.part {0}", file.display()),
        file,
    )
}

#[track_caller]
fn assert_has_no_token(file: &Path) {
    wait_for_condition("the command has written its variables", || file.exists());
    let printed = fs::read_to_string(file).unwrap();
    assert!(
        printed.contains("PATH=")
            && !printed.contains("GPUMON_TOKEN")
            && !printed.contains(RUN_TOKEN),
        "{printed}"
    );
}

#[test]
fn child_processes_do_not_inherit_token() {
    let fake = FakeNvml::new("[[gpu]]\nindex = 0\ntemperature_celsius = 95\n");
    let (of_alert, reported) = make_environment_printer(&fake, "alert-environment");
    let (of_run, run) = make_environment_printer(&fake, "run-environment");
    let [alerts, worker] = ["alerts.toml", "worker"].map(|name| fake.path(name));
    let rule = "[[rule]]\nname = \"hot\"\nfield = \"temperature.gpu_celsius\"\nabove = 85\n";
    let receiver =
        format!("[[command]]\nname = \"print\"\ncommand = [\"/bin/sh\", \"-c\", {of_alert:?}]\n");
    fs::write(&alerts, format!("{rule}{receiver}")).unwrap();
    fs::write(&worker, format!("#!/bin/sh\n{of_run}\n")).unwrap();
    fs::set_permissions(&worker, fs::Permissions::from_mode(0o755)).unwrap();

    let [alerts, worker] = [&alerts, &worker].map(|path| path.to_str().unwrap());
    let mut command = fake.gpumon_command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--alerts",
        alerts,
        "--worker",
        worker,
    ]);
    command.env("GPUMON_TOKEN", RUN_TOKEN);
    let server = Server::start(command);
    let token = bearer_header(RUN_TOKEN);
    wait_for_condition("the server is ready", || {
        send_get(server.port, "/readyz", &[&token]).status == 200
    });
    assert!(
        read_environment(server.child.id()).contains(&format!("GPUMON_TOKEN={RUN_TOKEN}")),
        "the server's environment still contains the token"
    );
    let collector = read_environment(server.collector_pid().expect("a collector"));
    assert!(
        collector.contains("GPUMON_NVML_LIB=") && !collector.contains(RUN_TOKEN),
        "{collector}"
    );
    assert_has_no_token(&reported);
    let job = r#"{"kind":"bench","ids":["copy"],"quick":true}"#;
    let started = send_request(
        server.port,
        "POST /api/v1/runs",
        &[&token, "X-Gpumon: run"],
        job,
    );
    assert_eq!(started.status, 202, "{}", started.body);
    assert_has_no_token(&run);
}
