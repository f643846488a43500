//! Guessing of tokens and passwords: attempts are limited, and answers reveal nothing.

use std::sync::Mutex;

use super::{READ_TOKEN, RUN_TOKEN, ServerFiles, bearer_header, start_server};
use crate::support::{HttpResponse, run_in_parallel, send_get, send_request, write_secret};

/// The password is `correct horse`.
const WEB_USERS: &str =
    "basic_auth_users:\n  ana: $2b$04$9KVBEGvapFjzzFQjgF330O/446X5e.EFNWNC3OenoHMAnjzfjtnRe\n";

fn sign_in(port: u16, token: &str) -> HttpResponse {
    send_request(
        port,
        "POST /api/v1/session",
        &["X-Gpumon: run"],
        &format!(r#"{{"token":"{token}"}}"#),
    )
}

#[test]
fn wrong_tokens_do_not_block_valid_ones() {
    let house = ServerFiles::new();
    // Without a proxy, requests of the server's own user are not limited.
    for proxy in [&[][..], &["--public-origin", "https://gpus.example.org"]] {
        let server = house.start_with_tokens(proxy);
        let forwarded = "X-Forwarded-For: 198.51.100.1, 10.0.0.7";
        let mut wrong = Vec::new();
        for number in 0..700 {
            wrong.push(
                send_get(
                    server.port,
                    "/metrics",
                    &[&bearer_header(&format!("{number:040}")), forwarded],
                )
                .status,
            );
        }
        wrong.push(sign_in(server.port, &"0".repeat(40)).status);
        assert!(wrong.contains(&401) && wrong.iter().all(|status| matches!(status, 401 | 429)));
        for _ in 0..30 {
            assert_eq!(
                send_get(
                    server.port,
                    "/metrics",
                    &[&bearer_header(READ_TOKEN), forwarded]
                )
                .status,
                200,
                "{proxy:?}"
            );
        }
        // The attempts above count only for the address from which they came. A client at another
        // address has its own limit.
        let other = send_get(
            server.port,
            "/metrics",
            &[&bearer_header("x"), "X-Forwarded-For: 10.0.0.8"],
        );
        assert_eq!(other.status, 401, "{proxy:?}");
        let metrics = send_get(server.port, "/metrics", &[&bearer_header(READ_TOKEN)]).body;
        let count = metrics.lines().find_map(|line| {
            line.strip_prefix(r#"gpumon_refused_credentials_total{kind="token"} "#)
        });
        let count: usize = count.unwrap().parse().unwrap();
        assert!((500..=702).contains(&count), "{count}");
        let log = server.end_and_read_log();
        assert!(log.contains("audit: a wrong token from"), "{log}");
    }
}

#[test]
fn wrong_passwords_only_block_their_address() {
    let house = ServerFiles::new();
    write_secret(&house.path("users.yml"), WEB_USERS);
    let server = start_server(&[
        "--web-config",
        &house.path_text("users.yml"),
        "--public-origin",
        "https://gpus.example.org",
    ]);
    let sign_in = |address: &str, user: &str, password: &str| {
        let forwarded = format!("X-Forwarded-For: {address}");
        let body = format!(r#"{{"user":"{user}","password":"{password}"}}"#);
        send_request(
            server.port,
            "POST /api/v1/session",
            &["X-Gpumon: run", &forwarded],
            &body,
        )
        .status
    };
    let wrong: Vec<u16> = (0..14)
        .map(|number| sign_in("10.0.0.7", "ana", &number.to_string()))
        .collect();
    assert!(
        wrong.contains(&401) && wrong.last() == Some(&429),
        "{wrong:?}"
    );
    assert_eq!(
        sign_in("10.0.0.7", "ana", "correct horse"),
        429,
        "even the right password is refused"
    );
    assert_eq!(
        sign_in("10.0.0.7", "bob", "wrong"),
        401,
        "passwords of other users are still checked"
    );
    assert_eq!(
        sign_in("10.0.0.8", "ana", "correct horse"),
        200,
        "requests from other addresses are still checked"
    );
    assert_eq!(
        sign_in("10.0.0.7", "ana", "correct horse"),
        200,
        "a password that was right before is not blocked"
    );
    // Attempts with made-up user names share the limit of their address. Behind a proxy, made-up
    // addresses share the limit of the proxy.
    let names: Vec<u16> = (0..90)
        .map(|number| sign_in("10.0.0.9", &format!("user{number}"), "wrong"))
        .collect();
    assert!(
        names[..50].iter().all(|status| *status == 401) && names.contains(&429),
        "{names:?}"
    );
    let addresses: Vec<u16> = (0..400)
        .map(|n| sign_in(&format!("10.1.{}.{}", n / 200, n % 200), "bob", "wrong"))
        .collect();
    assert!(addresses.contains(&429), "{addresses:?}");
}

#[test]
fn parallel_password_guesses_are_limited() {
    let house = ServerFiles::new();
    write_secret(&house.path("users.yml"), WEB_USERS);
    let server = start_server(&["--web-config", &house.path_text("users.yml")]);
    let at_once = |passwords: Vec<String>| {
        let statuses = Mutex::new(Vec::new());
        run_in_parallel(passwords.len(), &passwords, |text| {
            let body = format!(r#"{{"user":"ana","password":"{text}"}}"#);
            let answer = send_request(
                server.port,
                "POST /api/v1/session",
                &["X-Gpumon: run"],
                &body,
            );
            statuses.lock().unwrap().push(answer.status);
        });
        let statuses = statuses.into_inner().unwrap();
        move |status: u16| statuses.iter().filter(|found| **found == status).count()
    };
    // Sign-ins with the correct password are not limited, even if there are many at the same time.
    let right = at_once(vec!["correct horse".to_owned(); 40]);
    assert_eq!(right(200), 40);
    let wrong = at_once((0..40).map(|number| number.to_string()).collect());
    assert!(
        (10..13).contains(&wrong(401)) && wrong(401) + wrong(429) == 40,
        "{} {}",
        wrong(401),
        wrong(429)
    );
}

#[test]
fn almost_correct_token_is_refused() {
    let house = ServerFiles::new();
    let server = house.start_with_tokens(&[]);
    let first = send_get(server.port, "/metrics", &[&bearer_header(&"x".repeat(40))]);
    let longer = format!("{RUN_TOKEN}x");
    for shown in [
        bearer_header(&RUN_TOKEN[..RUN_TOKEN.len() - 1]),
        bearer_header(&longer),
        bearer_header(&RUN_TOKEN.to_uppercase()),
        bearer_header(""),
        format!("Authorization: {RUN_TOKEN}"),
        format!("Authorization: Token {RUN_TOKEN}"),
        format!("Authorization: Basic {RUN_TOKEN}"),
    ] {
        let answer = send_get(server.port, "/metrics", &[&shown]);
        assert_eq!((answer.status, &answer.body), (401, &first.body), "{shown}");
    }
    let twice = send_get(
        server.port,
        "/metrics",
        &[&bearer_header(RUN_TOKEN), &bearer_header(RUN_TOKEN)],
    );
    assert_eq!(twice.status, 401, "two tokens in one request are refused");
}

#[test]
fn excessive_requests_are_delayed() {
    let house = ServerFiles::new();
    house.write_web_config("rate_limit:\n  interval: 1h\n  burst: 30\n");
    // The server's own user has no limits. Behind a proxy, no request counts as one of this user.
    let server = house.start_with_tls(&[
        "--token-file",
        &house.path_text("tokens"),
        "--public-origin",
        "https://gpus.example.org",
    ]);
    let client = house.tls_client();
    let answers = (0..40).filter_map(|_| {
        client
            .try_request(server.port, "GET /healthz", &[], "")
            .ok()
    });
    assert_eq!(answers.filter(|answer| answer.status == 200).count(), 30);
    let token = client.send_request(server.port, "GET /metrics", &[&bearer_header(READ_TOKEN)]);
    assert_eq!(token.status, 200, "valid tokens have their own limit");
    let plain = ServerFiles::new();
    let own = plain.start_with_tokens(&[]);
    assert!((0..600).all(|_| own.get("/healthz").status == 200));
}
