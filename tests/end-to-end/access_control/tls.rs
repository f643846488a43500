//! Encryption: accepted versions, unencrypted requests, client certificates, and changed files.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use tokio_rustls::rustls::version::{TLS12, TLS13};

use super::{READ_TOKEN, RUN_TOKEN, ServerFiles, bearer_header};
use crate::support::{Authority, TEST_TIMEOUT, replace_file, wait_for_condition, write_secret};

/// The types of TLS records for handshakes and alerts, and the code of an alert about the TLS
/// version.
const HANDSHAKE_RECORD: u8 = 22;
const ALERT_RECORD: u8 = 21;
const PROTOCOL_VERSION_ALERT: u8 = 70;

fn connect_raw(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

fn send_and_read_bytes(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect_raw(port);
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Returns a valid `ClientHello` whose highest TLS version is `version`.
fn client_hello(version: [u8; 2]) -> Vec<u8> {
    // TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256; X25519; ECDSA with P-256; uncompressed points; EMS.
    let extensions: [&[u8]; 4] = [
        &[0, 10, 0, 4, 0, 2, 0, 29],
        &[0, 13, 0, 4, 0, 2, 4, 3],
        &[0, 11, 0, 2, 1, 0],
        &[0, 23, 0, 0],
    ];
    let extensions = extensions.concat();
    let head = [
        &version[..],
        &[7; 32],
        &[0],
        &[0, 2, 0xc0, 0x2b],
        &[1, 0],
        &[0, extensions.len() as u8],
    ]
    .concat();
    let body = [head, extensions].concat();
    let length = body.len() as u8;
    [&[22, 3, 1, 0, length + 4, 1, 0, 0, length][..], &body].concat()
}

#[test]
fn old_tls_versions_are_refused() {
    let house = ServerFiles::new();
    let server = house.start_with_tls_and_tokens();
    for version in [&TLS12, &TLS13] {
        let client = house.authority.make_client_with(None, &[version]);
        assert_eq!(
            client
                .send_request(
                    server.port,
                    "GET /api/v1/snapshot",
                    &[&bearer_header(READ_TOKEN)]
                )
                .status,
            200
        );
    }
    for version in [[3, 0], [3, 1], [3, 2]] {
        let answer = send_and_read_bytes(server.port, &client_hello(version));
        assert!(
            answer.len() == 7 && answer[0] == ALERT_RECORD && answer[6] == PROTOCOL_VERSION_ALERT,
            "{version:?}: {answer:?}"
        );
    }
    let mut stream = connect_raw(server.port);
    stream.write_all(&client_hello([3, 3])).unwrap();
    let mut first = [0];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(
        first[0], HANDSHAKE_RECORD,
        "the same handshake with TLS 1.2 is accepted"
    );
    house.write_web_config("  min_version: TLS13\n");
    let strict = house.start_with_tls_and_tokens();
    let old = house.authority.make_client_with(None, &[&TLS12]);
    assert!(
        old.try_request(strict.port, "GET /healthz", &[], "")
            .is_err()
    );
    assert_eq!(
        house
            .tls_client()
            .send_request(strict.port, "GET /healthz", &[])
            .status,
        200
    );
}

#[test]
fn unencrypted_request_to_tls_port_gets_only_hint() {
    let house = ServerFiles::new();
    let server = house.start_with_tls_and_tokens();
    let request = format!(
        "GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n",
        bearer_header(RUN_TOKEN)
    );
    let answer = String::from_utf8(send_and_read_bytes(server.port, request.as_bytes())).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400 ")
            && answer.ends_with("this port accepts only HTTPS: use https://\n"),
        "{answer}"
    );
    assert!(!answer.contains("version"), "{answer}");
    for garbage in [
        &b"\x16"[..],
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x00\x05hello",
        b"SSH-2.0-x\r\n",
        &[0; 4096],
    ] {
        let mut stream = connect_raw(server.port);
        let _ = stream.write_all(garbage);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert_eq!(
        house
            .tls_client()
            .send_request(server.port, "GET /healthz", &[])
            .status,
        200
    );
}

#[test]
fn endless_handshakes_are_closed_without_blocking_other_clients() {
    let house = ServerFiles::new();
    let server = house.start_with_tls_and_tokens();
    let begun = Instant::now();
    let hello = [&[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[7; 32]].concat();
    let mut slow: Vec<TcpStream> = (0..40)
        .map(|number| {
            let mut stream = connect_raw(server.port);
            stream.write_all(&hello[..=number % hello.len()]).unwrap();
            stream
        })
        .collect();
    // This client keeps sending single bytes.
    let drip = std::thread::spawn({
        let mut stream = connect_raw(server.port);
        move || {
            for byte in hello.iter().cycle() {
                if stream.write_all(&[*byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    });
    for _ in 0..5 {
        assert_eq!(
            house
                .tls_client()
                .send_request(server.port, "GET /healthz", &[])
                .status,
            200
        );
    }
    for stream in &mut slow {
        let _ = stream.read_to_end(&mut Vec::new());
    }
    drip.join().unwrap();
    assert!(
        begun.elapsed() > Duration::from_secs(8),
        "slow clients get several seconds"
    );
}

#[test]
fn endless_requests_over_tls_are_closed() {
    let house = ServerFiles::new();
    let server = house.start_with_tls_and_tokens();
    let mut slow = house.tls_client().connect(server.port);
    slow.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: ")
        .unwrap();
    slow.flush().unwrap();
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
    assert_eq!(
        house
            .tls_client()
            .send_request(server.port, "GET /healthz", &[])
            .status,
        200
    );
}

#[test]
fn certificate_is_reloaded_and_errors_are_logged_once() {
    let mut house = ServerFiles::new();
    let mut server = house.start_with_tls_and_tokens();
    let old = house.tls_client();
    assert_eq!(
        old.send_request(server.port, "GET /healthz", &[]).status,
        200
    );
    house.authority = Authority::new();
    house
        .authority
        .issue_identity(&["localhost"])
        .write_files(house.folder.path());
    wait_for_condition("the server uses the new certificate", || {
        house
            .tls_client()
            .try_request(server.port, "GET /healthz", &[], "")
            .is_ok_and(|answer| answer.status == 200)
    });
    assert!(
        old.try_request(server.port, "GET /healthz", &[], "")
            .is_err(),
        "the server no longer uses the old certificate"
    );
    loop {
        if server
            .next_message()
            .contains("the web configuration was reloaded")
        {
            break;
        }
    }
    replace_file(&house.path("server.crt"), "broken", 0o644);
    let reported = server.next_message();
    assert!(
        reported.contains("WARN")
            && reported.contains("server.crt")
            && reported.contains("stays in effect"),
        "{reported}"
    );
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(
        house
            .tls_client()
            .send_request(server.port, "GET /healthz", &[])
            .status,
        200
    );
    house.write_web_config("rate_limit: {interval: 1s, burst: 0}\n");
    let reported = server.next_message();
    assert!(
        reported.contains("burst") || reported.contains("server.crt"),
        "the first error is only logged once: {reported}"
    );
    // The server also ignores this change, because an empty configuration would remove its
    // protection.
    house
        .authority
        .issue_identity(&["localhost"])
        .write_files(house.folder.path());
    write_secret(&house.path("web.yml"), "");
    wait_for_condition("the log reports that a restart is required", || {
        server.next_message().contains("requires a restart")
    });
    assert_eq!(
        house
            .tls_client()
            .send_request(server.port, "GET /healthz", &[])
            .status,
        200
    );
}

#[test]
fn only_allowed_client_certificates_are_accepted() {
    let house = ServerFiles::new();
    let strangers = Authority::new();
    let [ana, bob] = [&["ana.example.org"][..], &["bob.example.org", "10.0.0.9"]]
        .map(|names| house.authority.issue_identity(names));
    let eve = strangers.issue_identity(&["ana.example.org"]);
    let versions: &[_] = &[&TLS12, &TLS13];
    let client = |own| house.authority.make_client_with(own, versions);
    let status = |port: u16, own, request: &str| {
        client(own)
            .try_request(port, request, &[], "")
            .map(|answer| answer.status)
            .ok()
    };
    house.write_web_config(
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n",
    );
    let server = house.start_with_tls(&[]);
    assert_eq!(
        status(server.port, Some(&ana), "GET /api/v1/snapshot"),
        Some(200)
    );
    assert_eq!(
        status(server.port, Some(&ana), "POST /api/v1/marks"),
        Some(403),
        "a client certificate only allows reading"
    );
    for own in [None, Some(&eve)] {
        assert_eq!(status(server.port, own, "GET /"), None);
    }
    house.write_web_config(
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n  \
         client_allowed_sans: [10.0.0.9]\n",
    );
    let strict = house.start_with_tls(&[]);
    assert_eq!(
        status(strict.port, Some(&bob), "GET /api/v1/snapshot"),
        Some(200)
    );
    assert_eq!(
        status(strict.port, Some(&ana), "GET /api/v1/snapshot"),
        None
    );
    // If there are passwords, a certificate alone is not enough.
    house.write_web_config(
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: \
         ca.crt\nbasic_auth_users:\n  ana: \
         $2b$04$9KVBEGvapFjzzFQjgF330O/446X5e.EFNWNC3OenoHMAnjzfjtnRe\n",
    );
    let both = house.start_with_tls(&[]);
    assert_eq!(
        status(both.port, Some(&ana), "GET /api/v1/snapshot"),
        Some(401)
    );
}

#[test]
fn configured_headers_are_in_every_response() {
    let house = ServerFiles::new();
    house.write_web_config(
        "http_server_config:\n  headers:\n    Strict-Transport-Security: max-age=31536000\n    \
         X-Frame-Options: deny\n",
    );
    let server = house.start_with_tls_and_tokens();
    for path in ["/", "/healthz", "/api/v1/snapshot", "/none"] {
        let head = house
            .tls_client()
            .send_request(server.port, &format!("GET {path}"), &[])
            .head;
        assert!(
            head.contains("strict-transport-security: max-age=31536000")
                && head.contains("x-frame-options: deny"),
            "{head}"
        );
    }
}
