//! `--metrics-listen`: a port that only serves Prometheus.

use super::{House, METRICS, RUN, bearer, serve};
use crate::support::{Server, ask, eventually, send};

/// Returns the port in the server's second message.
fn metrics_port(server: &mut Server) -> u16 {
    let message = server.next_message();
    let address = message
        .trim_end()
        .strip_suffix("/metrics")
        .and_then(|address| address.rsplit(':').next());
    address
        .and_then(|port| port.parse().ok())
        .unwrap_or_else(|| panic!("no port in {message:?}"))
}

#[test]
fn it_serves_metrics_and_nothing_else() {
    let mut server = serve(&["--metrics-listen", "127.0.0.1:0"]);
    let port = metrics_port(&mut server);
    eventually("it is ready", || ask(port, "/readyz", &[]).status == 200);
    for path in ["/metrics", "/metrics/dcgm", "/healthz"] {
        assert_eq!(ask(port, path, &[]).status, 200, "{path}");
    }
    let metrics = ask(port, "/metrics", &[]).body;
    assert!(
        metrics.contains("gpumon_gpu_up") && !metrics.contains("gpumon_process_"),
        "{metrics}"
    );
    for path in [
        "/",
        "/index.html",
        "/api/v1/snapshot",
        "/api/v1/stream",
        "/api/v1/runs",
        "/api/v1/session",
    ] {
        assert_eq!(ask(port, path, &[]).status, 404, "{path}");
    }
    for request in super::CHANGES
        .into_iter()
        .chain(super::LOCAL_CHANGES)
        .chain(["POST /api/v1/session"])
    {
        assert_eq!(
            send(port, request, &["X-Gpumon: run"], "{}").status,
            404,
            "{request}"
        );
    }
    assert_eq!(send(port, "POST /metrics", &[], "").status, 405);
    assert_eq!(ask(port, "/metrics", &["Host: evil.example"]).status, 403);
    assert_eq!(
        ask(port, "/metrics", &["Origin: https://evil.example"]).status,
        403
    );
    let mut with_processes = serve(&["--metrics-listen", "127.0.0.1:0", "--metrics-processes"]);
    let port = metrics_port(&mut with_processes);
    eventually("processes are there", || {
        ask(port, "/metrics", &[])
            .body
            .contains("gpumon_process_memory_bytes{")
    });
}

#[test]
fn a_token_for_metrics_is_enough_and_needed() {
    let house = House::new();
    let mut server = house.with_tls(&[
        "--token-file",
        &house.argument("tokens"),
        "--metrics-listen",
        "127.0.0.1:0",
    ]);
    let port = metrics_port(&mut server);
    let client = house.client();
    let status = |header: &[&str]| client.ask(port, "GET /metrics", header).status;
    assert_eq!(
        [
            status(&[]),
            status(&[&bearer(METRICS)]),
            status(&[&bearer(RUN)])
        ],
        [401, 200, 200]
    );
}
