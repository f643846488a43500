//! The protocol of `gpumon serve` for clients that follow it.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::{Fake, Server, Stream, ask, eventually};

#[tokio::test]
async fn the_hello_holds_the_inventory_and_the_recent_past_and_samples_follow() {
    let fake = Fake::new("gpus = 8");
    let server = Server::over(&fake, &[]);
    let mut early = server.stream().await;
    early.next_of("sample").await;
    early.next_of("sample").await;

    let mut late = server.stream().await;
    let hello = late.next().await.unwrap();
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
    let sample = late.next_of("sample").await;
    let same = early.until(|frame| frame["seq"] == sample["seq"]).await;
    assert_eq!(sample, same, "every client gets the same");
}

#[tokio::test]
async fn a_compressed_stream_says_the_same() {
    let fake = Fake::new("gpus = 8");
    let server = Server::over(&fake, &["--interval-ms", "100"]);
    let mut compressed = Stream::connect(server.port, "?encoding=deflate-raw").await;
    let mut plain = server.stream().await;
    assert_eq!(compressed.next().await.unwrap()["type"], "hello");
    let mut sample = plain.next_of("sample").await;
    let mut unpacked = compressed.next_of("sample").await;
    for _ in 0..20 {
        // A slow client does not receive every sample.
        while sample["seq"] != unpacked["seq"] {
            if sample["seq"].as_u64() < unpacked["seq"].as_u64() {
                sample = plain.next_of("sample").await;
            } else {
                unpacked = compressed.next_of("sample").await;
            }
        }
        assert_eq!(unpacked, sample);
        sample = plain.next_of("sample").await;
    }
    compressed
        .send(r#"{"type":"history","metrics":["clocks.memory_mhz"]}"#)
        .await;
    assert_eq!(
        compressed.next_of("history").await["gpus"]
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
async fn a_paused_client_gets_no_samples_and_the_missed_past_when_it_resumes() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &["--interval-ms", "100"]);
    let mut stream = server.stream().await;
    stream.next_of("sample").await;
    stream.send(r#"{"type":"pause"}"#).await;
    stream.next_of("heartbeat").await;
    stream.send(r#"{"type":"resume"}"#).await;
    let history = stream.next().await.unwrap();
    assert_eq!(
        history["type"], "history",
        "nothing but heartbeats came during the pause"
    );
    assert!(
        history["times_ms"].as_array().unwrap().len() >= 4,
        "{history}"
    );
    stream.next_of("sample").await;
}

#[tokio::test]
async fn a_client_gets_the_history_that_it_asks_for_and_hears_what_there_is() {
    let own = std::process::id();
    let fake = Fake::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {own}\nmemory = \"2 GiB\"\n"
    ));
    let server = Server::over(&fake, &["--interval-ms", "100"]);
    let mut stream = server.stream().await;
    let wanted = [
        "clocks.memory_mhz",
        "memory.free_bytes",
        "host.memory.used_bytes",
    ];
    let history = loop {
        stream.next_of("sample").await;
        stream
            .send(&json!({"type": "history", "metrics": wanted}).to_string())
            .await;
        let history = stream.next_of("history").await;
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
    let holders = stream.next_of("history").await["gpus"][0]["holders"].take();
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
    stream.next_of("history").await;
    // The setting remains after a pause.
    stream.send(r#"{"type":"pause"}"#).await;
    stream.send(r#"{"type":"resume"}"#).await;
    assert_eq!(
        stream.next_of("history").await["host"]
            .as_object()
            .unwrap()
            .len(),
        1
    );
    stream
        .send(r#"{"type":"history","metrics":["power.drwa","power.draw_watts"]}"#)
        .await;
    let message = stream.next_of("error").await["message"].to_string();
    assert!(
        message.contains("'power.drwa'") && message.contains("host.cpu.busy_percent"),
        "{message}"
    );
    let known = stream.next_of("history").await["gpus"][0]["metrics"].take();
    assert_eq!(
        known.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["power.draw_watts"]
    );
}

#[test]
fn the_endpoints_answer() {
    let fake = Fake::new("gpus = 2");
    let server = Server::over(&fake, &[]);
    assert_eq!(server.get("/healthz").status, 200);
    eventually("it is ready", || server.get("/readyz").status == 200);
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
fn every_file_of_the_page_is_served_as_it_is_and_compressed() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &[]);
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
        let packed = ask(server.port, &format!("/{path}"), &["Accept-Encoding: gzip"]);
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
fn other_users_command_lines_are_hidden() {
    // PID 1 belongs to root. If the test runs as root, it uses a process of another user.
    let mut other = Command::new("sleep");
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if is_root {
        std::os::unix::process::CommandExt::uid(&mut other, 65_534);
    }
    let mut other = other.arg("600").spawn().unwrap();
    let pid = if is_root { other.id() } else { 1 };
    let fake = Fake::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"1 GiB\"\n"
    ));
    let server = Server::over(&fake, &[]);
    eventually("it is ready", || server.get("/readyz").status == 200);
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
fn a_server_on_a_socket_answers_by_any_name_and_ends_with_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let script = format!(
        "{} --source sim serve --socket {} --exit-with-parent 2>/dev/null & echo $!; exec sleep 600",
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
    eventually("it listens", || {
        std::os::unix::net::UnixStream::connect(&socket).is_ok()
    });
    parent.kill().unwrap();
    parent.wait().unwrap();
    eventually(
        "it has ended with its parent and removed its socket",
        || !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists() && !socket.exists(),
    );
}

#[test]
fn pages_of_other_origins_and_names_are_refused_on_every_route() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &[]);
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
                ask(server.port, path, &headers).status,
                403,
                "{path} with {foreign}"
            );
        }
        let own = format!("Origin: http://localhost:{}", server.port);
        assert_ne!(
            ask(server.port, path, &[&own]).status,
            403,
            "{path} from its own page"
        );
    }
}
