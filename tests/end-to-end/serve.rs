//! `gpumon serve` with clients that follow its protocol.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::{FakeNvml, Server, Stream, send_get, wait_for_condition};

#[tokio::test]
async fn hello_has_inventory_and_history_before_samples() {
    let fake = FakeNvml::new("gpus = 8");
    let server = Server::start_with_fake(&fake, &[]);
    let mut early = server.open_stream().await;
    early.next_frame_of_type("sample").await;
    early.next_frame_of_type("sample").await;

    let mut late = server.open_stream().await;
    let hello = late.next_frame().await.unwrap();
    assert_eq!(hello["type"], "hello");
    assert_eq!(hello["collector"]["state"], "running");
    assert_eq!(hello["inventory"]["gpus"].as_array().unwrap().len(), 8);
    assert_eq!(hello["sample"]["gpus"].as_array().unwrap().len(), 8);
    let times = hello["history"]["times_ms"].as_array().unwrap();
    assert!(times.len() >= 2, "{times:?}");
    for gpu in hello["history"]["gpus"].as_array().unwrap() {
        let watts = gpu["metrics"]["power.draw_watts"].as_array().unwrap();
        assert_eq!(watts.len(), times.len());
        assert!(watts.last().unwrap().is_number());
    }
    let sample = late.next_frame_of_type("sample").await;
    let same = early
        .read_until(|frame| frame["seq"] == sample["seq"])
        .await;
    assert_eq!(sample, same, "all clients must get the same frame");
}

#[tokio::test]
async fn compressed_stream_has_same_frames() {
    let fake = FakeNvml::new("gpus = 8");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "100"]);
    let mut compressed = Stream::connect(server.port, "?encoding=deflate-raw").await;
    let mut plain = server.open_stream().await;
    assert_eq!(compressed.next_frame().await.unwrap()["type"], "hello");
    let mut sample = plain.next_frame_of_type("sample").await;
    let mut unpacked = compressed.next_frame_of_type("sample").await;
    for _ in 0..20 {
        // The two clients may have skipped different samples. So the client with the older sample
        // reads on until both have the same one.
        while sample["seq"] != unpacked["seq"] {
            if sample["seq"].as_u64() < unpacked["seq"].as_u64() {
                sample = plain.next_frame_of_type("sample").await;
            } else {
                unpacked = compressed.next_frame_of_type("sample").await;
            }
        }
        assert_eq!(unpacked, sample);
        sample = plain.next_frame_of_type("sample").await;
    }
    compressed
        .send(r#"{"type":"history","metrics":["clocks.memory_mhz"]}"#)
        .await;
    assert_eq!(
        compressed.next_frame_of_type("history").await["gpus"]
            .as_array()
            .unwrap()
            .len(),
        8
    );
    let refused = server.get("/api/v1/stream?encoding=gzip");
    assert_eq!(refused.status, 400);
    assert!(
        refused.body.contains("encoding=deflate-raw"),
        "{}",
        refused.body
    );
}

