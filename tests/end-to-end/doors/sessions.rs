//! Signing in on the page: the session cookie is not the token, becomes invalid together with it,
//! and gives access to the stream.

use serde_json::json;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::{House, METRICS, READ, RUN, bearer, cookie_of, serve};
use crate::support::{Answer, Stream, ask, eventually, send, write_secret};

const PATH: &str = "/api/v1/session";

fn sign_in(port: u16, token: &str) -> Answer {
    send(
        port,
        &format!("POST {PATH}"),
        &["X-Gpumon: run"],
        &json!({ "token": token }).to_string(),
    )
}

fn snapshot(port: u16, cookie: &str) -> u16 {
    ask(port, "/api/v1/snapshot?brief=true", &[cookie]).status
}

#[test]
fn a_token_is_changed_for_a_cookie_that_no_script_and_no_other_site_gets() {
    let house = House::new();
    let server = house.protected();
    let client = house.client();
    let headers = ["X-Gpumon: run", "Origin: https://localhost"];
    let origin = format!("{}:{}", headers[1], server.port);
    let body = json!({ "token": RUN }).to_string();
    let answer = client
        .try_ask(
            server.port,
            &format!("POST {PATH}"),
            &[headers[0], &origin],
            &body,
        )
        .unwrap();
    assert!(!answer.head.contains(RUN) && !answer.body.contains(RUN));
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
    let cookie = cookie_of(&answer);
    assert_eq!(
        client
            .ask(server.port, "GET /api/v1/snapshot", &[&cookie])
            .status,
        200
    );
    assert_eq!(
        client
            .ask(server.port, &format!("GET {PATH}"), &[&cookie])
            .json()["name"],
        "token ana"
    );
    // Another host of the domain could set a cookie without the prefix, so such a cookie is
    // ignored.
    assert_eq!(
        client
            .ask(
                server.port,
                "GET /api/v1/snapshot",
                &[&cookie.replace("__Host-", "")]
            )
            .status,
        401
    );
    let plain = house.with_tokens(&[]);
    let set = sign_in(plain.port, READ).head;
    assert!(
        set.contains("set-cookie: gpumon-session-") && !set.contains("secure"),
        "{set}"
    );
}

#[test]
fn behind_a_proxy_that_encrypts_the_cookie_is_for_encrypted_connections() {
    let house = House::new();
    let server = house.with_tokens(&["--public-origin", "https://gpus.example.org"]);
    let headers = [
        "X-Gpumon: run",
        "Host: gpus.example.org",
        "Origin: https://gpus.example.org",
    ];
    let answer = send(
        server.port,
        &format!("POST {PATH}"),
        &headers,
        &json!({ "token": READ }).to_string(),
    );
    assert!(
        answer.head.contains("set-cookie: __host-") && answer.head.contains("; secure"),
        "{}",
        answer.head
    );
    assert_eq!(snapshot(server.port, &cookie_of(&answer)), 200);
}

#[test]
fn a_session_has_the_scope_of_its_token_and_ends_by_signing_out() {
    let house = House::new();
    let server = house.with_tokens(&[]);
    let [run, read, metrics] =
        [RUN, READ, METRICS].map(|token| cookie_of(&sign_in(server.port, token)));
    assert_eq!(
        [&run, &read, &metrics].map(|cookie| snapshot(server.port, cookie)),
        [200, 200, 403]
    );
    let mark = |cookie: &str| {
        send(
            server.port,
            "POST /api/v1/marks",
            &["X-Gpumon: run", cookie],
            r#"{"text":"a"}"#,
        )
        .status
    };
    assert_eq!([mark(&run), mark(&read)], [201, 403]);
    let out = |cookie: &str, headers: &[&str]| {
        send(
            server.port,
            &format!("DELETE {PATH}"),
            &[&[cookie], headers].concat(),
            "",
        )
    };
    assert_eq!(out(&run, &[]).status, 403, "without the header");
    let answer = out(&run, &["X-Gpumon: run"]);
    assert!(
        answer.status == 204 && answer.head.contains("max-age=0"),
        "{}",
        answer.head
    );
    assert_eq!(
        (snapshot(server.port, &run), snapshot(server.port, &read)),
        (401, 200)
    );
    assert_eq!(
        out("Cookie: none=1", &["X-Gpumon: run"]).status,
        204,
        "who is not signed in is out"
    );
}

