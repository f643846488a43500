//! A fleet that Prometheus tells of, and all there is of its nodes.

mod bad_nodes;
mod drill_down;
mod fake_prometheus;
mod routes;
mod sign_in;
mod table;
mod top;

use self::fake_prometheus::FakePrometheus;
use crate::support::{Server, gpumon};

/// `gpumon fleet` on a free port of loopback, and nothing of this machine's settings.
fn fleet(prometheus: &FakePrometheus, arguments: &[&str]) -> Server {
    let url = prometheus.url();
    Server::start(gpumon(
        &[
            &["fleet", "--listen", "127.0.0.1:0", "--prometheus", &url],
            arguments,
        ]
        .concat(),
    ))
}

/// A node on this machine, without encryption.
const PLAIN: &str = "http://{host}:{port}/";

/// A node on this machine that encrypts.
const ENCRYPTED: &str = "https://{host}:{port}/";

/// Where nobody listens, so that nodes of this machine have their ports in their names.
const OTHER: &str = "localhost:1";
