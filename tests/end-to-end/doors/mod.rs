//! Access control: TLS, tokens, passwords and certificates, and the requests that are refused.

mod beyond_loopback;
mod children;
mod files;
mod foreign_pages;
mod guessing;
mod metrics_port;
mod oversized;
mod passwords;
mod processes;
mod scopes;
mod sessions;
mod tls;

use std::{path::PathBuf, process::Command};

use tempfile::TempDir;

use crate::support::{Answer, Authority, Server, TlsClient, gpumon, write, write_secret};

const RUN: &str = "11111111111111111111111111111111-run";
const READ: &str = "22222222222222222222222222222222-read";
const METRICS: &str = "33333333333333333333333333333333-metrics";

/// Requests that change something and need the scope `run`.
const CHANGES: [&str; 4] = [
    "POST /api/v1/runs",
    "DELETE /api/v1/runs/1-1",
    "POST /api/v1/marks",
    "POST /api/v1/replay",
];
/// Requests that change something and are only accepted over the unix socket.
const LOCAL_CHANGES: [&str; 4] = [
    "POST /api/v1/pause",
    "POST /api/v1/resume",
    "POST /api/v1/alerts/silence",
    "POST /api/v1/runs/announced",
];

/// A folder with the files of a server over simulated GPUs.
struct House {
    folder: TempDir,
    authority: Authority,
}

impl House {
    /// Creates a certificate for localhost and three tokens.
    fn new() -> Self {
        let house = Self {
            folder: tempfile::tempdir().unwrap(),
            authority: Authority::new(),
        };
        house
            .authority
            .issue(&["localhost", "127.0.0.1", "gpus.example.org"])
            .write(house.folder.path());
        house.write_tokens(&[
            ("run", "ana", RUN),
            ("read", "grafana", READ),
            ("metrics", "prometheus", METRICS),
        ]);
        house.write_web_config("");
        house
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn argument(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn write_tokens(&self, tokens: &[(&str, &str, &str)]) {
        let lines = tokens
            .iter()
            .map(|(scope, name, token)| format!("{scope} {name} {token}\n"));
        write_secret(&self.path("tokens"), &lines.collect::<String>());
    }

    /// Writes a configuration with TLS. The given lines continue `tls_server_config`, and may be
    /// followed by others.
    fn write_web_config(&self, more: &str) {
        let text =
            format!("tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n{more}");
        write_secret(&self.path("web.yml"), &text);
        write(&self.path("ca.crt"), &self.authority.pem(), 0o644);
    }

    fn with_tls(&self, arguments: &[&str]) -> Server {
        serve(&[&["--web-config", &self.argument("web.yml")], arguments].concat())
    }

    /// Starts a server with TLS and tokens.
    fn protected(&self) -> Server {
        self.with_tls(&["--token-file", &self.argument("tokens")])
    }

    /// Starts a server with tokens but without TLS.
    fn with_tokens(&self, arguments: &[&str]) -> Server {
        serve(&[&["--token-file", &self.argument("tokens")], arguments].concat())
    }

    fn client(&self) -> TlsClient {
        self.authority.client()
    }
}

/// Starts a server on loopback with these additional arguments.
fn serve(arguments: &[&str]) -> Server {
    let all = [
        &[
            "--source",
            "sim:2",
            "serve",
            "--no-control",
            "--listen",
            "127.0.0.1:0",
        ],
        arguments,
    ]
    .concat();
    Server::start(gpumon(&all))
}

/// Returns the same command with a time limit, in case it starts instead of refusing.
fn bounded(command: &Command) -> Command {
    let mut bounded = Command::new("timeout");
    bounded
        .arg("60")
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bounded.env(name, value),
            None => bounded.env_remove(name),
        };
    }
    bounded
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// Returns the `Cookie` header for the session that this answer has started.
fn cookie_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let set = answer
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .expect("a cookie");
    // The head of the answer is in lower case, including the cookie's value.
    format!(
        "Cookie: {}",
        set.split(';').next().unwrap().replace("__host-", "__Host-")
    )
}
