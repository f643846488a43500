//! The fleet's server with a fake Prometheus, and the views of its nodes.

mod bad_nodes;
mod drill_down;
mod fake_prometheus;
mod routes;
mod sign_in;
mod table;
mod top;

use self::fake_prometheus::FakePrometheus;
use crate::support::{Server, gpumon_command};

/// Starts `gpumon fleet` on a free port of the loopback interface, and ignores the settings of this
/// machine.
fn start_fleet(prometheus: &FakePrometheus, arguments: &[&str]) -> Server {
    let url = prometheus.url();
    Server::start(gpumon_command(
        &[
            &["fleet", "--listen", "127.0.0.1:0", "--prometheus", &url],
            arguments,
        ]
        .concat(),
    ))
}

/// The URL template for a node on this machine without TLS.
const PLAIN_NODE_URL: &str = "http://{host}:{port}/";

/// The URL template for a node on this machine with TLS.
const ENCRYPTED_NODE_URL: &str = "https://{host}:{port}/";

/// The unused address of a second node. Both nodes are on the same host, so their names also
/// contain their ports.
const OTHER_NODE: &str = "localhost:1";
