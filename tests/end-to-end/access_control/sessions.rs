//! Signing in on the page. The session cookie differs from the token, becomes invalid when the
//! token does, and gives access to the stream.

use serde_json::json;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::{
    METRICS_TOKEN, READ_TOKEN, RUN_TOKEN, ServerFiles, bearer_header, session_cookie, start_server,
};
use crate::support::{
    HttpResponse, Stream, send_get, send_request, wait_for_condition, write_secret,
};

const SESSION_PATH: &str = "/api/v1/session";

fn sign_in(port: u16, token: &str) -> HttpResponse {
    send_request(
        port,
        &format!("POST {SESSION_PATH}"),
        &["X-Gpumon: run"],
        &json!({ "token": token }).to_string(),
    )
}

fn snapshot_status(port: u16, cookie: &str) -> u16 {
    send_get(port, "/api/v1/snapshot?brief=true", &[cookie]).status
}

#[test]
fn sign_in_returns_protected_session_cookie() {
    let house = ServerFiles::new();
    let server = house.start_with_tls_and_tokens();
    let client = house.tls_client();
    let headers = ["X-Gpumon: run", "Origin: https://localhost"];
    let origin = format!("{}:{}", headers[1], server.port);
    let body = json!({ "token": RUN_TOKEN }).to_string();
    let answer = client
        .try_request(
            server.port,
            &format!("POST {SESSION_PATH}"),
            &[headers[0], &origin],
            &body,
        )
        .unwrap();
    assert!(!answer.head.contains(RUN_TOKEN) && !answer.body.contains(RUN_TOKEN));
    let set = answer
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap();
    let mut parts = set.split("; ");
    let (name, value) = parts.next().unwrap().split_once('=').unwrap();
    assert_eq!(
        (name, value.len()),
        (
            format!("__host-gpumon-session-{}", server.port).as_str(),
            64
        )
    );
    let parts: Vec<&str> = parts.collect();
    for part in ["httponly", "samesite=strict", "secure", "path=/"] {
        assert!(parts.contains(&part), "{part}: {set}");
    }
    let cookie = session_cookie(&answer);
    assert_eq!(
        client
            .send_request(server.port, "GET /api/v1/snapshot", &[&cookie])
            .status,
        200
    );
    assert_eq!(
        client
            .send_request(server.port, &format!("GET {SESSION_PATH}"), &[&cookie])
            .json()["name"],
        "token ana"
    );
    // Another host of the domain could set a cookie without the `__Host-` prefix, so the server
    // ignores cookies without it.
    assert_eq!(
        client
            .send_request(
                server.port,
                "GET /api/v1/snapshot",
                &[&cookie.replace("__Host-", "")]
            )
            .status,
        401
    );
    let plain = house.start_with_tokens(&[]);
    let set = sign_in(plain.port, READ_TOKEN).head;
    assert!(
        set.contains("set-cookie: gpumon-session-") && !set.contains("secure"),
        "{set}"
    );
}

#[test]
fn cookie_behind_encrypting_proxy_is_secure() {
    let house = ServerFiles::new();
    let server = house.start_with_tokens(&["--public-origin", "https://gpus.example.org"]);
    let headers = [
        "X-Gpumon: run",
        "Host: gpus.example.org",
        "Origin: https://gpus.example.org",
    ];
    let answer = send_request(
        server.port,
        &format!("POST {SESSION_PATH}"),
        &headers,
        &json!({ "token": READ_TOKEN }).to_string(),
    );
    assert!(
        answer.head.contains("set-cookie: __host-") && answer.head.contains("; secure"),
        "{}",
        answer.head
    );
    assert_eq!(snapshot_status(server.port, &session_cookie(&answer)), 200);
}

#[test]
fn session_has_token_scope_until_sign_out() {
    let house = ServerFiles::new();
    let server = house.start_with_tokens(&[]);
    let [run, read, metrics] = [RUN_TOKEN, READ_TOKEN, METRICS_TOKEN]
        .map(|token| session_cookie(&sign_in(server.port, token)));
    assert_eq!(
        [&run, &read, &metrics].map(|cookie| snapshot_status(server.port, cookie)),
        [200, 200, 403]
    );
    let mark = |cookie: &str| {
        send_request(
            server.port,
            "POST /api/v1/marks",
            &["X-Gpumon: run", cookie],
            r#"{"text":"a"}"#,
        )
        .status
    };
    assert_eq!([mark(&run), mark(&read)], [201, 403]);
    let out = |cookie: &str, headers: &[&str]| {
        send_request(
            server.port,
            &format!("DELETE {SESSION_PATH}"),
            &[&[cookie], headers].concat(),
            "",
        )
    };
    assert_eq!(
        out(&run, &[]).status,
        403,
        "sign-out without the header is refused"
    );
    let answer = out(&run, &["X-Gpumon: run"]);
    assert!(
        answer.status == 204 && answer.head.contains("max-age=0"),
        "{}",
        answer.head
    );
    assert_eq!(
        (
            snapshot_status(server.port, &run),
            snapshot_status(server.port, &read)
        ),
        (401, 200)
    );
    assert_eq!(
        out("Cookie: none=1", &["X-Gpumon: run"]).status,
        204,
        "sign-out without a session succeeds"
    );
}

