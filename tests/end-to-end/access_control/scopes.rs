//! The scopes metrics < read < run: access by each token, and a log line for each change.

use super::{
    CHANGING_REQUESTS, LOCAL_CHANGING_REQUESTS, METRICS_TOKEN, READ_TOKEN, RUN_TOKEN, ServerFiles,
    bearer_header,
};
use crate::support::{FakeNvml, Server, send_get, send_request, wait_for_condition};

const PUBLIC_PATHS: [&str; 3] = ["/", "/healthz", "/manifest.webmanifest"];
const METRICS_PATHS: [&str; 3] = ["/metrics", "/metrics/dcgm", "/readyz"];
const READ_PATHS: [&str; 9] = [
    "/api/v1/snapshot",
    "/api/v1/history",
    "/api/v1/usage",
    "/api/v1/cost?kernel_id=k&from_ms=0",
    "/api/v1/answers",
    "/api/v1/catalogue",
    "/api/v1/runs",
    "/api/v1/alerts",
    "/api/v1/replay",
];

#[test]
fn token_gives_access_according_to_scope() {
    let house = ServerFiles::new();
    let server = house.start_with_tokens(&[]);
    wait_for_condition("the server has a sample", || {
        send_get(server.port, "/readyz", &[&bearer_header(METRICS_TOKEN)]).status == 200
    });
    let get = |path: &str, token: Option<&str>| {
        let header = token.map(bearer_header);
        send_get(
            server.port,
            path,
            &header.as_deref().into_iter().collect::<Vec<_>>(),
        )
        .status
    };
    let is_in = |status: u16| !matches!(status, 401 | 403);
    for path in PUBLIC_PATHS {
        assert!(is_in(get(path, None)), "{path}");
    }
    for (paths, least) in [(&METRICS_PATHS[..], 0), (&READ_PATHS, 1)] {
        for path in paths {
            assert_eq!(get(path, None), 401, "{path}");
            for (place, token) in [METRICS_TOKEN, READ_TOKEN, RUN_TOKEN]
                .into_iter()
                .enumerate()
            {
                let status = get(path, Some(token));
                assert_eq!(
                    (is_in(status), status == 403),
                    (place >= least, place < least),
                    "{path} {token}: {status}"
                );
            }
        }
    }
    for request in CHANGING_REQUESTS {
        assert_eq!(
            send_request(server.port, request, &["X-Gpumon: run"], "{}").status,
            401,
            "{request}"
        );
        for (token, may) in [
            (METRICS_TOKEN, false),
            (READ_TOKEN, false),
            (RUN_TOKEN, true),
        ] {
            let answer = send_request(
                server.port,
                request,
                &["X-Gpumon: run", &bearer_header(token)],
                "{}",
            );
            assert_eq!(
                answer.status != 403,
                may,
                "{request} {token}: {}",
                answer.body
            );
            assert!(may || answer.body.contains("scope run"), "{}", answer.body);
        }
    }
    for request in LOCAL_CHANGING_REQUESTS {
        assert_eq!(
            send_request(server.port, request, &["X-Gpumon: run"], "{}").status,
            401,
            "{request}"
        );
        assert_eq!(
            send_request(
                server.port,
                request,
                &["X-Gpumon: run", &bearer_header(RUN_TOKEN)],
                "{}"
            )
            .status,
            403,
            "{request}"
        );
    }
}

#[test]
fn token_in_address_is_ignored() {
    let house = ServerFiles::new();
    let server = house.start_with_tokens(&[]);
    for name in [
        "token",
        "access_token",
        "auth",
        "bearer",
        "authorization",
        "session",
    ] {
        for path in [
            "/api/v1/snapshot",
            "/metrics",
            "/api/v1/stream",
            "/api/v1/session",
        ] {
            assert_eq!(
                server.get(&format!("{path}?{name}={RUN_TOKEN}")).status,
                401,
                "{path} {name}"
            );
        }
    }
    assert_eq!(
        send_get(
            server.port,
            "/metrics",
            &[&format!(
                "Cookie: token={RUN_TOKEN}; gpumon-session-{}={RUN_TOKEN}",
                server.port
            )]
        )
        .status,
        401
    );
    assert!(!server.end_and_read_log().contains(RUN_TOKEN));
}

