//! Requests that are too large are refused, and the next client is served.

use super::{RUN_TOKEN, ServerFiles, bearer_header};
use crate::support::send_get;

#[test]
fn oversized_request_is_refused_or_closed() {
    let house = ServerFiles::new();
    let server = house.start_with_tls_and_tokens();
    let client = house.tls_client();
    let large = "x".repeat(200_000);
    let requests = [
        (format!("GET /{large}"), vec![]),
        (
            format!("GET /api/v1/snapshot?metrics={large}"),
            vec![bearer_header(RUN_TOKEN)],
        ),
        (
            "GET /api/v1/snapshot".to_owned(),
            vec![bearer_header(&large)],
        ),
        (
            "GET /api/v1/snapshot".to_owned(),
            vec![format!("Authorization: Basic {large}")],
        ),
        (
            "GET /api/v1/snapshot".to_owned(),
            vec![format!("Cookie: {large}")],
        ),
        (
            "GET /healthz".to_owned(),
            (0..2000).map(|number| format!("X-{number}: y")).collect(),
        ),
        ("GET /healthz".to_owned(), vec![format!("Host: {large}")]),
        (format!("{large} /healthz"), vec![]),
    ];
    for (request, headers) in requests {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        if let Ok(answer) = client.try_request(server.port, &request, &headers, "") {
            assert!(
                matches!(answer.status, 0 | 400 | 401 | 403 | 414 | 431),
                "{:.30}: {}",
                request,
                answer.status
            );
        }
        assert_eq!(
            client.send_request(server.port, "GET /healthz", &[]).status,
            200
        );
    }
    let body = format!(r#"{{"token":"{large}"}}"#);
    for (request, status) in [
        ("POST /api/v1/session", 413),
        ("POST /api/v1/marks", 413),
        ("POST /api/v1/runs", 413),
    ] {
        let answer = client.try_request(
            server.port,
            request,
            &["X-Gpumon: run", &bearer_header(RUN_TOKEN)],
            &body,
        );
        assert!(
            answer.is_err() || answer.is_ok_and(|answer| answer.status == status),
            "{request}"
        );
    }
    // A body that never arrives is subject to the usual timeout.
    let huge = ["X-Gpumon: run", "Content-Length: 99999999999999"];
    let answer = client.try_request(server.port, "POST /api/v1/session", &huge, "");
    assert!(answer.is_err() || answer.is_ok_and(|answer| matches!(answer.status, 408 | 413)));
    assert_eq!(
        client.send_request(server.port, "GET /healthz", &[]).status,
        200
    );
}

#[test]
fn many_cookies_and_sessions_are_handled() {
    let house = ServerFiles::new();
    let server = house.start_with_tokens(&[]);
    let cookies: Vec<String> = (0..200)
        .map(|number| format!("gpumon-session-{}={number}", server.port))
        .collect();
    assert_eq!(
        send_get(
            server.port,
            "/api/v1/snapshot",
            &[&format!("Cookie: {}", cookies.join("; "))]
        )
        .status,
        401
    );
    let sign_in = || {
        crate::support::send_request(
            server.port,
            "POST /api/v1/session",
            &["X-Gpumon: run"],
            &format!(r#"{{"token":"{RUN_TOKEN}"}}"#),
        )
    };
    let first = super::session_cookie(&sign_in());
    let later: Vec<String> = (0..100)
        .map(|_| super::session_cookie(&sign_in()))
        .collect();
    assert_eq!(
        send_get(server.port, "/metrics", &[&first]).status,
        401,
        "the oldest session is removed"
    );
    assert_eq!(send_get(server.port, "/metrics", &[&later[99]]).status, 200);
}
