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

use crate::support::{
    Authority, HttpResponse, Server, TlsClient, gpumon_command, replace_file, write_secret,
};

const RUN_TOKEN: &str = "11111111111111111111111111111111-run";
const READ_TOKEN: &str = "22222222222222222222222222222222-read";
const METRICS_TOKEN: &str = "33333333333333333333333333333333-metrics";

/// Requests that change something and need the scope `run`.
const CHANGING_REQUESTS: [&str; 5] = [
    "POST /api/v1/runs",
    "DELETE /api/v1/runs/1-1",
    "POST /api/v1/marks",
    "POST /api/v1/cells",
    "POST /api/v1/replay",
];
/// Requests that change something and are only accepted over the unix socket.
const LOCAL_CHANGING_REQUESTS: [&str; 4] = [
    "POST /api/v1/pause",
    "POST /api/v1/resume",
    "POST /api/v1/alerts/silence",
    "POST /api/v1/runs/announced",
];

/// A folder with the files of a server. The server's GPUs are simulated.
struct ServerFiles {
    folder: TempDir,
    authority: Authority,
}

impl ServerFiles {
    /// Creates a certificate for localhost and three tokens.
    fn new() -> Self {
        let house = Self {
            folder: tempfile::tempdir().unwrap(),
            authority: Authority::new(),
        };
        house
            .authority
            .issue_identity(&["localhost", "127.0.0.1", "gpus.example.org"])
            .write_files(house.folder.path());
        house.write_tokens(&[
            ("run", "ana", RUN_TOKEN),
            ("read", "grafana", READ_TOKEN),
            ("metrics", "prometheus", METRICS_TOKEN),
        ]);
        house.write_web_config("");
        house
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn path_text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn write_tokens(&self, tokens: &[(&str, &str, &str)]) {
        let lines = tokens
            .iter()
            .map(|(scope, name, token)| format!("{scope} {name} {token}\n"));
        write_secret(&self.path("tokens"), &lines.collect::<String>());
    }

    /// Writes a configuration with TLS. `more` is appended to it: its first lines may continue the
    /// section `tls_server_config`, and other sections may follow.
    fn write_web_config(&self, more: &str) {
        let text =
            format!("tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n{more}");
        write_secret(&self.path("web.yml"), &text);
        replace_file(&self.path("ca.crt"), &self.authority.pem(), 0o644);
    }

    fn start_with_tls(&self, arguments: &[&str]) -> Server {
        start_server(&[&["--web-config", &self.path_text("web.yml")], arguments].concat())
    }

    /// Starts a server with TLS and tokens.
    fn start_with_tls_and_tokens(&self) -> Server {
        self.start_with_tls(&["--token-file", &self.path_text("tokens")])
    }

    /// Starts a server with tokens but without TLS.
    fn start_with_tokens(&self, arguments: &[&str]) -> Server {
        start_server(&[&["--token-file", &self.path_text("tokens")], arguments].concat())
    }

    fn tls_client(&self) -> TlsClient {
        self.authority.make_client()
    }
}

/// Starts a server on loopback with these additional arguments.
fn start_server(arguments: &[&str]) -> Server {
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
    Server::start(gpumon_command(&all))
}

/// Returns the same command with a time limit, in case the server starts instead of refusing to.
fn add_time_limit(command: &Command) -> Command {
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

fn bearer_header(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// Returns the `Cookie` header for the session that this answer has started.
fn session_cookie(answer: &HttpResponse) -> String {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let set = answer
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .expect("the response must set a cookie");
    // The head of the answer was converted to lower case, including the name and value of the
    // cookie. Here, the prefix of the name is restored.
    format!(
        "Cookie: {}",
        set.split(';').next().unwrap().replace("__host-", "__Host-")
    )
}