#[tokio::test]
async fn paused_client_receives_missed_history_on_resume() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "100"]);
    let mut stream = server.open_stream().await;
    stream.next_frame_of_type("sample").await;
    stream.send(r#"{"type":"pause"}"#).await;
    stream.next_frame_of_type("heartbeat").await;
    stream.send(r#"{"type":"resume"}"#).await;
    let history = stream.next_frame().await.unwrap();
    assert_eq!(
        history["type"], "history",
        "a paused client may only get heartbeats"
    );
    assert!(
        history["times_ms"].as_array().unwrap().len() >= 4,
        "{history}"
    );
    stream.next_frame_of_type("sample").await;
}

#[tokio::test]
async fn client_gets_requested_history_and_available_fields() {
    let own = std::process::id();
    let fake = FakeNvml::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {own}\nmemory = \"2 GiB\"\n"
    ));
    let server = Server::start_with_fake(&fake, &["--interval-ms", "100"]);
    let mut stream = server.open_stream().await;
    let wanted = [
        "clocks.memory_mhz",
        "memory.free_bytes",
        "host.memory.used_bytes",
    ];
    let history = loop {
        stream.next_frame_of_type("sample").await;
        stream
            .send(&json!({"type": "history", "metrics": wanted}).to_string())
            .await;
        let history = stream.next_frame_of_type("history").await;
        // On a busy machine, the first samples lack the GPU's readings.
        if history["gpus"][0].is_object() {
            break history;
        }
    };
    let gpu = history["gpus"][0]["metrics"].as_object().unwrap();
    assert_eq!(gpu.keys().collect::<Vec<_>>(), &wanted[..2]);
    assert_eq!(
        history["host"]
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        &wanted[2..]
    );
    let length = history["times_ms"].as_array().unwrap().len();
    for column in gpu
        .values()
        .chain(history["host"].as_object().unwrap().values())
    {
        assert_eq!(column.as_array().unwrap().len(), length);
    }
    let newest = |column: &Value| column.as_array().unwrap().last().unwrap().as_f64().unwrap();
    assert!(newest(&history["host"][wanted[2]]) > 0.0 && newest(&gpu[wanted[0]]) > 0.0);
    stream
        .send(r#"{"type":"history","metrics":["processes.memory_bytes"]}"#)
        .await;
    let holders = stream.next_frame_of_type("history").await["gpus"][0]["holders"].take();
    assert_eq!(holders[0]["process"]["pid"], own);
    assert_eq!(
        holders[0]["memory_bytes"]
            .as_array()
            .unwrap()
            .last()
            .unwrap(),
        2_147_000_000.0
    );
    stream
        .send(&json!({"type": "history", "metrics": wanted}).to_string())
        .await;
    stream.next_frame_of_type("history").await;
    // After a pause, the client still receives the history of the metrics that it has selected.
    stream.send(r#"{"type":"pause"}"#).await;
    stream.send(r#"{"type":"resume"}"#).await;
    assert_eq!(
        stream.next_frame_of_type("history").await["host"]
            .as_object()
            .unwrap()
            .len(),
        1
    );
    stream
        .send(r#"{"type":"history","metrics":["power.drwa","power.draw_watts"]}"#)
        .await;
    let message = stream.next_frame_of_type("error").await["message"].to_string();
    assert!(
        message.contains("'power.drwa'") && message.contains("host.cpu.busy_percent"),
        "{message}"
    );
    let known = stream.next_frame_of_type("history").await["gpus"][0]["metrics"].take();
    assert_eq!(
        known.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["power.draw_watts"]
    );
}

#[test]
fn all_endpoints_respond() {
    let fake = FakeNvml::new("gpus = 2");
    let server = Server::start_with_fake(&fake, &[]);
    assert_eq!(server.get("/healthz").status, 200);
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    let snapshot = server.get("/api/v1/snapshot").json();
    assert_eq!(snapshot["sample"]["gpus"].as_array().unwrap().len(), 2);
    let missing = server.get("/nothing/here");
    assert_eq!(missing.status, 404);
    assert!(
        missing.head.contains("x-content-type-options: nosniff"),
        "{}",
        missing.head
    );
}

#[test]
fn page_files_are_served_plain_and_compressed() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &[]);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/static/dist");
    let found = Command::new("find")
        .args([folder, "-type", "f", "-printf", "%P\n"])
        .output()
        .unwrap();
    let paths = String::from_utf8(found.stdout).unwrap();
    let mut kinds = BTreeSet::new();
    for path in paths.lines() {
        let file = fs::read(format!("{folder}/{path}")).unwrap();
        let plain = server.get(&format!("/{path}"));
        let packed = send_get(server.port, &format!("/{path}"), &["Accept-Encoding: gzip"]);
        let mut unpacked = Vec::new();
        GzDecoder::new(&packed.bytes[..])
            .read_to_end(&mut unpacked)
            .unwrap();
        assert!(plain.bytes == file && unpacked == file, "{path}");
        let encoded =
            [&plain, &packed].map(|answer| answer.head.contains("\r\ncontent-encoding: gzip\r\n"));
        assert_eq!(encoded, [false, true], "{path}");
        for answer in [plain, packed] {
            assert!(
                answer.head.contains("\r\nvary: accept-encoding\r\n"),
                "{path}: {}",
                answer.head
            );
            let content_type = answer
                .head
                .lines()
                .find_map(|line| line.strip_prefix("content-type: "))
                .unwrap();
            kinds.insert(format!(
                "{} is {content_type}",
                path.rsplit_once('.').unwrap().1
            ));
        }
    }
    if paths.is_empty() {
        let missing = server.get("/");
        assert!(
            missing.status == 404 && missing.body.contains("built without its web page"),
            "{}",
            missing.body
        );
    } else {
        let expected = [
            "css is text/css",
            "html is text/html",
            "js is text/javascript",
            "md is text/markdown; charset=utf-8",
            "svg is image/svg+xml",
            "webmanifest is application/manifest+json",
        ];
        assert_eq!(kinds, expected.map(str::to_owned).into());
        assert_eq!(server.get("/").bytes, server.get("/index.html").bytes);
    }
    let absolute = concat!("/", env!("CARGO_MANIFEST_DIR"), "/README.md");
    for outside in [
        "/../../README.md",
        "/%2e%2e/%2e%2e/README.md",
        "/assets/../../../README.md",
        absolute,
    ] {
        assert_eq!(server.get(outside).status, 404, "{outside}");
    }
}

#[test]
fn command_lines_of_other_users_are_hidden() {
    // The test needs a process of another user. As root, it starts one; otherwise, it uses PID 1.
    let mut other = Command::new("sleep");
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if is_root {
        std::os::unix::process::CommandExt::uid(&mut other, 65_534);
    }
    let mut other = other.arg("600").spawn().unwrap();
    let pid = if is_root { other.id() } else { 1 };
    let fake = FakeNvml::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"1 GiB\"\n"
    ));
    let server = Server::start_with_fake(&fake, &[]);
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    let snapshot = server.get("/api/v1/snapshot").json();
    other.kill().unwrap();
    other.wait().unwrap();
    let process = &snapshot["sample"]["gpus"][0]["processes"][0];
    assert_eq!(process["command"]["absent"], "hidden");
    assert!(
        process["name"].is_string() && process["user"].is_string(),
        "{process}"
    );
}

