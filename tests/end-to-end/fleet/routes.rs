//! The API of a fleet and the access to it.

use std::time::Duration;

use super::{FakePrometheus, start_fleet};
use crate::support::{assert_refused, gpumon_command, send_get, send_request, write_secret};

#[test]
fn fleet_matches_prometheus_data_queried_only_once() {
    let prometheus = FakePrometheus::with_instances(&["node1:9400", "node2:9400"]);
    let server = start_fleet(&prometheus, &[]);
    let reported = server.get("/api/v1/fleet").json();
    assert_eq!(
        reported["nodes"]["name"].as_array().unwrap().len(),
        2,
        "{reported}"
    );
    assert_eq!(reported["gpus"]["index"], serde_json::json!([0, 1, 0, 1]));
    assert_eq!(
        reported["gpus"]["readings"]["utilization.gpu_percent"][0],
        87.5
    );
    let before = prometheus.query_count();
    for _ in 0..20 {
        assert_eq!(server.get("/api/v1/fleet").status, 200);
        assert_eq!(
            server.get("/api/v1/fleet/node?node=node1").json()["nodes"]["name"][0],
            "node1"
        );
    }
    assert!(
        prometheus.query_count() - before <= 20,
        "{before} and {}",
        prometheus.query_count()
    );
    let compressed = send_get(server.port, "/api/v1/fleet", &["Accept-Encoding: gzip"]);
    assert!(
        compressed.head.contains("content-encoding: gzip")
            && compressed.head.contains("vary: accept-encoding")
    );
    // JupyterLab appends the current time to a URL as a query. The server must ignore it.
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
fn fleet_server_is_readonly_and_has_no_gpus() {
    let prometheus = FakePrometheus::with_instances(&["node1:9400"]);
    let server = start_fleet(&prometheus, &[]);
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
        let answer = send_request(server.port, request, &["X-Gpumon: run"], "{}");
        assert!(
            answer.status == 409
                && answer
                    .body
                    .contains("send this request to the machine with the GPU"),
            "{request}: {}",
            answer.body
        );
    }
    let asked_after = |milliseconds| {
        std::thread::sleep(Duration::from_millis(milliseconds));
        prometheus.query_count()
    };
    let at_start = asked_after(1000);
    assert!(
        at_start > 3,
        "the first request must wait for readings: {at_start}"
    );
    // Without requests from clients, the server does not query Prometheus. If there had been a
    // request within this time, the server would have sent another query.
    assert_eq!(asked_after(1500), at_start);
}

#[test]
fn fleet_and_node_paths_require_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    write_secret(
        &tokens,
        "read ana 11111111111111111111111111111111\nmetrics p 22222222222222222222222222222222\n",
    );
    let prometheus = FakePrometheus::with_instances(&["localhost:1"]);
    let server = start_fleet(&prometheus, &["--token-file", tokens.to_str().unwrap()]);
    let paths = [
        "/api/v1/fleet",
        "/nodes/localhost/",
        "/nodes/localhost/api/v1/snapshot",
        "/nodes/localhost/%61pi/v1/snapshot",
    ];
    for path in paths {
        assert_eq!(server.get(path).status, 401, "{path}");
        let metrics = send_get(
            server.port,
            path,
            &["Authorization: Bearer 22222222222222222222222222222222"],
        );
        assert_eq!(metrics.status, 403, "{path}");
        let ana = "Authorization: Bearer 11111111111111111111111111111111";
        assert_eq!(
            send_get(server.port, path, &[ana, "Host: evil.example"]).status,
            403,
            "{path}"
        );
        assert_eq!(
            send_get(server.port, path, &[ana, "Origin: https://evil.example"]).status,
            403,
            "{path}"
        );
        assert_eq!(
            send_get(server.port, path, &[ana, "Sec-Fetch-Site: cross-site"]).status,
            403,
            "{path}"
        );
    }
    let post = |headers: &[&str]| {
        send_request(
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
fn prometheus_errors_are_reported_with_remedy() {
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
            "Valid quantities: utilization",
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
        let said = assert_refused(gpumon_command(arguments), 2, words);
        assert!(!said.contains("secret"));
    }
    let broken = FakePrometheus::with_failure(401);
    assert_refused(
        gpumon_command(&["fleet", "--prometheus", &broken.url(), "--table"]),
        1,
        "401",
    );
    let server = start_fleet(&broken, &[]);
    let reported = server.get("/api/v1/fleet").json();
    assert!(
        reported["problems"][0].as_str().unwrap().contains("401"),
        "{reported}"
    );
    assert_ne!(reported["state"], "current");
}

#[test]
fn local_server_shows_fleet_only_if_configured() {
    let prometheus = FakePrometheus::with_instances(&["node1:9400"]);
    let url = prometheus.url();
    let serve = [
        "--source",
        "sim:2",
        "serve",
        "--no-control",
        "--listen",
        "127.0.0.1:0",
    ];
    let with = crate::support::Server::start(gpumon_command(
        &[&serve[..], &["--fleet-prometheus", &url]].concat(),
    ));
    assert_eq!(
        with.get("/api/v1/fleet").json()["nodes"]["name"][0],
        "node1"
    );
    let without = crate::support::Server::start(gpumon_command(&serve));
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
fn private_processes_hide_names_from_other_users() {
    let prometheus = FakePrometheus::with_instances(&["node1:9400"]);
    // Behind a proxy, no client on the port counts as the server's own user.
    let arguments = [
        "--show-processes",
        "own",
        "--public-origin",
        "https://gpus.example.org",
    ];
    let server = start_fleet(&prometheus, &arguments);
    let reported = server.get("/api/v1/fleet").json();
    assert!(
        reported["owners"].as_array().unwrap().is_empty()
            && reported["missing"]["owners"].is_string(),
        "{reported}"
    );
    let open = start_fleet(
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
