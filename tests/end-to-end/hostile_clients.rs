//! Clients that send garbage or never read do not affect others.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Instant,
};

use crate::support::{Fake, PATIENCE, Server, eventually};

#[tokio::test]
async fn a_frame_that_means_nothing_gets_an_error_frame_and_the_connection_goes_on() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &["--interval-ms", "100"]);
    let mut stream = server.stream().await;
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
        let error = stream.next_of("error").await;
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("pause") && message.contains("resume"),
            "{garbage:?}: {message}"
        );
    }
    stream.send_binary(&[0, 159, 146, 150]).await;
    assert!(
        stream.next_of("error").await["message"]
            .as_str()
            .unwrap()
            .contains("JSON text")
    );
    stream.next_of("sample").await;
}

#[tokio::test]
async fn a_flood_or_a_broken_protocol_ends_that_connection_alone() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &["--interval-ms", "100"]);
    let mut witness = server.stream().await;
    let mut flood = server.stream().await;
    flood.send_at_risk(&"x".repeat(1 << 20)).await;
    while flood.next().await.is_some() {}

    let mut raw = upgraded(server.port);
    raw.write_all(&[0xff; 4096]).unwrap();
    raw.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = raw.read_to_end(&mut Vec::new());

    witness.next_of("sample").await;
    assert_eq!(server.get("/healthz").status, 200);
}

#[tokio::test]
async fn clients_that_never_read_delay_nobody() {
    let fake = Fake::new("gpus = 64");
    let server = Server::over(&fake, &["--interval-ms", "100"]);
    let silent: Vec<_> = (0..20).map(|_| upgraded(server.port)).collect();
    let mut witness = server.stream().await;
    witness.next_of("sample").await;
    // By then, the buffers of the clients that do not read are full.
    for _ in 0..100 {
        witness.next_of("sample").await;
    }
    // On a busy machine, the witness may be late but catches up. If it were delayed by other
    // clients, it would fall further and further behind.
    let until = Instant::now() + PATIENCE;
    loop {
        let sample = witness.next_of("sample").await;
        let behind_ms = gpumon_probe::model::now_ms() - sample["at_ms"].as_u64().unwrap();
        if behind_ms < 2_000 {
            break;
        }
        assert!(
            Instant::now() < until,
            "the witness is {behind_ms} ms behind"
        );
    }
    assert_eq!(server.get("/healthz").status, 200);
    drop(silent);
    eventually("the next client is served", || {
        server.get("/readyz").status == 200
    });
}

/// Returns a WebSocket connection from which only the first bytes of the answer are read.
fn upgraded(port: u16) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!(
        "GET /api/v1/stream HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 101");
    stream
}
