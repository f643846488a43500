//! Invalid input, and machines that lack something gpumon needs: one line with the remedy, the
//! right exit code, and no files left behind.

use std::{fs, net::TcpListener, process::Command};

use crate::support::{Fake, Server, eventually, gpumon, refused_with, stderr};

#[track_caller]
fn refused(command: Command, code: i32, words: &[&str]) {
    assert_eq!(
        refused_with(command, code, words),
        "",
        "nothing but the error"
    );
}

/// Checks that clap refuses the arguments with these words and a reference to the help.
#[track_caller]
fn mistyped(command: Command, words: &[&str]) {
    refused(command, 2, &[words, &["error: ", "try '--help'"]].concat());
}

#[test]
fn arguments_that_make_no_command() {
    mistyped(gpumon(&["--sorce", "sim"]), &["--sorce", "--source"]);
    mistyped(gpumon(&["wait", "--format", "uid"]), &["uid", "uuid"]);
    mistyped(gpumon(&["wiat"]), &["wiat", "wait"]);
    mistyped(gpumon(&["frobnicate"]), &["frobnicate"]);
    mistyped(gpumon(&["--source", "cuda"]), &["cuda", "nvml", "sim:N"]);
    mistyped(gpumon(&["--source", "sim:65"]), &["sim:65", "64"]);
    mistyped(
        gpumon(&["collect", "--interval-ms", "0"]),
        &["--interval-ms", "100"],
    );
    mistyped(
        gpumon(&["collect", "--interval-ms", "31536000000"]),
        &["--interval-ms", "60000"],
    );
    mistyped(
        gpumon(&["serve", "--interval-ms", "1"]),
        &["--interval-ms", "100"],
    );
    mistyped(gpumon(&["serve", "--listen", "nowhere"]), &["--listen"]);
    mistyped(
        gpumon(&["serve", "--listen", "127.0.0.1:80000"]),
        &["80000", "65535", "127.0.0.1:9123"],
    );
    refused(
        gpumon(&["serve", "--socket", "/nowhere/at/all"]),
        2,
        &["/nowhere/at/all", "create"],
    );
    mistyped(
        gpumon(&["serve", "--public-origin", "gpus.example.org/gpumon"]),
        &["--public-origin", "https://"],
    );
    refused(
        gpumon(&["serve", "--listen", "0.0.0.0:9123"]),
        2,
        &["0.0.0.0:9123", "127.0.0.1", "ssh -L"],
    );
}

#[test]
fn variables_that_are_set_to_nothing_ask_for_nothing() {
    let mut sim = gpumon(&["--source", "sim:1"]);
    assert!(
        sim.env("GPUMON_NVML_LIB", "")
            .output()
            .unwrap()
            .status
            .success()
    );
    let fake = Fake::new("gpus = 1");
    assert!(
        fake.gpumon(&[])
            .env("GPUMON_SOURCE", "")
            .output()
            .unwrap()
            .status
            .success()
    );
    let mut nonsense = gpumon(&[]);
    nonsense.env("GPUMON_SOURCE", "cuda");
    mistyped(nonsense, &["cuda", "nvml"]);
}

#[test]
fn where_nobody_hears_the_message_the_exit_code_still_tells() {
    let full = || {
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let status = |arguments: &[&str]| gpumon(arguments).stderr(full()).status().unwrap().code();
    assert_eq!(status(&["nonsense"]), Some(2));
    assert_eq!(
        status(&["--nvml-lib", "/nowhere/libnvidia-ml.so.1"]),
        Some(12)
    );
}

#[test]
fn a_port_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(
        gpumon(&["--source", "sim", "serve", "--listen", &address]),
        2,
        &[&address, "in use", "--listen"],
    );
}

