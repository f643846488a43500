//! The API of a fleet and the access to it.

use std::time::Duration;

use super::{FakePrometheus, fleet};
use crate::support::{ask, gpumon, refused, send, write_secret};

#[test]
fn a_fleet_is_told_as_prometheus_has_it_and_asked_for_once_for_all() {
    let prometheus = FakePrometheus::of(&["node1:9400", "node2:9400"]);
    let server = fleet(&prometheus, &[]);
    let told = server.get("/api/v1/fleet").json();
    assert_eq!(told["nodes"]["name"].as_array().unwrap().len(), 2, "{told}");
    assert_eq!(told["gpus"]["index"], serde_json::json!([0, 1, 0, 1]));
    assert_eq!(told["gpus"]["readings"]["utilization.gpu_percent"][0], 87.5);
    let before = prometheus.asked();
    for _ in 0..20 {
        assert_eq!(server.get("/api/v1/fleet").status, 200);
        assert_eq!(
            server.get("/api/v1/fleet/node?node=node1").json()["nodes"]["name"][0],
            "node1"
        );
    }
    assert!(
        prometheus.asked() - before <= 20,
        "{before} and {}",
        prometheus.asked()
    );
    let compressed = ask(server.port, "/api/v1/fleet", &["Accept-Encoding: gzip"]);
    assert!(
        compressed.head.contains("content-encoding: gzip")
            && compressed.head.contains("vary: accept-encoding")
    );
    // JupyterLab adds a time to the address.
    assert_eq!(
        server
            .get("/api/v1/fleet/node?node=node1&1795493859530")
            .status,
        200
    );
    for (path, status, why) in [
        ("/api/v1/fleet?at_once=true", 200, "\"state\":\"current\""),
        ("/api/v1/fleet?at_once=5", 400, "at_once=true"),
        ("/api/v1/fleet/node", 400, "node=NAME"),
        ("/api/v1/fleet/node?node=none", 404, "'none'"),
        ("/api/v1/fleet/node?node=%1b%5b2J", 404, ""),
        ("/api/v1/fleet/usage?range_s=5", 400, "900 to 2592000"),
        ("/api/v1/fleet/usage?range_s=-5", 400, "range_s"),
        ("/api/v1/fleet/events?days=5", 400, "unknown field"),
        (
            "/api/v1/fleet/history?range_s=99999999",
            400,
            "900 to 2592000",
        ),
    ] {
        let answer = server.get(path);
        assert!(
            answer.status == status && answer.body.contains(why),
            "{path}: {} {}",
            answer.status,
            answer.body
        );
        assert!(!answer.body.contains('\u{1b}'), "{path}: {:?}", answer.body);
    }
}

#[test]
fn a_server_of_a_fleet_reads_no_gpus_and_changes_nothing() {
    let prometheus = FakePrometheus::of(&["node1:9400"]);
    let server = fleet(&prometheus, &[]);
    assert_eq!(server.get("/readyz").status, 200);
    let snapshot = server.get("/api/v1/snapshot").json();
    assert_eq!(
        (&snapshot["collector"]["state"], &snapshot["inventory"]),
        (&"unavailable".into(), &().into())
    );
    for request in [
        "POST /api/v1/runs",
        "POST /api/v1/marks",
        "POST /api/v1/cells",
    ] {
        let answer = send(server.port, request, &["X-Gpumon: run"], "{}");
        assert!(
            answer.status == 409 && answer.body.contains("on the machine with the GPU"),
            "{request}: {}",
            answer.body
        );
    }
    let asked_after = |milliseconds| {
        std::thread::sleep(Duration::from_millis(milliseconds));
        prometheus.asked()
    };
    let at_start = asked_after(1000);
    assert!(
        at_start > 3,
        "whoever comes first does not wait: {at_start}"
    );
    // Another query would have been sent within this time if there had been a request.
    assert_eq!(asked_after(1500), at_start);
}

#[test]
fn every_door_holds_for_a_fleet_and_below_a_node() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    write_secret(
        &tokens,
        "read ana 11111111111111111111111111111111\nmetrics p 22222222222222222222222222222222\n",
    );
    let prometheus = FakePrometheus::of(&["localhost:1"]);
    let server = fleet(&prometheus, &["--token-file", tokens.to_str().unwrap()]);
    let paths = [
        "/api/v1/fleet",
        "/nodes/localhost/",
        "/nodes/localhost/api/v1/snapshot",
        "/nodes/localhost/%61pi/v1/snapshot",
    ];
    for path in paths {
        assert_eq!(server.get(path).status, 401, "{path}");
        let metrics = ask(
            server.port,
            path,
            &["Authorization: Bearer 22222222222222222222222222222222"],
        );
        assert_eq!(metrics.status, 403, "{path}");
        let ana = "Authorization: Bearer 11111111111111111111111111111111";
        assert_eq!(
            ask(server.port, path, &[ana, "Host: evil.example"]).status,
            403,
            "{path}"
        );
        assert_eq!(
            ask(server.port, path, &[ana, "Origin: https://evil.example"]).status,
            403,
            "{path}"
        );
        assert_eq!(
            ask(server.port, path, &[ana, "Sec-Fetch-Site: cross-site"]).status,
            403,
            "{path}"
        );
    }
    let post = |headers: &[&str]| {
        send(
            server.port,
            "POST /nodes/localhost/api/v1/session",
            headers,
            "{}",
        )
        .status
    };
    assert_eq!(post(&["X-Gpumon: run"]), 401);
}

