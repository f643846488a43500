//! Users in the web configuration, in the format of Prometheus' exporters.

use super::{House, RUN, bearer, cookie_of, serve};
use crate::support::{ask, eventually, send};

/// The hash of `correct horse`.
const HASH: &str = "$2b$04$9KVBEGvapFjzzFQjgF330O/446X5e.EFNWNC3OenoHMAnjzfjtnRe";
/// The users and passwords `ana:correct horse`, `ana:wrong` and `eve:correct horse`.
const ANA: &str = "Authorization: Basic YW5hOmNvcnJlY3QgaG9yc2U=";
const WRONG: &str = "Authorization: Basic YW5hOndyb25n";
const EVE: &str = "Authorization: Basic ZXZlOmNvcnJlY3QgaG9yc2U=";

fn users(users: &str) -> String {
    format!("basic_auth_users:\n{users}")
}

#[test]
fn a_user_reads_with_the_right_password_and_runs_where_that_is_allowed() {
    let house = House::new();
    house.write_web_config(&users(&format!("  ana: {HASH}\n")));
    let server = house.with_tls(&[]);
    let client = house.client();
    let status = |headers: &[&str]| {
        client
            .ask(server.port, "GET /api/v1/snapshot", headers)
            .status
    };
    assert_eq!(
        [
            status(&[]),
            status(&[WRONG]),
            status(&[EVE]),
            status(&[ANA]),
            status(&[ANA])
        ],
        [401, 401, 401, 200, 200]
    );
    assert_eq!(status(&[&bearer(RUN)]), 401, "there are no tokens");
    let mark = |port: u16| {
        client
            .try_ask(
                port,
                "POST /api/v1/marks",
                &["X-Gpumon: run", ANA],
                r#"{"text":"a"}"#,
            )
            .unwrap()
            .status
    };
    assert_eq!(mark(server.port), 403);
    let challenge = client.ask(server.port, "GET /api/v1/snapshot", &[]).head;
    assert!(
        challenge.contains("www-authenticate: basic realm=\"gpumon\""),
        "{challenge}"
    );
    let of_page = client
        .ask(
            server.port,
            "GET /api/v1/snapshot",
            &["Sec-Fetch-Mode: cors"],
        )
        .head;
    assert!(
        !of_page.contains("basic realm"),
        "the page has a form of its own: {of_page}"
    );
    let running = house.with_tls(&["--allow-runs"]);
    assert_eq!(mark(running.port), 201);
    let log = running.end_and_read_log();
    assert!(
        log.contains("audit: user ana at 127.0.0.1 set a mark: a") && !log.contains("horse"),
        "{log}"
    );
}

#[test]
fn a_user_who_is_taken_from_the_file_is_out_with_all_sessions() {
    let house = House::new();
    house.write_web_config(&users(&format!("  ana: {HASH}\n  bob: {HASH}\n")));
    let web = house.argument("web.yml");
    let server = serve(&["--web-config", &web]);
    let client = house.client();
    let body = r#"{"user":"ana","password":"correct horse"}"#;
    let sign_in = || {
        client
            .try_ask(
                server.port,
                "POST /api/v1/session",
                &["X-Gpumon: run"],
                body,
            )
            .unwrap()
    };
    let cookie = cookie_of(&sign_in());
    let status = |header: &str| {
        client
            .ask(server.port, "GET /api/v1/snapshot", &[header])
            .status
    };
    assert_eq!((status(&cookie), status(ANA)), (200, 200));
    house.write_web_config(&users(&format!("  bob: {HASH}\n")));
    eventually("she is out", || status(&cookie) == 401);
    assert_eq!((status(ANA), sign_in().status), (401, 401));
}

#[test]
fn what_a_proxy_asks_for_itself_is_passed_on_without_harm() {
    let house = House::new();
    let server = house.with_tokens(&["--public-origin", "https://gpus.example.org"]);
    let cookie = cookie_of(&send(
        server.port,
        "POST /api/v1/session",
        &["X-Gpumon: run"],
        &format!(r#"{{"token":"{RUN}"}}"#),
    ));
    for _ in 0..15 {
        assert_eq!(
            ask(server.port, "/api/v1/snapshot?brief=true", &[ANA]).status,
            401
        );
        assert_eq!(
            ask(server.port, "/api/v1/snapshot?brief=true", &[ANA, &cookie]).status,
            200
        );
    }
    assert_eq!(
        ask(server.port, "/metrics", &[&bearer(RUN)]).status,
        200,
        "none of it counts as a guess"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_would_be_asked_now_is_not_left_in() {
    let house = House::new();
    crate::support::write_secret(&house.path("users.yml"), "{}");
    let server = serve(&["--web-config", &house.argument("users.yml")]);
    let mut stream = server.stream().await;
    stream.next_of("hello").await;
    crate::support::write_secret(
        &house.path("users.yml"),
        &users(&format!("  ana: {HASH}\n")),
    );
    while stream.next().await.is_some() {}
    assert_eq!(
        (
            server.get("/metrics").status,
            ask(server.port, "/metrics", &[ANA]).status
        ),
        (401, 200)
    );
}

#[test]
fn a_password_that_was_wrong_often_is_not_looked_at() {
    let house = House::new();
    crate::support::write_secret(
        &house.path("users.yml"),
        &users(&format!("  ana: {HASH}\n")),
    );
    let server = serve(&["--web-config", &house.argument("users.yml")]);
    let statuses: Vec<u16> = (0..14)
        .map(|_| ask(server.port, "/metrics", &[WRONG]).status)
        .collect();
    assert_eq!((statuses[0], statuses[13]), (401, 429), "{statuses:?}");
    assert_eq!(ask(server.port, "/metrics", &[ANA]).status, 429);
    let body = r#"{"user":"ana","password":"correct horse"}"#;
    assert_eq!(
        send(
            server.port,
            "POST /api/v1/session",
            &["X-Gpumon: run"],
            body
        )
        .status,
        429
    );
}
