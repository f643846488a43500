//! Nodes that hang, end, send endless answers, or are not gpumon servers.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use tokio_tungstenite::{connect_async, tungstenite::Message};

use super::{FakePrometheus, OTHER_NODE, PLAIN_NODE_URL, start_fleet};
use crate::support::{TEST_TIMEOUT, send_get, send_request, write_secret};

/// Starts a node that runs this function after it has received a request. Returns its name.
fn start_node(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> String {
    start_node_with_request(move |stream, _| answer(stream))
}

/// Starts a node like [`start_node`], but passes the head of the request to the function.
fn start_node_with_request(
    answer: impl Fn(&mut TcpStream, &str) + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("localhost:{}", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(stream.try_clone().unwrap())
                .lines()
                .map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            answer(&mut stream, &head.join("\n"));
        }
    });
    name
}

fn start_node_with_response(text: &'static str) -> String {
    start_node(move |stream| {
        let _ = stream.write_all(text.as_bytes());
    })
}

#[test]
fn foreign_response_of_node_is_not_forwarded() {
    let html = start_node_with_response(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: \
         25\r\n\r\n<script>alert(1)</script>",
    );
    let script = start_node_with_response(
        "HTTP/1.1 200 OK\r\nContent-Type: text/javascript\r\nContent-Length: 8\r\n\r\nalert(1)",
    );
    let redirect = start_node_with_response(
        "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
    );
    let ssh = start_node_with_response("SSH-2.0-OpenSSH_9.7\r\n");
    let silent = start_node_with_response("");
    let broken = start_node_with_response(
        "HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\nContent-Length: \
         1\r\n\r\nx",
    );
    let two_types = start_node_with_response(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain, text/html\r\nContent-Length: \
         25\r\n\r\n<script>alert(1)</script>",
    );
    let refusal = start_node_with_response(
        "HTTP/1.1 404 Not Found\r\nContent-Type: application/json, text/html\r\nContent-Length: \
         25\r\n\r\n<script>alert(1)</script>",
    );
    let cookies = start_node_with_response(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: gpumon-session-9125=ab; \
         Max-Age=9; Path=/\r\nSet-Cookie: other=1; Path=/\r\nContent-Security-Policy: \
         none\r\nAccess-Control-Allow-Origin: *\r\nClear-Site-Data: \
         \"cookies\"\r\n\r\n{\"name\":null,\"scope\":\"read\",\"token\":true,\"password\":false,\"more\":\"<b>\"}",
    );
    let nodes = [
        html, script, redirect, ssh, silent, broken, two_types, refusal,
    ];
    let all: Vec<&str> = nodes.iter().chain([&cookies]).map(String::as_str).collect();
    let server = start_fleet(
        &FakePrometheus::with_instances(&all),
        &["--node-url", PLAIN_NODE_URL],
    );
    for name in &nodes {
        let answer = server.get(&format!("/nodes/{name}/api/v1/snapshot"));
        assert!(
            answer.status == 502 && answer.body.contains("is not a gpumon server"),
            "{name}: {}",
            answer.body
        );
        assert!(
            !answer.body.contains("alert") && !answer.head.contains("location"),
            "{}",
            answer.head
        );
    }
    let answer = server.get(&format!("/nodes/{cookies}/api/v1/session"));
    let state = r#"{"name":null,"scope":"read","token":true,"password":false}"#;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (200, state),
        "unknown fields are left out"
    );
    for header in [
        "other=1",
        "security-policy: none",
        "allow-origin",
        "clear-site-data",
    ] {
        assert!(!answer.head.contains(header), "{}", answer.head);
    }
    assert!(answer.head.contains(&format!(
        "set-cookie: gpumon-node-{}=gpumon-session-9125.ab",
        server.port
    )));
    let other = server.get(&format!("/nodes/{cookies}/api/v1/runs"));
    assert!(
        other.status == 502 && other.body.contains("cannot be parsed"),
        "{}",
        other.body
    );
    assert!(
        !other.head.contains("set-cookie"),
        "a session is only set after signing in"
    );
}

