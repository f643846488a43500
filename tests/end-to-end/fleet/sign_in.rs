//! Signing in at a node through the fleet's server, with the viewer's own token.

use serde_json::json;

use super::drill_down::{ANA_TOKEN, FLEET_TOKEN, SecuredNode};
use crate::support::{HttpResponse, Server, send_get, send_request};

fn sign_in(server: &Server, site: &SecuredNode, token: &str) -> HttpResponse {
    let path = format!("POST {}", site.node_path("api/v1/session"));
    send_request(
        server.port,
        &path,
        &["X-Gpumon: run"],
        &json!({ "token": token }).to_string(),
    )
}

/// Returns the cookie in the form in which a browser would send it.
fn node_session_cookie(answer: &HttpResponse) -> String {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let set = answer
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .expect("the response must set a cookie");
    // The head of the answer was converted to lower case, so the prefix of the cookie's name is
    // restored.
    format!(
        "Cookie: {}",
        set.split(';').next().unwrap().replace("__host-", "__Host-")
    )
}

#[test]
fn fleet_does_not_store_session_at_node() {
    let site = SecuredNode::new();
    let server = site.start_fleet(&[]);
    let session = site.node_path("api/v1/session");
    assert_eq!(server.get(&session).status, 401);
    assert_eq!(sign_in(&server, &site, "wrong").status, 401);
    let answer = sign_in(&server, &site, ANA_TOKEN);
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
    // A cookie has no path and no domain. A browser then returns it only to the host and path that
    // have set it.
    assert!(!set.contains("path=") && !set.contains("domain="), "{set}");
    let cookie = node_session_cookie(&answer);
    assert_eq!(
        send_get(server.port, &session, &[&cookie]).json()["name"],
        "token ana"
    );
    assert_eq!(
        send_get(server.port, &site.node_path("api/v1/snapshot"), &[&cookie]).status,
        200
    );
    assert_eq!(
        server.get(&site.node_path("api/v1/snapshot")).status,
        401,
        "other users are not signed in"
    );
    // This second server takes the place of a restarted one, and accepts the same cookie.
    let other = site.start_fleet(&[]);
    let moved = cookie.replace(&server.port.to_string(), &other.port.to_string());
    assert_eq!(
        send_get(other.port, &session, &[&moved]).json()["name"],
        "token ana"
    );
    let out = |headers: &[&str]| {
        send_request(
            server.port,
            &format!("DELETE {session}"),
            &[&[&*cookie], headers].concat(),
            "",
        )
    };
    assert_eq!(
        out(&[]).status,
        403,
        "sign-out without the header is refused"
    );
    let ended = out(&["X-Gpumon: run"]);
    assert!(
        ended.status == 204 && ended.head.contains("max-age=0"),
        "{}",
        ended.head
    );
    assert_eq!(send_get(server.port, &session, &[&cookie]).status, 401);
    let log = server.end_and_read_log();
    assert!(
        !log.contains(ANA_TOKEN) && !log.contains("gpumon-session"),
        "{log}"
    );
}

#[test]
fn visitor_uses_fleet_token_unless_processes_are_private() {
    let site = SecuredNode::new();
    let server = site.start_fleet_with_token();
    let session = site.node_path("api/v1/session");
    assert_eq!(server.get(&session).json()["name"], "token fleet");
    let cookie = node_session_cookie(&sign_in(&server, &site, ANA_TOKEN));
    assert_eq!(
        send_get(server.port, &session, &[&cookie]).json()["name"],
        "token ana"
    );
    let stale = format!("Cookie: gpumon-node-{}=gpumon-session-1.00", server.port);
    assert_eq!(
        send_get(server.port, &session, &[&stale]).json()["name"],
        "token fleet",
        "an invalid session falls back to the fleet's token"
    );
    // A wrong token is refused: the server does not use the fleet's token instead. The viewer's own
    // `Authorization` header is not forwarded either.
    assert_eq!(sign_in(&server, &site, "wrong").status, 401);
    let bearer = format!("Authorization: Bearer {ANA_TOKEN}");
    assert_eq!(
        send_get(server.port, &session, &[&bearer]).json()["name"],
        "token fleet"
    );
    let own = site.start_fleet(&[
        "--node-token-file",
        &site.path("node-token"),
        "--show-processes",
        "own",
        "--public-origin",
        "https://gpus.example.org",
    ]);
    assert_eq!(own.get(&session).status, 401);
    let cookie = node_session_cookie(&sign_in(&own, &site, FLEET_TOKEN));
    assert_eq!(send_get(own.port, &session, &[&cookie]).status, 200);
}
