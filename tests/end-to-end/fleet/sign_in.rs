//! Signing in at a node through the fleet's server, with the viewer's own token.

use serde_json::json;

use super::drill_down::{ANA, FLEET, Site};
use crate::support::{Answer, Server, ask, send};

fn sign_in(server: &Server, site: &Site, token: &str) -> Answer {
    let path = format!("POST {}", site.node_path("api/v1/session"));
    send(
        server.port,
        &path,
        &["X-Gpumon: run"],
        &json!({ "token": token }).to_string(),
    )
}

/// Returns the cookie in the same form as a browser.
fn cookie_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let set = answer
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .expect("a cookie");
    // The head of the answer is in lower case.
    format!(
        "Cookie: {}",
        set.split(';').next().unwrap().replace("__host-", "__Host-")
    )
}

#[test]
fn a_session_at_the_node_is_the_viewers_own_and_the_fleet_keeps_nothing() {
    let site = Site::new();
    let server = site.fleet(&[]);
    let session = site.node_path("api/v1/session");
    assert_eq!(server.get(&session).status, 401);
    assert_eq!(sign_in(&server, &site, "wrong").status, 401);
    let answer = sign_in(&server, &site, ANA);
    let set = answer
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap();
    assert!(
        set.starts_with(&format!("gpumon-node-{}=", server.port)),
        "{set}"
    );
    for part in ["httponly", "samesite=strict", "max-age=2592000"] {
        assert!(set.split("; ").any(|found| found == part), "{part}: {set}");
    }
    // Without a path and a domain, a browser returns the cookie only to where it came from.
    assert!(!set.contains("path=") && !set.contains("domain="), "{set}");
    let cookie = cookie_of(&answer);
    assert_eq!(
        ask(server.port, &session, &[&cookie]).json()["name"],
        "token ana"
    );
    assert_eq!(
        ask(server.port, &site.node_path("api/v1/snapshot"), &[&cookie]).status,
        200
    );
    assert_eq!(
        server.get(&site.node_path("api/v1/snapshot")).status,
        401,
        "of nobody else"
    );
    // A restarted server accepts the same cookie.
    let other = site.fleet(&[]);
    let moved = cookie.replace(&server.port.to_string(), &other.port.to_string());
    assert_eq!(
        ask(other.port, &session, &[&moved]).json()["name"],
        "token ana"
    );
    let out = |headers: &[&str]| {
        send(
            server.port,
            &format!("DELETE {session}"),
            &[&[&*cookie], headers].concat(),
            "",
        )
    };
    assert_eq!(out(&[]).status, 403, "without the header");
    let ended = out(&["X-Gpumon: run"]);
    assert!(
        ended.status == 204 && ended.head.contains("max-age=0"),
        "{}",
        ended.head
    );
    assert_eq!(ask(server.port, &session, &[&cookie]).status, 401);
    let log = server.end_and_read_log();
    assert!(
        !log.contains(ANA) && !log.contains("gpumon-session"),
        "{log}"
    );
}

#[test]
fn without_a_session_the_fleets_token_counts_unless_each_sees_their_own() {
    let site = Site::new();
    let server = site.with_token();
    let session = site.node_path("api/v1/session");
    assert_eq!(server.get(&session).json()["name"], "token fleet");
    let cookie = cookie_of(&sign_in(&server, &site, ANA));
    assert_eq!(
        ask(server.port, &session, &[&cookie]).json()["name"],
        "token ana"
    );
    let stale = format!("Cookie: gpumon-node-{}=gpumon-session-1.00", server.port);
    assert_eq!(
        ask(server.port, &session, &[&stale]).json()["name"],
        "token fleet",
        "one that counts no more is none"
    );
    // A viewer who signs in cannot use the fleet's token for it, and the viewer's own header is not
    // forwarded.
    assert_eq!(sign_in(&server, &site, "wrong").status, 401);
    let bearer = format!("Authorization: Bearer {ANA}");
    assert_eq!(
        ask(server.port, &session, &[&bearer]).json()["name"],
        "token fleet"
    );
    let own = site.fleet(&[
        "--node-token-file",
        &site.path("node-token"),
        "--show-processes",
        "own",
        "--public-origin",
        "https://gpus.example.org",
    ]);
    assert_eq!(own.get(&session).status, 401);
    let cookie = cookie_of(&sign_in(&own, &site, FLEET));
    assert_eq!(ask(own.port, &session, &[&cookie]).status, 200);
}
