//! Users in the web configuration, in the format of Prometheus' exporters.

use super::{RUN_TOKEN, ServerFiles, bearer_header, session_cookie, start_server};
use crate::support::{send_get, send_request, wait_for_condition};

/// The hash of `correct horse`.
const PASSWORD_HASH: &str = "$2b$04$9KVBEGvapFjzzFQjgF330O/446X5e.EFNWNC3OenoHMAnjzfjtnRe";
/// The headers for the users and passwords `ana:correct horse`, `ana:wrong` and `eve:correct
/// horse`, in this order.
const ANA_HEADER: &str = "Authorization: Basic YW5hOmNvcnJlY3QgaG9yc2U=";
const WRONG_HEADER: &str = "Authorization: Basic YW5hOndyb25n";
const EVE_HEADER: &str = "Authorization: Basic ZXZlOmNvcnJlY3QgaG9yc2U=";

fn make_web_config(users: &str) -> String {
    format!("basic_auth_users:\n{users}")
}

#[test]
fn password_grants_read_access_and_optionally_run_access() {
    let house = ServerFiles::new();
    house.write_web_config(&make_web_config(&format!("  ana: {PASSWORD_HASH}\n")));
    let server = house.start_with_tls(&[]);
    let client = house.tls_client();
    let status = |headers: &[&str]| {
        client
            .send_request(server.port, "GET /api/v1/snapshot", headers)
            .status
    };
    assert_eq!(
        [
            status(&[]),
            status(&[WRONG_HEADER]),
            status(&[EVE_HEADER]),
            status(&[ANA_HEADER]),
            status(&[ANA_HEADER])
        ],
        [401, 401, 401, 200, 200]
    );
    assert_eq!(
        status(&[&bearer_header(RUN_TOKEN)]),
        401,
        "a server without tokens refuses a token"
    );
    let mark = |port: u16| {
        client
            .try_request(
                port,
                "POST /api/v1/marks",
                &["X-Gpumon: run", ANA_HEADER],
                r#"{"text":"a"}"#,
            )
            .unwrap()
            .status
    };
    assert_eq!(mark(server.port), 403);
    let challenge = client
        .send_request(server.port, "GET /api/v1/snapshot", &[])
        .head;
    assert!(
        challenge.contains("www-authenticate: basic realm=\"gpumon\""),
        "{challenge}"
    );
    let of_page = client
        .send_request(
            server.port,
            "GET /api/v1/snapshot",
            &["Sec-Fetch-Mode: cors"],
        )
        .head;
    assert!(
        !of_page.contains("basic realm"),
        "the page has its own sign-in form: {of_page}"
    );
    let running = house.start_with_tls(&["--allow-runs"]);
    assert_eq!(mark(running.port), 201);
    let log = running.end_and_read_log();
    assert!(
        log.contains("audit: user ana at 127.0.0.1 set a mark: a") && !log.contains("horse"),
        "{log}"
    );
}

#[test]
fn removed_user_loses_all_sessions() {
    let house = ServerFiles::new();
    house.write_web_config(&make_web_config(&format!(
        "  ana: {PASSWORD_HASH}\n  bob: {PASSWORD_HASH}\n"
    )));
    let web = house.path_text("web.yml");
    let server = start_server(&["--web-config", &web]);
    let client = house.tls_client();
    let body = r#"{"user":"ana","password":"correct horse"}"#;
    let sign_in = || {
        client
            .try_request(
                server.port,
                "POST /api/v1/session",
                &["X-Gpumon: run"],
                body,
            )
            .unwrap()
    };
    let cookie = session_cookie(&sign_in());
    let status = |header: &str| {
        client
            .send_request(server.port, "GET /api/v1/snapshot", &[header])
            .status
    };
    assert_eq!((status(&cookie), status(ANA_HEADER)), (200, 200));
    house.write_web_config(&make_web_config(&format!("  bob: {PASSWORD_HASH}\n")));
    wait_for_condition("the session of the removed user is refused", || {
        status(&cookie) == 401
    });
    assert_eq!((status(ANA_HEADER), sign_in().status), (401, 401));
}

#[test]
fn basic_credentials_meant_for_proxy_are_ignored() {
    let house = ServerFiles::new();
    let server = house.start_with_tokens(&["--public-origin", "https://gpus.example.org"]);
    let cookie = session_cookie(&send_request(
        server.port,
        "POST /api/v1/session",
        &["X-Gpumon: run"],
        &format!(r#"{{"token":"{RUN_TOKEN}"}}"#),
    ));
    for _ in 0..15 {
        assert_eq!(
            send_get(server.port, "/api/v1/snapshot?brief=true", &[ANA_HEADER]).status,
            401
        );
        assert_eq!(
            send_get(
                server.port,
                "/api/v1/snapshot?brief=true",
                &[ANA_HEADER, &cookie]
            )
            .status,
            200
        );
    }
    assert_eq!(
        send_get(server.port, "/metrics", &[&bearer_header(RUN_TOKEN)]).status,
        200,
        "refused passwords must not count as guesses"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn adding_users_ends_unauthenticated_streams() {
    let house = ServerFiles::new();
    crate::support::write_secret(&house.path("users.yml"), "{}");
    let server = start_server(&["--web-config", &house.path_text("users.yml")]);
    let mut stream = server.open_stream().await;
    stream.next_frame_of_type("hello").await;
    crate::support::write_secret(
        &house.path("users.yml"),
        &make_web_config(&format!("  ana: {PASSWORD_HASH}\n")),
    );
    while stream.next_frame().await.is_some() {}
    assert_eq!(
        (
            server.get("/metrics").status,
            send_get(server.port, "/metrics", &[ANA_HEADER]).status
        ),
        (401, 200)
    );
}

#[test]
fn repeated_same_wrong_password_is_not_checked_again() {
    let house = ServerFiles::new();
    crate::support::write_secret(
        &house.path("users.yml"),
        &make_web_config(&format!("  ana: {PASSWORD_HASH}\n")),
    );
    let server = start_server(&["--web-config", &house.path_text("users.yml")]);
    let statuses: Vec<u16> = (0..14)
        .map(|_| send_get(server.port, "/metrics", &[WRONG_HEADER]).status)
        .collect();
    assert_eq!((statuses[0], statuses[13]), (401, 429), "{statuses:?}");
    assert_eq!(send_get(server.port, "/metrics", &[ANA_HEADER]).status, 429);
    let body = r#"{"user":"ana","password":"correct horse"}"#;
    assert_eq!(
        send_request(
            server.port,
            "POST /api/v1/session",
            &["X-Gpumon: run"],
            body
        )
        .status,
        429
    );
}
