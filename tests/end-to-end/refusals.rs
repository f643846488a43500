//! Invalid input, and machines that lack something gpumon needs: one line with the remedy, the
//! right exit code, and no files left behind.

use std::{fs, net::TcpListener, process::Command};

use crate::support::{
    FakeNvml, Server, assert_refused_with, gpumon_command, stderr_text, wait_for_condition,
};

#[track_caller]
fn assert_refused(command: Command, code: i32, words: &[&str]) {
    assert_eq!(
        assert_refused_with(command, code, words),
        "",
        "there must be no output except the error"
    );
}

/// Checks that clap refuses the command's arguments with an error that has these words and refers
/// to the help.
#[track_caller]
fn assert_usage_error(command: Command, words: &[&str]) {
    assert_refused(command, 2, &[words, &["error: ", "try '--help'"]].concat());
}

#[test]
fn invalid_arguments_are_refused() {
    assert_usage_error(
        gpumon_command(&["--sorce", "sim"]),
        &["--sorce", "--source"],
    );
    assert_usage_error(
        gpumon_command(&["wait", "--format", "uid"]),
        &["uid", "uuid"],
    );
    assert_usage_error(gpumon_command(&["wiat"]), &["wiat", "wait"]);
    assert_usage_error(gpumon_command(&["frobnicate"]), &["frobnicate"]);
    assert_usage_error(
        gpumon_command(&["--source", "cuda"]),
        &["cuda", "nvml", "sim:N"],
    );
    assert_usage_error(gpumon_command(&["--source", "sim:65"]), &["sim:65", "64"]);
    assert_usage_error(
        gpumon_command(&["collect", "--interval-ms", "0"]),
        &["--interval-ms", "100"],
    );
    assert_usage_error(
        gpumon_command(&["collect", "--interval-ms", "31536000000"]),
        &["--interval-ms", "60000"],
    );
    assert_usage_error(
        gpumon_command(&["serve", "--interval-ms", "1"]),
        &["--interval-ms", "100"],
    );
    assert_usage_error(
        gpumon_command(&["serve", "--listen", "nowhere"]),
        &["--listen"],
    );
    assert_usage_error(
        gpumon_command(&["serve", "--listen", "127.0.0.1:80000"]),
        &["80000", "65535", "127.0.0.1:9123"],
    );
    assert_refused(
        gpumon_command(&["serve", "--socket", "/nowhere/at/all"]),
        2,
        &["/nowhere/at/all", "create"],
    );
    assert_usage_error(
        gpumon_command(&["serve", "--public-origin", "gpus.example.org/gpumon"]),
        &["--public-origin", "https://"],
    );
    assert_refused(
        gpumon_command(&["serve", "--listen", "0.0.0.0:9123"]),
        2,
        &["0.0.0.0:9123", "127.0.0.1", "ssh -L"],
    );
}

#[test]
fn empty_variables_are_ignored() {
    let mut sim = gpumon_command(&["--source", "sim:1"]);
    assert!(
        sim.env("GPUMON_NVML_LIB", "")
            .output()
            .unwrap()
            .status
            .success()
    );
    let fake = FakeNvml::new("gpus = 1");
    assert!(
        fake.gpumon_command(&[])
            .env("GPUMON_SOURCE", "")
            .output()
            .unwrap()
            .status
            .success()
    );
    let mut nonsense = gpumon_command(&[]);
    nonsense.env("GPUMON_SOURCE", "cuda");
    assert_usage_error(nonsense, &["cuda", "nvml"]);
}

#[test]
fn exit_code_is_set_despite_unwritable_error_message() {
    let full = || {
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let status = |arguments: &[&str]| {
        gpumon_command(arguments)
            .stderr(full())
            .status()
            .unwrap()
            .code()
    };
    assert_eq!(status(&["nonsense"]), Some(2));
    assert_eq!(
        status(&["--nvml-lib", "/nowhere/libnvidia-ml.so.1"]),
        Some(12)
    );
}

#[test]
fn port_in_use_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert_refused(
        gpumon_command(&["--source", "sim", "serve", "--listen", &address]),
        2,
        &[&address, "in use", "--listen"],
    );
}