#[test]
fn socket_server_accepts_any_host_until_parent_ends() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let script = format!(
        "{} --source sim serve --socket {} --exit-with-parent 2>/dev/null & echo $!; exec sleep \
         600",
        env!("CARGO_BIN_EXE_gpumon"),
        socket.display()
    );
    let mut parent = Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pid = String::new();
    BufReader::new(parent.stdout.take().unwrap())
        .read_line(&mut pid)
        .unwrap();
    wait_for_condition("the server listens on its socket", || {
        std::os::unix::net::UnixStream::connect(&socket).is_ok()
    });
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_for_condition(
        "the server has ended with its parent and removed its socket",
        || !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists() && !socket.exists(),
    );
}

#[test]
fn other_origins_and_hosts_are_refused_everywhere() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &[]);
    let upgrade = [
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    for path in [
        "/",
        "/api/v1/snapshot",
        "/api/v1/stream",
        "/healthz",
        "/readyz",
        "/metrics",
        "/metrics/dcgm",
        "/metrics/dcgm-4.9",
        "/assets/x.js",
    ] {
        for foreign in [
            "Origin: http://evil.example",
            "Origin: null",
            "Host: evil.example",
        ] {
            let headers = [&upgrade[..], &[foreign]].concat();
            assert_eq!(
                send_get(server.port, path, &headers).status,
                403,
                "{path} with {foreign}"
            );
        }
        let own = format!("Origin: http://localhost:{}", server.port);
        assert_ne!(
            send_get(server.port, path, &[&own]).status,
            403,
            "{path} must be allowed from its own page"
        );
    }
}
