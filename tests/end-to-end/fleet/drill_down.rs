//! The views of a single node through the fleet's server.

use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::{ENCRYPTED, FakePrometheus, OTHER, PLAIN, fleet};
use crate::support::{
    Authority, Server, Stream, ask, eventually, gpumon, send, write, write_secret,
};

pub(super) const ANA: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
pub(super) const FLEET: &str = "ffffffffffffffffffffffffffffffff";

/// A node with TLS that requires a token, and a fleet that has this token.
pub(super) struct Site {
    pub(super) folder: tempfile::TempDir,
    pub(super) node: Server,
    pub(super) name: String,
    pub(super) prometheus: FakePrometheus,
}

impl Site {
    pub(super) fn new() -> Self {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        authority.issue(&["localhost"]).write(folder.path());
        let path = |name: &str| folder.path().join(name);
        write(&path("ca.crt"), &authority.pem(), 0o644);
        write(&path("other.crt"), &Authority::new().pem(), 0o644);
        write_secret(
            &path("web.yml"),
            "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n",
        );
        write_secret(
            &path("tokens"),
            &format!("run ana {ANA}\nread fleet {FLEET}\n"),
        );
        write_secret(&path("node-token"), &format!("{FLEET}\n"));
        write_secret(&path("wrong-token"), "00000000000000000000000000000000\n");
        let arguments = |name: &str| path(name).to_str().unwrap().to_owned();
        let node = Server::start(gpumon(&[
            "--source",
            "sim:2",
            "serve",
            "--no-control",
            "--listen",
            "127.0.0.1:0",
            "--web-config",
            &arguments("web.yml"),
            "--token-file",
            &arguments("tokens"),
        ]));
        let name = format!("localhost:{}", node.port);
        let bearer = format!("Authorization: Bearer {FLEET}");
        eventually("the node has readings", || {
            authority
                .client()
                .ask(node.port, "GET /readyz", &[&bearer])
                .status
                == 200
        });
        let prometheus = FakePrometheus::of(&[&name, OTHER]);
        Self {
            folder,
            node,
            name,
            prometheus,
        }
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Starts a fleet that trusts the node's certificate.
    pub(super) fn fleet(&self, arguments: &[&str]) -> Server {
        let authority = self.path("ca.crt");
        let ways = ["--node-url", ENCRYPTED, "--node-ca-file", &authority];
        fleet(&self.prometheus, &[&ways[..], arguments].concat())
    }

    pub(super) fn with_token(&self) -> Server {
        self.fleet(&["--node-token-file", &self.path("node-token")])
    }

    pub(super) fn node_path(&self, path: &str) -> String {
        format!("/nodes/{}/{path}", self.name)
    }
}

#[test]
fn what_a_node_tells_is_passed_on_and_nothing_else_of_it() {
    let site = Site::new();
    let server = site.with_token();
    let get = |path: &str| server.get(&site.node_path(path));
    let snapshot = get("api/v1/snapshot?brief=true").json();
    assert_eq!(snapshot["inventory"]["gpus"].as_array().unwrap().len(), 2);
    assert_eq!(get("api/v1/session").json()["name"], "token fleet");
    for path in [
        "api/v1/history",
        "api/v1/jobs",
        "api/v1/usage",
        "api/v1/catalogue",
        "api/v1/alerts",
        "api/v1/runs",
    ] {
        assert_eq!(get(path).status, 200, "{path}");
    }
    let compressed = ask(
        server.port,
        &site.node_path("api/v1/snapshot"),
        &["Accept-Encoding: gzip"],
    );
    assert!(
        compressed.head.contains("content-encoding: gzip"),
        "{}",
        compressed.head
    );
    for path in [
        "api/v1/answers",
        "api/v1/openapi.json",
        "api/v1/fleet",
        "api/v1/none",
        "api/v1/../../metrics",
        "api/v1/runs/../pause",
        "api",
    ] {
        let answer = get(path);
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
    }
    for request in ["POST", "DELETE"] {
        for path in [
            "api/v1/runs",
            "api/v1/marks",
            "api/v1/pause",
            "api/v1/alerts/silence",
            "index.html",
        ] {
            let answer = send(
                server.port,
                &format!("{request} {}", site.node_path(path)),
                &["X-Gpumon: run"],
                "{}",
            );
            assert!(
                answer.status == 403 && answer.body.contains("changes nothing"),
                "{path}: {}",
                answer.body
            );
        }
    }
    // The fleet's server sends its own page, whose addresses are relative.
    let slash = server.get(&format!("/nodes/{}", site.name));
    assert!(
        slash.status == 308 && slash.head.contains(&format!("location: {}/", site.name)),
        "{}",
        slash.head
    );
}

#[test]
fn why_a_node_does_not_open_is_told_with_the_cure() {
    let site = Site::new();
    let told = |server: &Server, node: &str, status: u16| {
        let answer = server.get(&format!("/nodes/{node}/api/v1/snapshot"));
        assert_eq!(answer.status, status, "{}", answer.body);
        answer.body
    };
    let server = site.with_token();
    assert!(
        told(&server, "localhost:1", 502)
            .contains("cannot be reached: connection refused; start `gpumon serve`")
    );
    assert!(told(&server, "none", 404).contains("no node of the fleet"));
    let other = site.path("other.crt");
    let distrustful = fleet(
        &site.prometheus,
        &["--node-url", ENCRYPTED, "--node-ca-file", &other],
    );
    assert!(told(&distrustful, &site.name, 502).contains("--node-ca-file"));
    let by_address = fleet(
        &FakePrometheus::of(&[&format!("127.0.0.1:{}", site.node.port), "127.0.0.1:1"]),
        &[
            "--node-url",
            ENCRYPTED,
            "--node-ca-file",
            &site.path("ca.crt"),
        ],
    );
    let name = format!("127.0.0.1:{}", site.node.port);
    assert!(told(&by_address, &name, 502).contains("certificate of another name"));
    let plain = fleet(&site.prometheus, &["--node-url", PLAIN]);
    assert!(told(&plain, &site.name, 400).contains("use https://"));
    let nowhere = fleet(&site.prometheus, &["--node-url", "none"]);
    assert!(told(&nowhere, &site.name, 502).contains("--node-url"));
    let wrong = site.fleet(&["--node-token-file", &site.path("wrong-token")]);
    assert_eq!(wrong.get(&site.node_path("api/v1/snapshot")).status, 401);
    assert_eq!(
        site.fleet(&[])
            .get(&site.node_path("api/v1/session"))
            .json()["token"],
        true,
        "it asks for one"
    );
}

#[test]
fn what_is_not_encrypted_goes_nowhere_but_to_this_machine() {
    // This address is reserved for documentation, so no request reaches a host.
    let prometheus = FakePrometheus::of(&["192.0.2.1:9123"]);
    let server = fleet(&prometheus, &["--node-url", PLAIN]);
    let name = server.get("/api/v1/fleet").json()["nodes"]["name"][0]
        .as_str()
        .unwrap()
        .to_owned();
    let answer = server.get(&format!("/nodes/{name}/api/v1/snapshot"));
    assert!(
        answer.status == 502 && answer.body.contains("without encryption"),
        "{}",
        answer.body
    );
}

async fn stream(server: &Server, path: &str, query: &str) -> Stream {
    Stream::connect_with(
        format!("ws://localhost:{}{path}{query}", server.port)
            .into_client_request()
            .unwrap(),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nodes_stream_goes_both_ways_and_ends_with_the_node() {
    let mut site = Site::new();
    let server = site.with_token();
    for query in ["", "?encoding=deflate-raw"] {
        let mut stream = stream(&server, &site.node_path("api/v1/stream"), query).await;
        assert_eq!(
            stream.next_of("hello").await["inventory"]["gpus"]
                .as_array()
                .unwrap()
                .len(),
            2,
            "{query}"
        );
        stream.next_of("sample").await;
        stream
            .send(r#"{"type":"history","metrics":["power.draw_watts"]}"#)
            .await;
        stream.next_of("history").await;
        stream.send("nonsense").await;
        assert!(
            stream.next_of("error").await["message"]
                .as_str()
                .unwrap()
                .contains("not a client frame")
        );
    }
    let mut last = stream(&server, &site.node_path("api/v1/stream"), "").await;
    last.next_of("hello").await;
    site.node.child.kill().unwrap();
    while last.next().await.is_some() {}
    assert_eq!(server.get(&site.node_path("api/v1/snapshot")).status, 502);
    assert_eq!(server.get("/api/v1/fleet").status, 200);
}

#[test]
fn a_node_on_this_machine_does_not_take_a_viewer_for_its_own_user() {
    let node = Server::start(gpumon(&[
        "--source",
        "sim:2",
        "serve",
        "--no-control",
        "--listen",
        "127.0.0.1:0",
    ]));
    let name = format!("localhost:{}", node.port);
    eventually("the node has readings", || {
        node.get("/readyz").status == 200
    });
    let server = fleet(&FakePrometheus::of(&[&name, OTHER]), &["--node-url", PLAIN]);
    let commands = |path: &str, server: &Server| {
        let sample = server.get(path).json()["sample"].clone();
        sample.to_string().contains("\"hidden\"")
    };
    assert!(
        !commands("/api/v1/snapshot", &node),
        "this user sees command lines"
    );
    assert!(
        commands(&format!("/nodes/{name}/api/v1/snapshot"), &server),
        "who comes by a fleet may be anybody"
    );
    assert_eq!(
        server.get(&format!("/nodes/{name}/api/v1/session")).json()["scope"],
        "read"
    );
}