#[test]
fn who_is_not_signed_in_learns_how_and_what_is_no_request_is_refused() {
    let house = House::new();
    let server = house.with_tokens(&[]);
    let state = server.get(PATH);
    assert_eq!(
        (state.status, state.json()),
        (
            401,
            json!({"name":null,"scope":null,"token":true,"password":false})
        )
    );
    let post = |body: &str| {
        send(
            server.port,
            &format!("POST {PATH}"),
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
        RUN,
        "\u{0}",
    ] {
        let answer = post(body);
        assert!(
            answer.status == 400 && !answer.body.contains(RUN),
            "{body}: {} {}",
            answer.status,
            answer.body
        );
    }
    assert_eq!(post(&json!({ "token": "wrong" }).to_string()).status, 401);
    let open = serve(&[]);
    assert_eq!(open.get(PATH).json()["scope"], "run");
    assert_eq!(sign_in(open.port, RUN).status, 409);
}

/// Opens a stream with this header.
async fn stream(port: u16, header: &str) -> Stream {
    let mut request = format!("ws://localhost:{port}/api/v1/stream")
        .into_client_request()
        .unwrap();
    let (name, value) = header.split_once(": ").unwrap();
    let name: tokio_tungstenite::tungstenite::http::HeaderName = name.parse().unwrap();
    request.headers_mut().insert(name, value.parse().unwrap());
    Stream::connect_with(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_takes_the_cookie_and_ends_when_somebody_signs_out() {
    let house = House::new();
    let server = house.with_tokens(&[]);
    let cookie = cookie_of(&sign_in(server.port, READ));
    let mut by_cookie = stream(server.port, &cookie).await;
    let mut by_token = stream(server.port, &bearer(READ)).await;
    by_cookie.next_of("hello").await;
    by_token.next_of("hello").await;
    assert_eq!(
        send(
            server.port,
            &format!("DELETE {PATH}"),
            &["X-Gpumon: run", &cookie],
            ""
        )
        .status,
        204
    );
    while by_cookie.next().await.is_some() {}
    by_token.next_of("sample").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_taken_from_the_file_takes_sessions_and_streams_along() {
    let house = House::new();
    let server = house.with_tokens(&[]);
    let [read, run] = [READ, RUN].map(|token| cookie_of(&sign_in(server.port, token)));
    let mut stream = stream(server.port, &read).await;
    stream.next_of("hello").await;
    house.write_tokens(&[("read", "ana", RUN)]);
    eventually("the token counts no more", || {
        snapshot(server.port, &read) == 401
    });
    assert_eq!(
        ask(server.port, "/api/v1/snapshot", &[&bearer(READ)]).status,
        401
    );
    while stream.next().await.is_some() {}
    // The scope of the other token has changed, and so has that of its sessions.
    let mark = |header: &str| {
        send(
            server.port,
            "POST /api/v1/marks",
            &["X-Gpumon: run", header],
            r#"{"text":"a"}"#,
        )
        .status
    };
    assert_eq!(
        (snapshot(server.port, &run), mark(&run), mark(&bearer(RUN))),
        (200, 403, 403)
    );
    // An invalid file changes nothing. A file without tokens ends all sessions.
    write_secret(&house.path("tokens"), "run ana short\n");
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(snapshot(server.port, &run), 200);
    write_secret(&house.path("tokens"), "# nobody\n");
    eventually("nobody is let in", || snapshot(server.port, &run) == 401);
    assert_eq!(server.get("/api/v1/snapshot").status, 401);
}