#[test]
fn a_socket_path_that_exists() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "precious").unwrap();
    refused(
        gpumon(&["serve", "--socket", file.to_str().unwrap()]),
        2,
        &["not a socket"],
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");

    let socket = folder.path().join("socket");
    let path = socket.to_str().unwrap();
    let mut serve = gpumon(&["--source", "sim", "serve", "--socket", path]);
    let mut first = serve.stderr(std::process::Stdio::null()).spawn().unwrap();
    eventually("it listens", || {
        std::os::unix::net::UnixStream::connect(&socket).is_ok()
    });
    refused(
        gpumon(&["serve", "--socket", path]),
        2,
        &["another server", path],
    );
    assert!(
        std::os::unix::net::UnixStream::connect(&socket).is_ok(),
        "the first goes on"
    );
    first.kill().unwrap();
    first.wait().unwrap();

    // The socket of another program must not be removed either.
    let datagram = folder.path().join("datagram");
    let _log = std::os::unix::net::UnixDatagram::bind(&datagram).unwrap();
    refused(
        gpumon(&["serve", "--socket", datagram.to_str().unwrap()]),
        2,
        &["another server"],
    );
    assert!(datagram.exists());

    // The socket file of a killed server does not keep the next server from starting.
    let mut next = gpumon(&["--source", "sim", "serve", "--socket", path])
        .spawn()
        .unwrap();
    eventually("the next listens", || {
        std::os::unix::net::UnixStream::connect(&socket).is_ok()
    });
    Command::new("kill")
        .arg(next.id().to_string())
        .status()
        .unwrap();
    assert!(next.wait().unwrap().success());
    assert!(!socket.exists(), "it takes its socket along");
}

#[test]
fn no_library_no_driver_no_gpu_are_told_apart() {
    let missing = gpumon(&["--nvml-lib", "/nowhere/libnvidia-ml.so.1"]);
    refused(
        missing,
        12,
        &["/nowhere/libnvidia-ml.so.1", "--nvml-lib", "--source sim"],
    );

    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("libnvidia-ml.so.1");
    fs::write(&text, "not a library").unwrap();
    refused(
        gpumon(&["--nvml-lib", text.to_str().unwrap()]),
        12,
        &["libnvidia-ml.so.1", "--source sim"],
    );

    let stub = Fake::without("gpus = 1", &["nvmlInit_v2"]);
    refused(stub.gpumon(&[]), 12, &["nvmlInit_v2", "stub"]);

    refused(
        Fake::new("gpus = 0").gpumon(&[]),
        6,
        &["sees no GPU", "--source sim"],
    );
    refused(
        Fake::new("init_error = { code = 9 }").gpumon(&[]),
        9,
        &["is not running", "--source sim"],
    );
    refused(
        Fake::new("init_error = { code = 18 }").gpumon(&[]),
        18,
        &["different versions", "; re"],
    );
    refused(
        Fake::new("init_error = { code = 4 }").gpumon(&[]),
        4,
        &["/dev/nvidia", "groups"],
    );
    refused(
        Fake::new("init_error = { code = 999 }").gpumon(&[]),
        1,
        &["NVML error 999"],
    );
}

#[test]
fn a_scenario_with_a_typo() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    fs::write(&file, "gpus = 2\n\n[[gpu]]\nindex = 0\nprofil = \"idle\"\n").unwrap();
    let source = format!("sim:{}", file.display());
    refused(
        gpumon(&["--source", &source]),
        2,
        &["scenario.toml:5:1", "profil", "profile"],
    );
    refused(
        gpumon(&["--source", "sim:/nowhere/a.toml"]),
        2,
        &["/nowhere/a.toml", "path"],
    );
    refused(
        gpumon(&["--source", &source, "serve"]),
        2,
        &["scenario.toml:5:1", "profile"],
    );

    let fake = Fake::new("gpus = \"many\"\n");
    let output = fake.gpumon(&[]).output().unwrap();
    assert!(
        output.status.code() == Some(2) && stderr(&output).contains("scenario.toml:1:8"),
        "{output:?}"
    );
}

#[test]
fn a_server_without_a_gpu_goes_on_and_says_why() {
    let fake = Fake::new("gpus = 0");
    let server = Server::over(&fake, &[]);
    eventually("it says why", || {
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
        let output = gpumon(arguments).stdout(full()).output().unwrap();
        let said = stderr(&output);
        assert_eq!(
            (
                output.status.code(),
                said.contains("No space left on device")
            ),
            (Some(1), true),
            "{arguments:?}: {said}"
        );
    }
    // The error cannot be written anywhere.
    assert_eq!(
        gpumon(&["--bogus"])
            .stderr(full())
            .output()
            .unwrap()
            .status
            .code(),
        Some(2)
    );
}
