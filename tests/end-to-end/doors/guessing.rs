//! Guessing of tokens and passwords: attempts are limited, and answers reveal nothing.

use std::sync::Mutex;

use super::{House, READ, RUN, bearer, serve};
use crate::support::{Answer, ask, in_parallel, send, write_secret};

/// The password is `correct horse`.
const USERS: &str =
    "basic_auth_users:\n  ana: $2b$04$9KVBEGvapFjzzFQjgF330O/446X5e.EFNWNC3OenoHMAnjzfjtnRe\n";

fn sign_in(port: u16, token: &str) -> Answer {
    send(
        port,
        "POST /api/v1/session",
        &["X-Gpumon: run"],
        &format!(r#"{{"token":"{token}"}}"#),
    )
}

#[test]
fn wrong_tokens_lock_nobody_out() {
    let house = House::new();
    // Without a proxy, requests of the server's own user are not limited.
    for proxy in [&[][..], &["--public-origin", "https://gpus.example.org"]] {
        let server = house.with_tokens(proxy);
        let forwarded = "X-Forwarded-For: 198.51.100.1, 10.0.0.7";
        let mut wrong = Vec::new();
        for number in 0..700 {
            wrong.push(
                ask(
                    server.port,
                    "/metrics",
                    &[&bearer(&format!("{number:040}")), forwarded],
                )
                .status,
            );
        }
        wrong.push(sign_in(server.port, &"0".repeat(40)).status);
        assert!(wrong.contains(&401) && wrong.iter().all(|status| matches!(status, 401 | 429)));
        for _ in 0..30 {
            assert_eq!(
                ask(server.port, "/metrics", &[&bearer(READ), forwarded]).status,
                200,
                "{proxy:?}"
            );
        }
        // Clients at other addresses have their own limits.
        let other = ask(
            server.port,
            "/metrics",
            &[&bearer("x"), "X-Forwarded-For: 10.0.0.8"],
        );
        assert_eq!(other.status, 401, "{proxy:?}");
        let metrics = ask(server.port, "/metrics", &[&bearer(READ)]).body;
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
fn wrong_passwords_of_one_address_stop_no_other() {
    let house = House::new();
    write_secret(&house.path("users.yml"), USERS);
    let server = serve(&[
        "--web-config",
        &house.argument("users.yml"),
        "--public-origin",
        "https://gpus.example.org",
    ]);
    let sign_in = |address: &str, user: &str, password: &str| {
        let forwarded = format!("X-Forwarded-For: {address}");
        let body = format!(r#"{{"user":"{user}","password":"{password}"}}"#);
        send(
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
        "not even the right one"
    );
    assert_eq!(
        sign_in("10.0.0.7", "bob", "wrong"),
        401,
        "another user's are checked"
    );
    assert_eq!(
        sign_in("10.0.0.8", "ana", "correct horse"),
        200,
        "and those from another address"
    );
    assert_eq!(
        sign_in("10.0.0.7", "ana", "correct horse"),
        200,
        "what was right before is no guess"
    );
    // Made-up names share the limit of their address, and made-up addresses that of the proxy.
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
fn passwords_that_are_sent_at_once_are_guesses_as_well() {
    let house = House::new();
    write_secret(&house.path("users.yml"), USERS);
    let server = serve(&["--web-config", &house.argument("users.yml")]);
    let at_once = |passwords: Vec<String>| {
        let statuses = Mutex::new(Vec::new());
        in_parallel(passwords.len(), &passwords, |text| {
            let body = format!(r#"{{"user":"ana","password":"{text}"}}"#);
            let answer = send(
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
    // Correct passwords are not limited, even in large numbers.
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
fn what_is_almost_right_is_as_wrong_as_anything_else() {
    let house = House::new();
    let server = house.with_tokens(&[]);
    let first = ask(server.port, "/metrics", &[&bearer(&"x".repeat(40))]);
    let longer = format!("{RUN}x");
    for shown in [
        bearer(&RUN[..RUN.len() - 1]),
        bearer(&longer),
        bearer(&RUN.to_uppercase()),
        bearer(""),
        format!("Authorization: {RUN}"),
        format!("Authorization: Token {RUN}"),
        format!("Authorization: Basic {RUN}"),
    ] {
        let answer = ask(server.port, "/metrics", &[&shown]);
        assert_eq!((answer.status, &answer.body), (401, &first.body), "{shown}");
    }
    let twice = ask(server.port, "/metrics", &[&bearer(RUN), &bearer(RUN)]);
    assert_eq!(twice.status, 401, "one of them, and nobody says which");
}

#[test]
fn too_many_requests_are_put_off() {
    let house = House::new();
    house.write_web_config("rate_limit:\n  interval: 1h\n  burst: 30\n");
    // Behind a proxy, no request counts as the server's own user, whose requests are not limited.
    let server = house.with_tls(&[
        "--token-file",
        &house.argument("tokens"),
        "--public-origin",
        "https://gpus.example.org",
    ]);
    let client = house.client();
    let answers = (0..40).filter_map(|_| client.try_ask(server.port, "GET /healthz", &[], "").ok());
    assert_eq!(answers.filter(|answer| answer.status == 200).count(), 30);
    let token = client.ask(server.port, "GET /metrics", &[&bearer(READ)]);
    assert_eq!(token.status, 200, "a valid token has a share of its own");
    let plain = House::new();
    let own = plain.with_tokens(&[]);
    assert!((0..600).all(|_| own.get("/healthz").status == 200));
}
