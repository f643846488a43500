//! `gpumon pause` and `resume`, and their local socket.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    process::Command,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::{
    FakeNvml, Server, assert_refused, assert_refused_with, copy_program, send_request_line,
    send_signal, send_socket_request, stderr_text, stdout_text, wait_for_condition,
};

/// The user ID of `nobody`.
const NOBODY_UID: u32 = 65_534;

/// Runs the command, and returns the server's answer.
#[track_caller]
fn run_command(fake: &FakeNvml, arguments: &[&str]) -> Value {
    let output = fake.gpumon_command(arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    serde_json::from_str(&stdout_text(&output)).unwrap()
}

#[tokio::test]
async fn pause_ends_collector_and_notifies_clients() {
    let fake = FakeNvml::new("gpus = 2");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    let mut stream = server.open_stream().await;
    stream.next_frame_of_type("sample").await;
    let collector = server.collector_pid().expect("a collector runs");
    let first = run_command(&fake, &["pause"]);
    assert_eq!(first["state"], "paused");
    assert!(
        !std::path::Path::new(&format!("/proc/{collector}")).exists(),
        "the collector must end before the command does"
    );
    let reported = stream
        .read_until(|frame| frame["type"] == "collector")
        .await;
    assert_eq!(reported["state"], "paused");
    assert!(
        reported["message"]
            .as_str()
            .unwrap()
            .contains("gpumon resume"),
        "{reported}"
    );
    assert_eq!(
        run_command(&fake, &["pause"]),
        first,
        "a second pause changes nothing"
    );
    assert_eq!(server.get("/readyz").status, 503);
    assert_eq!(server.get("/healthz").status, 200);

    stream.next_frame_of_type("heartbeat").await;
    assert_eq!(server.collector_pid(), None, "no collector may be started");
    assert_eq!(
        server.open_stream().await.next_frame().await.unwrap()["collector"]["state"],
        "paused"
    );

    assert_eq!(run_command(&fake, &["resume"])["state"], "starting");
    stream.next_frame_of_type("sample").await;
    assert_eq!(run_command(&fake, &["resume"])["state"], "running");
    assert_eq!(server.get("/readyz").status, 200);
}

#[tokio::test]
async fn pause_expires_and_latest_command_wins() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    let mut stream = server.open_stream().await;
    stream.next_frame_of_type("sample").await;
    let forever = run_command(&fake, &["pause"]);
    assert!(forever["resumes_ms"].is_null(), "{forever}");
    let begun = Instant::now();
    let short = run_command(&fake, &["pause", "--for", "2s"]);
    let ends_ms = short["resumes_ms"].as_u64().unwrap();
    assert!(ends_ms <= gpumon_probe::model::now_ms() + 2_000, "{short}");
    stream
        .read_until(|frame| frame["type"] == "collector" && frame["resumes_ms"] == ends_ms)
        .await;
    let sample = stream.next_frame_of_type("sample").await;
    assert!(
        begun.elapsed() >= Duration::from_secs(2),
        "resumed too early, after {:?}",
        begun.elapsed()
    );
    assert!(sample["at_ms"].as_u64().unwrap() >= ends_ms);
}

#[tokio::test]
async fn stopped_or_missing_collector_is_paused() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &[]);
    server
        .open_stream()
        .await
        .next_frame_of_type("sample")
        .await;
    send_signal("-STOP", server.collector_pid().unwrap());
    assert_eq!(run_command(&fake, &["pause"])["state"], "paused");
    assert_eq!(server.collector_pid(), None);
    drop(server);

    let none = FakeNvml::new("gpus = 0");
    let server = Server::start_with_fake(&none, &[]);
    wait_for_condition("the server reports why it has no readings", || {
        server.get("/api/v1/snapshot").json()["collector"]["state"] == "unavailable"
    });
    assert_eq!(
        run_command(&none, &["pause"])["state"],
        "paused",
        "the pause takes effect before the next attempt"
    );
    assert_eq!(run_command(&none, &["resume"])["state"], "starting");
    drop(server);
}

#[test]
fn tcp_port_refuses_pause_and_resume() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &[]);
    for path in ["/api/v1/pause", "/api/v1/resume"] {
        let refused = send_request_line(server.port, &format!("POST {path}"));
        assert_eq!(refused.status, 403);
        assert!(
            refused.body.contains("gpumon pause") && refused.body.contains("local socket"),
            "{}",
            refused.body
        );
        assert_eq!(
            send_socket_request(&fake.control_path(), &format!("GET {path}")).status,
            405,
            "GET must not change the state"
        );
    }
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    let mode = fs::metadata(fake.control_path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        send_socket_request(&fake.control_path(), "GET /api/v1/snapshot").json()["collector"]["state"],
        "running"
    );
    for query in ["for_ms=0", "for_ms=ten", "for_ms=604800001", "for=10"] {
        let refused =
            send_socket_request(&fake.control_path(), &format!("POST /api/v1/pause?{query}"));
        assert_eq!(refused.status, 400, "{query}");
        assert!(refused.body.contains("for_ms"), "{}", refused.body);
    }
    assert_eq!(
        server.get("/readyz").status,
        200,
        "invalid requests must not pause the collector"
    );
}

#[test]
fn missing_server_is_refused_with_remedy() {
    let fake = FakeNvml::new("gpus = 1");
    for command in ["pause", "resume"] {
        assert_eq!(
            assert_refused_with(
                fake.gpumon_command(&[command]),
                1,
                &["gpumon serve", "control.sock"]
            ),
            ""
        );
    }
    assert_refused(fake.gpumon_command(&["pause", "--for", "10"]), 2, "10m");
}

#[test]
fn second_server_does_not_replace_socket_of_first() {
    let runtime = tempfile::tempdir().unwrap();
    fs::set_permissions(runtime.path(), fs::Permissions::from_mode(0o700)).unwrap();
    // For root, there is only one default socket on the machine, so the test runs as another user.
    let is_root = fs::metadata(runtime.path()).unwrap().uid() == 0;
    let program = runtime.path().join("gpumon");
    copy_program(env!("CARGO_BIN_EXE_gpumon"), &program);
    if is_root {
        chown(runtime.path(), Some(NOBODY_UID), Some(NOBODY_UID)).unwrap();
    }
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["--source", "sim:1"]).args(arguments);
        command
            .env_remove("GPUMON_CONTROL")
            .env("XDG_RUNTIME_DIR", runtime.path());
        if is_root {
            command.uid(NOBODY_UID);
        }
        command
    };
    let first = Server::start(run(&["serve", "--listen", "127.0.0.1:0"]));
    let mut second = Server::start(run(&["serve", "--listen", "127.0.0.1:0"]));
    let why = second.next_message();
    assert!(
        why.contains("without a control socket") && why.contains("another server"),
        "{why}"
    );
    assert_eq!(second.get("/healthz").status, 200);
    let (status, _) = second.terminate();
    assert!(status.success());
    let paused = run(&["pause"]).output().unwrap();
    assert!(paused.status.success(), "{}", stderr_text(&paused));
    assert_eq!(
        first.get("/readyz").status,
        503,
        "the first server is the paused one"
    );
    assert!(runtime.path().join("gpumon.sock").exists());
}
