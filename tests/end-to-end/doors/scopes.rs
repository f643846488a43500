//! The scopes metrics < read < run: access by each token, and a log line for each change.

use super::{CHANGES, House, LOCAL_CHANGES, METRICS, READ, RUN, bearer};
use crate::support::{Fake, Server, ask, eventually, send};

const OPEN: [&str; 3] = ["/", "/healthz", "/manifest.webmanifest"];
const OF_METRICS: [&str; 3] = ["/metrics", "/metrics/dcgm", "/readyz"];
const OF_READ: [&str; 9] = [
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
fn each_token_opens_what_its_scope_says_and_nothing_more() {
    let house = House::new();
    let server = house.with_tokens(&[]);
    eventually("it samples", || {
        ask(server.port, "/readyz", &[&bearer(METRICS)]).status == 200
    });
    let get = |path: &str, token: Option<&str>| {
        let header = token.map(bearer);
        ask(
            server.port,
            path,
            &header.as_deref().into_iter().collect::<Vec<_>>(),
        )
        .status
    };
    let is_in = |status: u16| !matches!(status, 401 | 403);
    for path in OPEN {
        assert!(is_in(get(path, None)), "{path}");
    }
    for (paths, least) in [(&OF_METRICS[..], 0), (&OF_READ, 1)] {
        for path in paths {
            assert_eq!(get(path, None), 401, "{path}");
            for (place, token) in [METRICS, READ, RUN].into_iter().enumerate() {
                let status = get(path, Some(token));
                assert_eq!(
                    (is_in(status), status == 403),
                    (place >= least, place < least),
                    "{path} {token}: {status}"
                );
            }
        }
    }
    for request in CHANGES {
        assert_eq!(
            send(server.port, request, &["X-Gpumon: run"], "{}").status,
            401,
            "{request}"
        );
        for (token, may) in [(METRICS, false), (READ, false), (RUN, true)] {
            let answer = send(
                server.port,
                request,
                &["X-Gpumon: run", &bearer(token)],
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
    for request in LOCAL_CHANGES {
        assert_eq!(
            send(server.port, request, &["X-Gpumon: run"], "{}").status,
            401,
            "{request}"
        );
        assert_eq!(
            send(server.port, request, &["X-Gpumon: run", &bearer(RUN)], "{}").status,
            403,
            "{request}"
        );
    }
}

#[test]
fn what_is_in_the_address_is_no_token() {
    let house = House::new();
    let server = house.with_tokens(&[]);
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
                server.get(&format!("{path}?{name}={RUN}")).status,
                401,
                "{path} {name}"
            );
        }
    }
    assert_eq!(
        ask(
            server.port,
            "/metrics",
            &[&format!(
                "Cookie: token={RUN}; gpumon-session-{}={RUN}",
                server.port
            )]
        )
        .status,
        401
    );
    assert!(!server.end_and_read_log().contains(RUN));
}

#[test]
fn ways_around_the_path_lead_nowhere() {
    let house = House::new();
    let server = house.with_tokens(&[]);
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
fn every_change_leaves_a_line_in_the_log_that_says_who() {
    let house = House::new();
    let server = house.with_tokens(&[]);
    let as_ana = bearer(RUN);
    let change =
        |request: &str, body: &str| send(server.port, request, &["X-Gpumon: run", &as_ana], body);
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
    ask(server.port, "/metrics", &[&bearer(&"x".repeat(40))]);
    let log = server.end_and_read_log();
    let said: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("audit: "))
        .collect();
    for (line, words) in said.iter().zip([
        "token ana at 127.0.0.1 set a mark: epoch".to_owned(),
        format!("token ana at 127.0.0.1 started run {run}: copy"),
        format!("token ana at 127.0.0.1 canceled run {run}: copy"),
        "a wrong token from 127.0.0.1 was refused".to_owned(),
    ]) {
        assert!(line.contains(&words), "{words}: {line}");
    }
    assert_eq!(said.len(), 4, "{log}");
    assert!(
        !log.contains('\u{1b}') && !log.contains(RUN) && !log.contains(&"x".repeat(40)),
        "{log}"
    );
}

#[test]
fn over_the_local_socket_the_own_user_still_pauses_and_that_is_logged() {
    let fake = Fake::new("gpus = 1");
    let house = House::new();
    let server = Server::over(&fake, &["--token-file", &house.argument("tokens")]);
    let command = |arguments: &[&str]| {
        assert!(
            fake.gpumon(arguments).output().unwrap().status.success(),
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
