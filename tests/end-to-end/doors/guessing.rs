//! Guessing tokens and passwords: few guesses, and answers that say nothing.

use std::sync::Mutex;

use super::{House, READ, RUN, bearer, cookie_of, serve};
use crate::support::{Answer, ask, in_parallel, send, write_secret};

fn sign_in(port: u16, token: &str) -> Answer {
    send(port, "POST /api/v1/session", &["X-Gpumon: run"], &format!(r#"{{"token":"{token}"}}"#))
}

#[test]
fn after_ten_wrong_tokens_no_more_are_looked_at_for_a_while() {
    let house = House::new();
    let server = house.with_tokens(&[]);
    let cookie = cookie_of(&sign_in(server.port, READ));
    let mut answers = Vec::new();
    for number in 0..8 {
        answers.push(ask(server.port, "/metrics", &[&bearer(&format!("{number:040}"))]));
        answers.push(sign_in(server.port, &format!("{number:040}")));
    }
    let refused = answers.iter().filter(|answer| answer.status == 401).count();
    // On a busy machine, the first attempt may be some seconds ago.
    assert!((10..13).contains(&refused), "{refused}");
    let last = answers.last().unwrap();
    let wait = last.head.lines().find_map(|line| line.strip_prefix("retry-after: ")?.parse::<u32>().ok());
    assert!(last.status == 429 && wait.is_some_and(|seconds| (1..=60).contains(&seconds)), "{}", last.head);
    let right = ask(server.port, "/metrics", &[&bearer(READ)]);
    assert_eq!(right.status, 429, "not even the right one");
    // Sessions cannot be guessed, and nobody is thrown out by a stranger at the same address.
    assert_eq!(ask(server.port, "/metrics", &[&cookie]).status, 200);
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn passwords_that_are_sent_at_once_are_guesses_as_well() {
    let house = House::new();
    // `correct horse`.
    write_secret(
        &house.path("users.yml"),
        "basic_auth_users:\n  ana: $2b$04$9KVBEGvapFjzzFQjgF330O/446X5e.EFNWNC3OenoHMAnjzfjtnRe\n",
    );
    let server = serve(&["--web-config", &house.argument("users.yml")]);
    let at_once = |passwords: Vec<String>| {
        let statuses = Mutex::new(Vec::new());
        in_parallel(passwords.len(), &passwords, |text| {
            let body = format!(r#"{{"user":"ana","password":"{text}"}}"#);
            let answer = send(server.port, "POST /api/v1/session", &["X-Gpumon: run"], &body);
            statuses.lock().unwrap().push(answer.status);
        });
        let statuses = statuses.into_inner().unwrap();
        move |status: u16| statuses.iter().filter(|found| **found == status).count()
    };
    // What is right is no guess, however often it comes.
    let right = at_once(vec!["correct horse".to_owned(); 40]);
    assert_eq!(right(200), 40);
    let wrong = at_once((0..40).map(|number| number.to_string()).collect());
    assert!((10..13).contains(&wrong(401)) && wrong(401) + wrong(429) == 40, "{} {}", wrong(401), wrong(429));
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
    // Behind a proxy, nobody counts as the server's own user, who may ask any number of times.
    let server =
        house.with_tls(&["--token-file", &house.argument("tokens"), "--public-origin", "https://gpus.example.org"]);
    let client = house.client();
    let answers = (0..40).filter_map(|_| client.try_ask(server.port, "GET /healthz", &[], "").ok());
    // A connection counts as a request.
    assert_eq!(answers.filter(|answer| answer.status == 200).count(), 15);
    let mut kept = client.connect(server.port);
    assert!(
        std::io::Write::write_all(&mut kept, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .and_then(|()| { std::io::Read::read_exact(&mut kept, &mut [0; 12]) })
            .is_err(),
        "not even a handshake"
    );
    let plain = House::new();
    let own = plain.with_tokens(&[]);
    assert!((0..600).all(|_| own.get("/healthz").status == 200));
}
