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
    Fake, Server, ask_socket, ask_with, copy_program, eventually, refused, refused_with, signal,
    stderr, stdout,
};

/// The user ID of `nobody`.
const NOBODY: u32 = 65_534;

/// Runs the command, and returns the server's answer.
#[track_caller]
fn order(fake: &Fake, arguments: &[&str]) -> Value {
    let output = fake.gpumon(arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[tokio::test]
async fn a_pause_ends_the_collector_and_tells_every_client_until_it_is_resumed() {
    let fake = Fake::new("gpus = 2");
    let server = Server::over(&fake, &["--interval-ms", "200"]);
    let mut stream = server.stream().await;
    stream.next_of("sample").await;
    let collector = server.collector().expect("a collector runs");
    let first = order(&fake, &["pause"]);
    assert_eq!(first["state"], "paused");
    assert!(
        !std::path::Path::new(&format!("/proc/{collector}")).exists(),
        "it has ended when the command has"
    );
    let told = stream.until(|frame| frame["type"] == "collector").await;
    assert_eq!(told["state"], "paused");
    assert!(
        told["message"].as_str().unwrap().contains("gpumon resume"),
        "{told}"
    );
    assert_eq!(order(&fake, &["pause"]), first, "once more changes nothing");
    assert_eq!(server.get("/readyz").status, 503);
    assert_eq!(server.get("/healthz").status, 200);

    stream.next_of("heartbeat").await;
    assert_eq!(server.collector(), None, "no new one is started");
    assert_eq!(
        server.stream().await.next().await.unwrap()["collector"]["state"],
        "paused"
    );

    assert_eq!(order(&fake, &["resume"])["state"], "starting");
    stream.next_of("sample").await;
    assert_eq!(order(&fake, &["resume"])["state"], "running");
    assert_eq!(server.get("/readyz").status, 200);
}

#[tokio::test]
async fn a_pause_may_end_by_itself_and_the_last_word_counts() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &["--interval-ms", "200"]);
    let mut stream = server.stream().await;
    stream.next_of("sample").await;
    let forever = order(&fake, &["pause"]);
    assert!(forever["resumes_ms"].is_null(), "{forever}");
    let begun = Instant::now();
    let short = order(&fake, &["pause", "--for", "2s"]);
    let ends_ms = short["resumes_ms"].as_u64().unwrap();
    assert!(ends_ms <= gpumon_probe::model::now_ms() + 2_000, "{short}");
    stream
        .until(|frame| frame["type"] == "collector" && frame["resumes_ms"] == ends_ms)
        .await;
    let sample = stream.next_of("sample").await;
    assert!(
        begun.elapsed() >= Duration::from_secs(2),
        "too early: {:?}",
        begun.elapsed()
    );
    assert!(sample["at_ms"].as_u64().unwrap() >= ends_ms);
}

#[tokio::test]
async fn even_a_collector_that_is_stopped_or_missing_is_paused() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &[]);
    server.stream().await.next_of("sample").await;
    signal("-STOP", server.collector().unwrap());
    assert_eq!(order(&fake, &["pause"])["state"], "paused");
    assert_eq!(server.collector(), None);
    drop(server);

    let none = Fake::new("gpus = 0");
    let server = Server::over(&none, &[]);
    eventually("it says why", || {
        server.get("/api/v1/snapshot").json()["collector"]["state"] == "unavailable"
    });
    assert_eq!(
        order(&none, &["pause"])["state"],
        "paused",
        "nobody waits for the next attempt"
    );
    assert_eq!(order(&none, &["resume"])["state"], "starting");
    drop(server);
}

#[test]
fn the_port_serves_all_but_what_changes_something() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &[]);
    for path in ["/api/v1/pause", "/api/v1/resume"] {
        let refused = ask_with(server.port, &format!("POST {path}"));
        assert_eq!(refused.status, 403);
        assert!(
            refused.body.contains("gpumon pause") && refused.body.contains("local socket"),
            "{}",
            refused.body
        );
        assert_eq!(
            ask_socket(&fake.control(), &format!("GET {path}")).status,
            405,
            "a link changes nothing"
        );
    }
    eventually("it is ready", || server.get("/readyz").status == 200);
    let mode = fs::metadata(fake.control()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        ask_socket(&fake.control(), "GET /api/v1/snapshot").json()["collector"]["state"],
        "running"
    );
    for query in ["for_ms=0", "for_ms=ten", "for_ms=604800001", "for=10"] {
        let refused = ask_socket(&fake.control(), &format!("POST /api/v1/pause?{query}"));
        assert_eq!(refused.status, 400, "{query}");
        assert!(refused.body.contains("for_ms"), "{}", refused.body);
    }
    assert_eq!(server.get("/readyz").status, 200, "none of that paused it");
}

#[test]
fn without_a_server_one_line_names_the_cure() {
    let fake = Fake::new("gpus = 1");
    for command in ["pause", "resume"] {
        assert_eq!(
            refused_with(
                fake.gpumon(&[command]),
                1,
                &["gpumon serve", "control.sock"]
            ),
            ""
        );
    }
    refused(fake.gpumon(&["pause", "--for", "10"]), 2, "10m");
}

#[test]
fn a_second_server_goes_on_without_the_usual_socket_and_leaves_the_first_its_own() {
    let runtime = tempfile::tempdir().unwrap();
    fs::set_permissions(runtime.path(), fs::Permissions::from_mode(0o700)).unwrap();
    // For root, there is only one default socket on the machine, so the test runs as another user.
    let is_root = fs::metadata(runtime.path()).unwrap().uid() == 0;
    let program = runtime.path().join("gpumon");
    copy_program(env!("CARGO_BIN_EXE_gpumon"), &program);
    if is_root {
        chown(runtime.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["--source", "sim:1"]).args(arguments);
        command
            .env_remove("GPUMON_CONTROL")
            .env("XDG_RUNTIME_DIR", runtime.path());
        if is_root {
            command.uid(NOBODY);
        }
        command
    };
    let first = Server::start(run(&["serve", "--listen", "127.0.0.1:0"]));
    let mut second = Server::start(run(&["serve", "--listen", "127.0.0.1:0"]));
    let why = second.next_message();
    assert!(
        why.contains("without a local socket") && why.contains("another server"),
        "{why}"
    );
    assert_eq!(second.get("/healthz").status, 200);
    let (status, _) = second.terminate();
    assert!(status.success());
    let paused = run(&["pause"]).output().unwrap();
    assert!(paused.status.success(), "{}", stderr(&paused));
    assert_eq!(
        first.get("/readyz").status,
        503,
        "the first it is that paused"
    );
    assert!(runtime.path().join("gpumon.sock").exists());
}