#[test]
fn unusual_path_spellings_do_not_bypass_token_scopes() {
    let house = ServerFiles::new();
    let server = house.start_with_tokens(&[]);
    for path in [
        "//api/v1/snapshot",
        "/%61pi/v1/snapshot",
        "/api%2fv1%2fsnapshot",
        "/API/v1/snapshot",
        "/./api/v1/snapshot",
        "/assets/../api/v1/snapshot",
        "/assets/%2e%2e/api/v1/snapshot",
        "/api/v1/../v1/snapshot",
        "/api/v1/snapshot/",
        "/api/v1/snapshot;a",
        "/healthz/../api/v1/snapshot",
        "/api/v1/session/../snapshot",
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/....//....//etc/passwd",
        "/assets/..\\..\\etc\\passwd",
        "/%00/etc/passwd",
        "/etc/passwd",
        "http://localhost/api/v1/snapshot",
    ] {
        let answer = server.get(path);
        let is_out = matches!(answer.status, 400 | 401 | 403 | 404);
        assert!(
            is_out && !answer.body.contains("root:") && !answer.body.contains("inventory"),
            "{path}: {}",
            answer.status
        );
    }
}

#[test]
fn every_state_changing_request_is_logged_with_user() {
    let house = ServerFiles::new();
    let server = house.start_with_tokens(&[]);
    let as_ana = bearer_header(RUN_TOKEN);
    let change = |request: &str, body: &str| {
        send_request(server.port, request, &["X-Gpumon: run", &as_ana], body)
    };
    assert_eq!(
        change("POST /api/v1/marks", r#"{"text":"epoch\u001b[31m 3"}"#).status,
        201
    );
    let started = change(
        "POST /api/v1/runs",
        r#"{"kind":"bench","ids":["copy"],"quick":true}"#,
    );
    assert_eq!(started.status, 202, "{}", started.body);
    let run = started.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(
        change(&format!("DELETE /api/v1/runs/{run}"), "").status,
        200
    );
    send_get(server.port, "/metrics", &[&bearer_header(&"x".repeat(40))]);
    let log = server.end_and_read_log();
    let said: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("audit: "))
        .collect();
    for (line, words) in said.iter().zip([
        "token ana at 127.0.0.1 set a mark: epoch".to_owned(),
        format!("token ana at 127.0.0.1 started run {run}: copy"),
        format!("token ana at 127.0.0.1 canceled run {run}: copy"),
        "a wrong token from 127.0.0.1 was rejected".to_owned(),
    ]) {
        assert!(line.contains(&words), "{words}: {line}");
    }
    assert_eq!(said.len(), 4, "{log}");
    assert!(
        !log.contains('\u{1b}') && !log.contains(RUN_TOKEN) && !log.contains(&"x".repeat(40)),
        "{log}"
    );
}

#[test]
fn pause_over_local_socket_is_allowed_and_logged() {
    let fake = FakeNvml::new("gpus = 1");
    let house = ServerFiles::new();
    let server = Server::start_with_fake(&fake, &["--token-file", &house.path_text("tokens")]);
    let command = |arguments: &[&str]| {
        assert!(
            fake.gpumon_command(arguments)
                .output()
                .unwrap()
                .status
                .success(),
            "{arguments:?}"
        );
    };
    command(&["pause", "--for", "1m"]);
    command(&["resume"]);
    command(&["mark", "now"]);
    let log = server.end_and_read_log();
    for words in [
        "at the local socket paused monitoring for 60 s",
        "at the local socket resumed monitoring",
        "set a mark: now",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
}
