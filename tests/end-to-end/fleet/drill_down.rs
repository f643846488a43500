//! The views of a single node through the fleet's server.

use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::{ENCRYPTED_NODE_URL, FakePrometheus, OTHER_NODE, PLAIN_NODE_URL, start_fleet};
use crate::support::{
    Authority, Server, Stream, gpumon_command, replace_file, send_get, send_request,
    wait_for_condition, write_secret,
};

pub(super) const ANA_TOKEN: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
pub(super) const FLEET_TOKEN: &str = "ffffffffffffffffffffffffffffffff";

/// A node with TLS that requires a token, and a fleet that has this token.
pub(super) struct SecuredNode {
    pub(super) folder: tempfile::TempDir,
    pub(super) node: Server,
    pub(super) name: String,
    pub(super) prometheus: FakePrometheus,
}

impl SecuredNode {
    pub(super) fn new() -> Self {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        authority
            .issue_identity(&["localhost"])
            .write_files(folder.path());
        let path = |name: &str| folder.path().join(name);
        replace_file(&path("ca.crt"), &authority.pem(), 0o644);
        replace_file(&path("other.crt"), &Authority::new().pem(), 0o644);
        write_secret(
            &path("web.yml"),
            "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n",
        );
        write_secret(
            &path("tokens"),
            &format!("run ana {ANA_TOKEN}\nread fleet {FLEET_TOKEN}\n"),
        );
        write_secret(&path("node-token"), &format!("{FLEET_TOKEN}\n"));
        write_secret(&path("wrong-token"), "00000000000000000000000000000000\n");
        let arguments = |name: &str| path(name).to_str().unwrap().to_owned();
        let node = Server::start(gpumon_command(&[
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
        let bearer = format!("Authorization: Bearer {FLEET_TOKEN}");
        wait_for_condition("the node has readings", || {
            authority
                .make_client()
                .send_request(node.port, "GET /readyz", &[&bearer])
                .status
                == 200
        });
        let prometheus = FakePrometheus::with_instances(&[&name, OTHER_NODE]);
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
    pub(super) fn start_fleet(&self, arguments: &[&str]) -> Server {
        let authority = self.path("ca.crt");
        let ways = [
            "--node-url",
            ENCRYPTED_NODE_URL,
            "--node-ca-file",
            &authority,
        ];
        start_fleet(&self.prometheus, &[&ways[..], arguments].concat())
    }

    pub(super) fn start_fleet_with_token(&self) -> Server {
        self.start_fleet(&["--node-token-file", &self.path("node-token")])
    }

    pub(super) fn node_path(&self, path: &str) -> String {
        format!("/nodes/{}/{path}", self.name)
    }
}

#[test]
fn only_data_of_node_is_forwarded() {
    let site = SecuredNode::new();
    let server = site.start_fleet_with_token();
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
    let compressed = send_get(
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
            let answer = send_request(
                server.port,
                &format!("{request} {}", site.node_path(path)),
                &["X-Gpumon: run"],
                "{}",
            );
            assert!(
                answer.status == 403 && answer.body.contains("cannot be changed through a fleet"),
                "{path}: {}",
                answer.body
            );
        }
    }
    // The addresses in the page are relative, so the URL of a node's page must end with a slash.
    let slash = server.get(&format!("/nodes/{}", site.name));
    assert!(
        slash.status == 308 && slash.head.contains(&format!("location: {}/", site.name)),
        "{}",
        slash.head
    );
}

#[test]
fn unreachable_node_is_explained_with_remedy() {
    let site = SecuredNode::new();
    let reported = |server: &Server, node: &str, status: u16| {
        let answer = server.get(&format!("/nodes/{node}/api/v1/snapshot"));
        assert_eq!(answer.status, status, "{}", answer.body);
        answer.body
    };
    let server = site.start_fleet_with_token();
    assert!(
        reported(&server, "localhost:1", 502)
            .contains("cannot be reached: connection refused; start `gpumon serve`")
    );
    assert!(reported(&server, "none", 404).contains("the fleet has no node with this name"));
    let other = site.path("other.crt");
    let distrustful = start_fleet(
        &site.prometheus,
        &["--node-url", ENCRYPTED_NODE_URL, "--node-ca-file", &other],
    );
    assert!(reported(&distrustful, &site.name, 502).contains("--node-ca-file"));
    let by_address = start_fleet(
        &FakePrometheus::with_instances(&[&format!("127.0.0.1:{}", site.node.port), "127.0.0.1:1"]),
        &[
            "--node-url",
            ENCRYPTED_NODE_URL,
            "--node-ca-file",
            &site.path("ca.crt"),
        ],
    );
    let name = format!("127.0.0.1:{}", site.node.port);
    assert!(reported(&by_address, &name, 502).contains("certificate for another name"));
    let plain = start_fleet(&site.prometheus, &["--node-url", PLAIN_NODE_URL]);
    assert!(reported(&plain, &site.name, 400).contains("use https://"));
    let nowhere = start_fleet(&site.prometheus, &["--node-url", "none"]);
    assert!(reported(&nowhere, &site.name, 502).contains("--node-url"));
    let wrong = site.start_fleet(&["--node-token-file", &site.path("wrong-token")]);
    assert_eq!(wrong.get(&site.node_path("api/v1/snapshot")).status, 401);
    assert_eq!(
        site.start_fleet(&[])
            .get(&site.node_path("api/v1/session"))
            .json()["token"],
        true,
        "the session must report that a token is needed"
    );
}

#[test]
fn fleet_sends_unencrypted_requests_only_to_this_machine() {
    // This address is reserved for documentation. So the requests of the test reach no real host.
    let prometheus = FakePrometheus::with_instances(&["192.0.2.1:9123"]);
    let server = start_fleet(&prometheus, &["--node-url", PLAIN_NODE_URL]);
    let name = server.get("/api/v1/fleet").json()["nodes"]["name"][0]
        .as_str()
        .unwrap()
        .to_owned();
    let answer = server.get(&format!("/nodes/{name}/api/v1/snapshot"));
    assert!(
        answer.status == 502 && answer.body.contains("would not be encrypted"),
        "{}",
        answer.body
    );
}

async fn open_stream(server: &Server, path: &str, query: &str) -> Stream {
    Stream::connect_with(
        format!("ws://localhost:{}{path}{query}", server.port)
            .into_client_request()
            .unwrap(),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn node_stream_works_both_ways_until_node_ends() {
    let mut site = SecuredNode::new();
    let server = site.start_fleet_with_token();
    for query in ["", "?encoding=deflate-raw"] {
        let mut stream = open_stream(&server, &site.node_path("api/v1/stream"), query).await;
        assert_eq!(
            stream.next_frame_of_type("hello").await["inventory"]["gpus"]
                .as_array()
                .unwrap()
                .len(),
            2,
            "{query}"
        );
        stream.next_frame_of_type("sample").await;
        stream
            .send(r#"{"type":"history","metrics":["power.draw_watts"]}"#)
            .await;
        stream.next_frame_of_type("history").await;
        stream.send("nonsense").await;
        assert!(
            stream.next_frame_of_type("error").await["message"]
                .as_str()
                .unwrap()
                .contains("not a client frame")
        );
    }
    let mut last = open_stream(&server, &site.node_path("api/v1/stream"), "").await;
    last.next_frame_of_type("hello").await;
    site.node.child.kill().unwrap();
    while last.next_frame().await.is_some() {}
    assert_eq!(server.get(&site.node_path("api/v1/snapshot")).status, 502);
    assert_eq!(server.get("/api/v1/fleet").status, 200);
}

#[test]
fn node_on_same_machine_treats_viewer_as_unknown() {
    let node = Server::start(gpumon_command(&[
        "--source",
        "sim:2",
        "serve",
        "--no-control",
        "--listen",
        "127.0.0.1:0",
    ]));
    let name = format!("localhost:{}", node.port);
    wait_for_condition("the node has readings", || {
        node.get("/readyz").status == 200
    });
    let server = start_fleet(
        &FakePrometheus::with_instances(&[&name, OTHER_NODE]),
        &["--node-url", PLAIN_NODE_URL],
    );
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
        "a viewer who comes from a fleet sees no command lines"
    );
    assert_eq!(
        server.get(&format!("/nodes/{name}/api/v1/session")).json()["scope"],
        "read"
    );
}