#[test]
fn what_is_wrong_with_the_source_is_told_with_its_cure() {
    for (arguments, words) in [
        (&["fleet"][..], "--prometheus URL"),
        (
            &["fleet", "--prometheus", "http://ana:secret@prometheus:9090"],
            "credentials",
        ),
        (&["fleet", "--prometheus", "prometheus:9090"], "http://"),
        (
            &[
                "fleet",
                "--prometheus",
                "http://p",
                "--node-url",
                "https://node:9123/",
            ],
            "same address",
        ),
        (
            &[
                "fleet",
                "--prometheus",
                "http://p",
                "--node-url",
                "https://a:b@{host}/",
            ],
            "--node-token-file",
        ),
        (
            &[
                "fleet",
                "--prometheus",
                "http://p",
                "--node-token-file",
                "/nonexistent",
            ],
            "/nonexistent",
        ),
        (
            &[
                "fleet",
                "--prometheus",
                "http://p",
                "--prometheus-token-file",
                "/nonexistent",
            ],
            "/nonexistent",
        ),
        (
            &[
                "fleet",
                "--prometheus",
                "http://p",
                "--prometheus-header",
                "X",
            ],
            "NAME: VALUE",
        ),
        (&["fleet", "--prometheus", "http://p", "idle"], "--table"),
        (
            &["fleet", "--prometheus", "http://p", "--table", "speed>3"],
            "Compare utilization",
        ),
        (
            &["fleet", "--prometheus", "http://p", "--listen", "0.0.0.0:0"],
            "--web-config",
        ),
        (
            &["serve", "--fleet-prometheus", "http://ana:secret@p"],
            "credentials",
        ),
    ] {
        let said = refused(gpumon(arguments), 2, words);
        assert!(!said.contains("secret"));
    }
    let broken = FakePrometheus::failing(401);
    refused(
        gpumon(&["fleet", "--prometheus", &broken.url(), "--table"]),
        1,
        "401",
    );
    let server = fleet(&broken, &[]);
    let told = server.get("/api/v1/fleet").json();
    assert!(
        told["problems"][0].as_str().unwrap().contains("401"),
        "{told}"
    );
    assert_ne!(told["state"], "current");
}

#[test]
fn a_server_with_gpus_of_its_own_shows_a_fleet_too_and_one_without_says_so() {
    let prometheus = FakePrometheus::of(&["node1:9400"]);
    let url = prometheus.url();
    let serve = [
        "--source",
        "sim:2",
        "serve",
        "--no-control",
        "--listen",
        "127.0.0.1:0",
    ];
    let with = crate::support::Server::start(gpumon(
        &[&serve[..], &["--fleet-prometheus", &url]].concat(),
    ));
    assert_eq!(
        with.get("/api/v1/fleet").json()["nodes"]["name"][0],
        "node1"
    );
    let without = crate::support::Server::start(gpumon(&serve));
    for path in [
        "/api/v1/fleet",
        "/api/v1/fleet/usage",
        "/api/v1/fleet/node?node=a",
    ] {
        let answer = without.get(path);
        assert!(
            answer.status == 404 && answer.body.contains("--fleet-prometheus"),
            "{}",
            answer.body
        );
    }
    assert_eq!(without.get("/nodes/node1/").status, 404);
}

#[test]
fn where_each_sees_their_own_a_stranger_learns_no_names() {
    let prometheus = FakePrometheus::of(&["node1:9400"]);
    // Behind a proxy, no client on the port counts as this user.
    let arguments = [
        "--show-processes",
        "own",
        "--public-origin",
        "https://gpus.example.org",
    ];
    let server = fleet(&prometheus, &arguments);
    let told = server.get("/api/v1/fleet").json();
    assert!(
        told["owners"].as_array().unwrap().is_empty() && told["missing"]["owners"].is_string(),
        "{told}"
    );
    let open = fleet(
        &prometheus,
        &["--public-origin", "https://gpus.example.org"],
    );
    assert_eq!(
        open.get("/api/v1/fleet").json()["owners"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