#[test]
fn error_of_node_is_one_line_of_text() {
    let hostile = start_node_with_response(
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nRetry-After: 99999999\r\n\r\n\
         <script>a</script>\u{1b}[2J\r\nno\tsuch\n",
    );
    let server = start_fleet(
        &FakePrometheus::with_instances(&[&hostile, OTHER_NODE]),
        &["--node-url", PLAIN_NODE_URL],
    );
    let answer = server.get(&format!("/nodes/{hostile}/api/v1/runs"));
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (404, "<script>a</script>\\u{1b}[2J\\r\\nno\\tsuch\n")
    );
    for header in [
        "content-type: text/plain; charset=utf-8",
        "x-content-type-options: nosniff",
        "content-security-policy: default-src 'none'; frame-ancestors 'none'; sandbox",
        "retry-after: 3600",
    ] {
        assert!(answer.head.contains(header), "{header}: {}", answer.head);
    }
}

#[test]
fn credentials_are_sent_only_to_named_hosts() {
    let (sender, heads) = std::sync::mpsc::channel();
    let thief = start_node_with_request(move |stream, head| {
        let _ = sender.send(head.to_lowercase());
        let answer =
            "HTTP/1.1 401 Unauthorized\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno";
        let _ = stream.write_all(answer.as_bytes());
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    write_secret(&file, "ffffffffffffffffffffffffffffffff\n");
    let prometheus = FakePrometheus::with_instances(&[&thief, OTHER_NODE]);
    let start = |hosts: &[&str]| {
        let options = [
            "--node-url",
            PLAIN_NODE_URL,
            "--node-token-file",
            file.to_str().unwrap(),
        ];
        start_fleet(&prometheus, &[&options[..], hosts].concat())
    };
    let path = format!("/nodes/{thief}/api/v1/session");
    for hosts in [&[][..], &["--node-hosts", "*.gpus.example.org,node1"]] {
        let server = start(hosts);
        let session = format!("Cookie: gpumon-node-{}=gpumon-session-1.ab", server.port);
        for answer in [
            send_get(server.port, &path, &[&session]),
            send_request(
                server.port,
                &format!("POST {path}"),
                &["X-Gpumon: run", &session],
                r#"{"token":"secret"}"#,
            ),
        ] {
            assert!(
                answer.status == 502 && answer.body.contains("--node-hosts"),
                "{}: {}",
                answer.status,
                answer.body
            );
        }
        let seen: Vec<String> = heads.try_iter().collect();
        assert_eq!(seen.len(), 1, "a password must not be forwarded: {seen:?}");
        assert!(
            !seen[0].contains("authorization") && !seen[0].contains("cookie"),
            "{seen:?}"
        );
    }
    let hosts = ["--node-hosts", "LOCAL*"];
    // Prometheus reports this port, but any program could listen on it. Without TLS, that program
    // would receive the token.
    assert_eq!(start(&hosts).get(&path).status, 502);
    assert!(!heads.recv().unwrap().contains("authorization"));
    let port = thief.split(':').nth(1).unwrap();
    let fixed = format!("http://{{host}}:{port}/");
    let token = [
        "--node-token-file",
        file.to_str().unwrap(),
        "--node-url",
        &fixed,
    ];
    let server = start_fleet(&prometheus, &[&token[..], &hosts].concat());
    assert_eq!(server.get(&path).status, 401);
    assert!(heads.recv().unwrap().contains("authorization: bearer ffff"));
}

#[test]
fn hanging_node_does_not_delay_other_nodes() {
    let hanging = start_node(|_| thread::sleep(Duration::from_mins(1)));
    let server = start_fleet(
        &FakePrometheus::with_instances(&[&hanging, OTHER_NODE]),
        &["--node-url", PLAIN_NODE_URL],
    );
    assert_eq!(server.get("/api/v1/fleet").status, 200);
    let begun = Instant::now();
    thread::scope(|scope| {
        let hung = scope.spawn(|| server.get(&format!("/nodes/{hanging}/api/v1/snapshot")));
        let begun = Instant::now();
        assert_eq!(server.get("/api/v1/fleet").status, 200);
        assert!(
            begun.elapsed() < Duration::from_secs(8),
            "other requests must not wait for the timeout of the node"
        );
        let answer = hung.join().unwrap();
        assert!(
            answer.status == 504 && answer.body.contains("sent nothing for 10 s"),
            "{}",
            answer.body
        );
    });
    assert!(begun.elapsed() < TEST_TIMEOUT);
}

#[test]
fn endless_response_of_node_is_cut_off() {
    let endless = start_node(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
        while stream.write_all(&[b' '; 1 << 12]).is_ok() {}
    });
    let server = start_fleet(
        &FakePrometheus::with_instances(&[&endless, OTHER_NODE]),
        &["--node-url", PLAIN_NODE_URL],
    );
    assert_eq!(server.get("/api/v1/fleet").status, 200);
    let answer = server.get(&format!("/nodes/{endless}/api/v1/snapshot"));
    assert!(
        answer.status == 502 && answer.body.contains("has more than 33554432 bytes"),
        "{}",
        answer.body
    );
    assert_eq!(server.get("/healthz").status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn buffered_data_of_slow_viewer_is_limited() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = format!("localhost:{}", listener.local_addr().unwrap().port());
    // The number of MiB that the node has sent. It sends as much as possible.
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&sent);
    tokio::spawn(async move {
        use futures_util::SinkExt;
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        while socket
            .send(Message::text("x".repeat(1 << 20)))
            .await
            .is_ok()
        {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let server = start_fleet(
        &FakePrometheus::with_instances(&[&name, OTHER_NODE]),
        &["--node-url", PLAIN_NODE_URL],
    );
    assert_eq!(server.get("/api/v1/fleet").status, 200);
    let url = format!("ws://localhost:{}/nodes/{name}/api/v1/stream", server.port);
    let (viewer, _) = connect_async(url).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    // The node can only send until the buffers of two connections are full, because the viewer does
    // not read.
    let megabytes = sent.load(std::sync::atomic::Ordering::Relaxed);
    assert!(
        (1..40).contains(&megabytes),
        "{megabytes} MiB were sent to a viewer that does not read"
    );
    drop(viewer);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_large_frame_ends_only_its_stream() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = format!("localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        use futures_util::SinkExt;
        while let Ok((stream, _)) = listener.accept().await {
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            let _ = socket.send(Message::text("x".repeat(33 << 20))).await;
        }
    });
    let server = start_fleet(
        &FakePrometheus::with_instances(&[&name, OTHER_NODE]),
        &["--node-url", PLAIN_NODE_URL],
    );
    assert_eq!(server.get("/api/v1/fleet").status, 200);
    let url = format!("ws://localhost:{}/nodes/{name}/api/v1/stream", server.port);
    let (mut viewer, _) = connect_async(url).await.unwrap();
    let Some(Ok(Message::Close(Some(close)))) = futures_util::StreamExt::next(&mut viewer).await
    else {
        panic!()
    };
    assert_eq!(close.reason.as_str(), "the node sent too much at once");
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn hostile_node_names_cannot_change_address() {
    for instance in [
        "evil.example/x:9400",
        "user@evil.example:9400",
        "-oProxyCommand=x",
        "a\u{1b}[2Jb:1",
        "..",
        "<script>:9",
    ] {
        let server = start_fleet(&FakePrometheus::with_instances(&[instance]), &[]);
        let reported = server.get("/api/v1/fleet").json();
        let Some(name) = reported["nodes"]["name"][0].as_str() else {
            continue;
        };
        let encoded = name
            .bytes()
            .fold(String::new(), |text, byte| text + &format!("%{byte:02x}"));
        let answer = server.get(&format!("/nodes/{encoded}/api/v1/snapshot"));
        assert!(
            matches!(answer.status, 404 | 502),
            "{instance}: {} {}",
            answer.status,
            answer.body
        );
        assert!(!answer.body.contains('\u{1b}'), "{:?}", answer.body);
        assert!(
            [
                "is not a valid host name",
                "the fleet has no node with this name",
                "cannot be reached"
            ]
            .iter()
            .any(|why| answer.body.contains(why)),
            "{instance}: {}",
            answer.body
        );
        let address = answer
            .body
            .split_once("https://")
            .map(|(_, rest)| rest.split('/').next().unwrap_or_default());
        assert!(
            matches!(address, None | Some("evil.example:9123")),
            "{instance}: {}",
            answer.body
        );
    }
}
