//! `--metrics-listen`: a port that only serves Prometheus.

use super::{METRICS_TOKEN, RUN_TOKEN, ServerFiles, bearer_header, start_server};
use crate::support::{Server, send_get, send_request, wait_for_condition};

/// Returns the port in the server's second message.
fn metrics_port(server: &mut Server) -> u16 {
    let message = server.next_message();
    let address = message
        .trim_end()
        .strip_suffix("/metrics")
        .and_then(|address| address.rsplit(':').next());
    address
        .and_then(|port| port.parse().ok())
        .unwrap_or_else(|| panic!("{message:?} contains no port"))
}

#[test]
fn metrics_port_serves_only_metrics() {
    let mut server = start_server(&["--metrics-listen", "127.0.0.1:0"]);
    let port = metrics_port(&mut server);
    wait_for_condition("the server is ready", || {
        send_get(port, "/readyz", &[]).status == 200
    });
    for path in ["/metrics", "/metrics/dcgm", "/healthz"] {
        assert_eq!(send_get(port, path, &[]).status, 200, "{path}");
    }
    let metrics = send_get(port, "/metrics", &[]).body;
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
        assert_eq!(send_get(port, path, &[]).status, 404, "{path}");
    }
    for request in super::CHANGING_REQUESTS
        .into_iter()
        .chain(super::LOCAL_CHANGING_REQUESTS)
        .chain(["POST /api/v1/session"])
    {
        assert_eq!(
            send_request(port, request, &["X-Gpumon: run"], "{}").status,
            404,
            "{request}"
        );
    }
    assert_eq!(send_request(port, "POST /metrics", &[], "").status, 405);
    assert_eq!(
        send_get(port, "/metrics", &["Host: evil.example"]).status,
        403
    );
    assert_eq!(
        send_get(port, "/metrics", &["Origin: https://evil.example"]).status,
        403
    );
    let mut with_processes =
        start_server(&["--metrics-listen", "127.0.0.1:0", "--metrics-processes"]);
    let port = metrics_port(&mut with_processes);
    wait_for_condition("the metrics contain processes", || {
        send_get(port, "/metrics", &[])
            .body
            .contains("gpumon_process_memory_bytes{")
    });
}

#[test]
fn metrics_port_requires_token_with_metrics_scope() {
    let house = ServerFiles::new();
    let mut server = house.start_with_tls(&[
        "--token-file",
        &house.path_text("tokens"),
        "--metrics-listen",
        "127.0.0.1:0",
    ]);
    let port = metrics_port(&mut server);
    let client = house.tls_client();
    let status = |header: &[&str]| client.send_request(port, "GET /metrics", header).status;
    assert_eq!(
        [
            status(&[]),
            status(&[&bearer_header(METRICS_TOKEN)]),
            status(&[&bearer_header(RUN_TOKEN)])
        ],
        [401, 200, 200]
    );
}