#[test]
fn existing_socket_path_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "precious").unwrap();
    assert_refused(
        gpumon_command(&["serve", "--socket", file.to_str().unwrap()]),
        2,
        &["not a socket"],
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");

    let socket = folder.path().join("socket");
    let path = socket.to_str().unwrap();
    let mut serve = gpumon_command(&["--source", "sim", "serve", "--socket", path]);
    let mut first = serve.stderr(std::process::Stdio::null()).spawn().unwrap();
    wait_for_condition("the server listens on its socket", || {
        std::os::unix::net::UnixStream::connect(&socket).is_ok()
    });
    assert_refused(
        gpumon_command(&["serve", "--socket", path]),
        2,
        &["another server", path],
    );
    assert!(
        std::os::unix::net::UnixStream::connect(&socket).is_ok(),
        "the first server must still listen"
    );
    first.kill().unwrap();
    first.wait().unwrap();

    // The socket of another program must not be removed either.
    let datagram = folder.path().join("datagram");
    let _log = std::os::unix::net::UnixDatagram::bind(&datagram).unwrap();
    assert_refused(
        gpumon_command(&["serve", "--socket", datagram.to_str().unwrap()]),
        2,
        &["another server"],
    );
    assert!(datagram.exists());

    // The socket file of a killed server does not keep the next server from starting.
    let mut next = gpumon_command(&["--source", "sim", "serve", "--socket", path])
        .spawn()
        .unwrap();
    wait_for_condition("the next server listens on the socket", || {
        std::os::unix::net::UnixStream::connect(&socket).is_ok()
    });
    Command::new("kill")
        .arg(next.id().to_string())
        .status()
        .unwrap();
    assert!(next.wait().unwrap().success());
    assert!(
        !socket.exists(),
        "the server must remove its socket at exit"
    );
}

#[test]
fn missing_library_driver_and_gpu_have_different_errors() {
    let missing = gpumon_command(&["--nvml-lib", "/nowhere/libnvidia-ml.so.1"]);
    assert_refused(
        missing,
        12,
        &["/nowhere/libnvidia-ml.so.1", "--nvml-lib", "--source sim"],
    );

    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("libnvidia-ml.so.1");
    fs::write(&text, "not a library").unwrap();
    assert_refused(
        gpumon_command(&["--nvml-lib", text.to_str().unwrap()]),
        12,
        &["libnvidia-ml.so.1", "--source sim"],
    );

    let stub = FakeNvml::without_functions("gpus = 1", &["nvmlInit_v2"]);
    assert_refused(stub.gpumon_command(&[]), 12, &["nvmlInit_v2", "stub"]);

    assert_refused(
        FakeNvml::new("gpus = 0").gpumon_command(&[]),
        6,
        &["finds no GPU", "--source sim"],
    );
    assert_refused(
        FakeNvml::new("init_error = { code = 9 }").gpumon_command(&[]),
        9,
        &["is not running", "--source sim"],
    );
    assert_refused(
        FakeNvml::new("init_error = { code = 18 }").gpumon_command(&[]),
        18,
        &["different versions", "; re"],
    );
    assert_refused(
        FakeNvml::new("init_error = { code = 4 }").gpumon_command(&[]),
        4,
        &["/dev/nvidia", "groups"],
    );
    assert_refused(
        FakeNvml::new("init_error = { code = 999 }").gpumon_command(&[]),
        1,
        &["NVML error 999"],
    );
}

#[test]
fn invalid_scenario_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    fs::write(&file, "gpus = 2\n\n[[gpu]]\nindex = 0\nprofil = \"idle\"\n").unwrap();
    let source = format!("sim:{}", file.display());
    assert_refused(
        gpumon_command(&["--source", &source]),
        2,
        &["scenario.toml:5:1", "profil", "profile"],
    );
    assert_refused(
        gpumon_command(&["--source", "sim:/nowhere/a.toml"]),
        2,
        &["/nowhere/a.toml", "path"],
    );
    assert_refused(
        gpumon_command(&["--source", &source, "serve"]),
        2,
        &["scenario.toml:5:1", "profile"],
    );

    let fake = FakeNvml::new("gpus = \"many\"\n");
    let output = fake.gpumon_command(&[]).output().unwrap();
    assert!(
        output.status.code() == Some(2) && stderr_text(&output).contains("scenario.toml:1:8"),
        "{output:?}"
    );
}

#[test]
fn server_without_gpu_runs_and_names_reason() {
    let fake = FakeNvml::new("gpus = 0");
    let server = Server::start_with_fake(&fake, &[]);
    wait_for_condition("the server reports why it has no readings", || {
        let snapshot = server.get("/api/v1/snapshot").json();
        snapshot["collector"]["state"] == "unavailable"
            && snapshot["collector"]["message"]
                .as_str()
                .is_some_and(|message| message.contains("no GPU"))
    });
    assert_eq!(server.get("/readyz").status, 503);
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn failed_write_of_help_is_reported() {
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["--version"],
        &["help"],
        &["help", "serve"],
        &["serve", "--help"],
        &["smi", "--help"],
        &["completions", "bash"],
        &["config", "example"],
        &["--source", "sim:1"],
    ] {
        let output = gpumon_command(arguments).stdout(full()).output().unwrap();
        let said = stderr_text(&output);
        assert_eq!(
            (
                output.status.code(),
                said.contains("No space left on device")
            ),
            (Some(1), true),
            "{arguments:?}: {said}"
        );
    }
    // Standard error is a full device, so the error message cannot be written.
    assert_eq!(
        gpumon_command(&["--bogus"])
            .stderr(full())
            .output()
            .unwrap()
            .status
            .code(),
        Some(2)
    );
}