#[test]
fn missing_session_and_invalid_requests_are_refused() {
    let house = ServerFiles::new();
    let server = house.start_with_tokens(&[]);
    let state = server.get(SESSION_PATH);
    assert_eq!(
        (state.status, state.json()),
        (
            401,
            json!({"name":null,"scope":null,"token":true,"password":false})
        )
    );
    let post = |body: &str| {
        send_request(
            server.port,
            &format!("POST {SESSION_PATH}"),
            &["X-Gpumon: run"],
            body,
        )
    };
    for body in [
        "{}",
        "[]",
        "null",
        r#"{"token":1}"#,
        r#"{"token":"a","scope":"run"}"#,
        RUN_TOKEN,
        "\u{0}",
    ] {
        let answer = post(body);
        assert!(
            answer.status == 400 && !answer.body.contains(RUN_TOKEN),
            "{body}: {} {}",
            answer.status,
            answer.body
        );
    }
    assert_eq!(post(&json!({ "token": "wrong" }).to_string()).status, 401);
    let open = start_server(&[]);
    assert_eq!(open.get(SESSION_PATH).json()["scope"], "run");
    assert_eq!(sign_in(open.port, RUN_TOKEN).status, 409);
}

/// Opens a stream with this header.
async fn open_stream(port: u16, header: &str) -> Stream {
    let mut request = format!("ws://localhost:{port}/api/v1/stream")
        .into_client_request()
        .unwrap();
    let (name, value) = header.split_once(": ").unwrap();
    let name: tokio_tungstenite::tungstenite::http::HeaderName = name.parse().unwrap();
    request.headers_mut().insert(name, value.parse().unwrap());
    Stream::connect_with(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_accepts_cookie_and_ends_at_sign_out() {
    let house = ServerFiles::new();
    let server = house.start_with_tokens(&[]);
    let cookie = session_cookie(&sign_in(server.port, READ_TOKEN));
    let mut by_cookie = open_stream(server.port, &cookie).await;
    let mut by_token = open_stream(server.port, &bearer_header(READ_TOKEN)).await;
    by_cookie.next_frame_of_type("hello").await;
    by_token.next_frame_of_type("hello").await;
    assert_eq!(
        send_request(
            server.port,
            &format!("DELETE {SESSION_PATH}"),
            &["X-Gpumon: run", &cookie],
            ""
        )
        .status,
        204
    );
    while by_cookie.next_frame().await.is_some() {}
    by_token.next_frame_of_type("sample").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_token_ends_sessions_and_streams() {
    let house = ServerFiles::new();
    let server = house.start_with_tokens(&[]);
    let [read, run] =
        [READ_TOKEN, RUN_TOKEN].map(|token| session_cookie(&sign_in(server.port, token)));
    let mut stream = open_stream(server.port, &read).await;
    stream.next_frame_of_type("hello").await;
    house.write_tokens(&[("read", "ana", RUN_TOKEN)]);
    wait_for_condition("the session of the removed token is refused", || {
        snapshot_status(server.port, &read) == 401
    });
    assert_eq!(
        send_get(
            server.port,
            "/api/v1/snapshot",
            &[&bearer_header(READ_TOKEN)]
        )
        .status,
        401
    );
    while stream.next_frame().await.is_some() {}
    // The scope of the other token was changed. The change also applies to the sessions that were
    // started with this token.
    let mark = |header: &str| {
        send_request(
            server.port,
            "POST /api/v1/marks",
            &["X-Gpumon: run", header],
            r#"{"text":"a"}"#,
        )
        .status
    };
    assert_eq!(
        (
            snapshot_status(server.port, &run),
            mark(&run),
            mark(&bearer_header(RUN_TOKEN))
        ),
        (200, 403, 403)
    );
    // An invalid token file changes nothing. A token file without tokens ends all sessions.
    write_secret(&house.path("tokens"), "run ana short\n");
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(snapshot_status(server.port, &run), 200);
    write_secret(&house.path("tokens"), "# nobody\n");
    wait_for_condition(
        "the session is refused after all tokens were removed",
        || snapshot_status(server.port, &run) == 401,
    );
    assert_eq!(server.get("/api/v1/snapshot").status, 401);
}
