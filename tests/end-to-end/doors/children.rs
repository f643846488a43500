//! Programs that a server starts do not receive its token.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::{RUN, bearer};
use crate::support::{Fake, Server, ask, eventually, send};

/// Returns the environment variables of a running process.
fn environment(pid: u32) -> String {
    fs::read(format!("/proc/{pid}/environ"))
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', "\n"))
        .unwrap_or_default()
}

/// Returns a command that writes its environment variables into a file, and the file.
fn printer(fake: &Fake, name: &str) -> (String, PathBuf) {
    let file = fake.path(name);
    (
        format!("env > {0}.part && mv {0}.part {0}", file.display()),
        file,
    )
}

#[track_caller]
fn has_no_token(file: &Path) {
    eventually("the command has written its variables", || file.exists());
    let printed = fs::read_to_string(file).unwrap();
    assert!(
        printed.contains("PATH=") && !printed.contains("GPUMON_TOKEN") && !printed.contains(RUN),
        "{printed}"
    );
}

#[test]
fn neither_collector_nor_commands_nor_runs_get_the_token_of_the_environment() {
    let fake = Fake::new("[[gpu]]\nindex = 0\ntemperature_celsius = 95\n");
    let (of_alert, told) = printer(&fake, "alert-environment");
    let (of_run, run) = printer(&fake, "run-environment");
    let [alerts, worker] = ["alerts.toml", "worker"].map(|name| fake.path(name));
    let rule = "[[rule]]\nname = \"hot\"\nfield = \"temperature.gpu_celsius\"\nabove = 85\n";
    let receiver =
        format!("[[command]]\nname = \"print\"\ncommand = [\"/bin/sh\", \"-c\", {of_alert:?}]\n");
    fs::write(&alerts, format!("{rule}{receiver}")).unwrap();
    fs::write(&worker, format!("#!/bin/sh\n{of_run}\n")).unwrap();
    fs::set_permissions(&worker, fs::Permissions::from_mode(0o755)).unwrap();

    let [alerts, worker] = [&alerts, &worker].map(|path| path.to_str().unwrap());
    let mut command = fake.gpumon(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--alerts",
        alerts,
        "--worker",
        worker,
    ]);
    command.env("GPUMON_TOKEN", RUN);
    let server = Server::start(command);
    let token = bearer(RUN);
    eventually("GPUs are known", || {
        ask(server.port, "/readyz", &[&token]).status == 200
    });
    assert!(
        environment(server.child.id()).contains(&format!("GPUMON_TOKEN={RUN}")),
        "what the guide warns of"
    );
    let collector = environment(server.collector().expect("a collector"));
    assert!(
        collector.contains("GPUMON_NVML_LIB=") && !collector.contains(RUN),
        "{collector}"
    );
    has_no_token(&told);
    let job = r#"{"kind":"bench","ids":["copy"],"quick":true}"#;
    let started = send(
        server.port,
        "POST /api/v1/runs",
        &[&token, "X-Gpumon: run"],
        job,
    );
    assert_eq!(started.status, 202, "{}", started.body);
    has_no_token(&run);
}
