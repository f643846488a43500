//! Clients that send garbage or never read do not affect others.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Instant,
};

use crate::support::{FakeNvml, Server, TEST_TIMEOUT, wait_for_condition};

#[tokio::test]
async fn invalid_frame_receives_error_frame() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "100"]);
    let mut stream = server.open_stream().await;
    for garbage in [
        "",
        "{",
        "null",
        "[]",
        r#"{"type":"shutdown"}"#,
        r#"{"type":"pause","for":3}"#,
        r#"{"type":"interval"}"#,
        "\u{0}\u{1F4A3}",
    ] {
        stream.send(garbage).await;
        let error = stream.next_frame_of_type("error").await;
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("pause") && message.contains("resume"),
            "{garbage:?}: {message}"
        );
    }
    stream.send_binary(&[0, 159, 146, 150]).await;
    assert!(
        stream.next_frame_of_type("error").await["message"]
            .as_str()
            .unwrap()
            .contains("JSON text")
    );
    stream.next_frame_of_type("sample").await;
}

#[tokio::test]
async fn flood_or_protocol_error_ends_only_its_connection() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "100"]);
    let mut witness = server.open_stream().await;
    let mut flood = server.open_stream().await;
    flood.send_ignoring_errors(&"x".repeat(1 << 20)).await;
    while flood.next_frame().await.is_some() {}

    let mut raw = connect_without_reading(server.port);
    raw.write_all(&[0xff; 4096]).unwrap();
    raw.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let _ = raw.read_to_end(&mut Vec::new());

    witness.next_frame_of_type("sample").await;
    assert_eq!(server.get("/healthz").status, 200);
}

#[tokio::test]
async fn stalled_clients_do_not_delay_other_clients() {
    let fake = FakeNvml::new("gpus = 64");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "100"]);
    let silent: Vec<_> = (0..20)
        .map(|_| connect_without_reading(server.port))
        .collect();
    let mut witness = server.open_stream().await;
    witness.next_frame_of_type("sample").await;
    // After 100 samples, the buffers of the clients that do not read are full.
    for _ in 0..100 {
        witness.next_frame_of_type("sample").await;
    }
    // On a busy machine, the client that reads may receive samples late, but it catches up. If the
    // other clients delayed it, it would fall further and further behind.
    let until = Instant::now() + TEST_TIMEOUT;
    loop {
        let sample = witness.next_frame_of_type("sample").await;
        let behind_ms = gpumon_probe::model::now_ms() - sample["at_ms"].as_u64().unwrap();
        if behind_ms < 2_000 {
            break;
        }
        assert!(
            Instant::now() < until,
            "the observing client is {behind_ms} ms behind"
        );
    }
    assert_eq!(server.get("/healthz").status, 200);
    drop(silent);
    wait_for_condition("the next client gets a response", || {
        server.get("/readyz").status == 200
    });
}

/// Returns a WebSocket connection from which only the first bytes of the answer are read.
fn connect_without_reading(port: u16) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!(
        "GET /api/v1/stream HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: Upgrade\r\nUpgrade: \
         websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \
         dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 101");
    stream
}
