//! Visibility of processes to other users: `--show-processes`.

use std::process::{Child, Command};

use serde_json::Value;

use super::{House, bounded};
use crate::connections::{as_nobody, is_root};
use crate::support::{
    Fake, PATIENCE, Server, Stream, ask, eventually, gpumon, refused, write_secret,
};

const SECRET: &str = "--token=hunter2";
/// The hash of `correct horse`.
const HASH: &str = "$2b$04$9KVBEGvapFjzzFQjgF330O/446X5e.EFNWNC3OenoHMAnjzfjtnRe";

/// The token of Prometheus.
const TOKEN: &str = "6f1c2a9be04d7785c3b1f0a2d4e69788";

/// A process on a GPU, which is killed when this value is dropped.
struct Working(Child);

impl Working {
    fn start() -> Self {
        Self(
            Command::new("python3")
                .args(["-c", "import time; time.sleep(600)", SECRET])
                .spawn()
                .unwrap(),
        )
    }

    fn fake(&self) -> Fake {
        let pid = self.0.id();
        Fake::new(&format!(
            "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"1 GiB\"\n"
        ))
    }

    /// Returns whether the text mentions this process.
    fn is_in(&self, text: &str) -> bool {
        text.contains(SECRET) || text.contains(&format!("\"pid\":{}", self.0.id()))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All paths with information about processes.
const PATHS: [&str; 5] = [
    "/api/v1/snapshot",
    "/api/v1/snapshot?history_s=600&metrics=processes.memory_bytes",
    "/api/v1/history",
    "/api/v1/usage",
    "/api/v1/answers",
];

fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Starts a server. Behind a proxy, no client on the port counts as the server's own user. `ana`
/// and the server's own user have the same password.
fn serve(fake: &Fake, house: &House, show: &str) -> Server {
    write_secret(
        &house.path("users.yml"),
        &format!(
            "basic_auth_users:\n  nobody-else: {HASH}\n  {}: {HASH}\n",
            user()
        ),
    );
    write_secret(
        &house.path("tokens"),
        &format!("metrics prometheus {TOKEN}\n"),
    );
    let (web, tokens) = (house.argument("users.yml"), house.argument("tokens"));
    let doors = [
        "--web-config",
        &web,
        "--token-file",
        &tokens,
        "--public-origin",
        "https://gpus.example.org",
    ];
    let server = Server::over(fake, &[&doors[..], &["--show-processes", show]].concat());
    let own = fake.control();
    eventually("the process is known to its own user", || {
        crate::support::ask_socket(&own, "GET /api/v1/snapshot")
            .body
            .contains(SECRET)
    });
    server
}

fn login(user: &str) -> String {
    use std::io::Write;
    let mut encode = Command::new("base64")
        .arg("-w0")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    write!(encode.stdin.take().unwrap(), "{user}:correct horse").unwrap();
    let output = encode.wait_with_output().unwrap();
    format!(
        "Authorization: Basic {}",
        String::from_utf8(output.stdout).unwrap()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_sees_the_processes_of_its_own_user_alone() {
    let (working, house) = (Working::start(), House::new());
    let fake = working.fake();
    let server = serve(&fake, &house, "own");
    let (own, other) = (login(&user()), login("nobody-else"));
    let snapshot = ask(server.port, "/api/v1/snapshot", &[&own]);
    assert!(working.is_in(&snapshot.body), "{}", snapshot.body);
    let is_own_user = |text: &str| text.contains(&format!("\"user\":\"{}\"", user()));
    eventually("usage is known", || {
        is_own_user(&ask(server.port, "/api/v1/usage", &[&own]).body)
    });
    for path in PATHS {
        let answer = ask(server.port, path, &[&other]);
        assert!(!working.is_in(&answer.body), "{path}: {}", answer.body);
        let status = if path == "/api/v1/answers" { 403 } else { 200 };
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(!is_own_user(&answer.body), "{path}: {}", answer.body);
    }
    // Only clients with the scope `metrics` see user names in metrics.
    let named = format!("user=\"{}\"", user());
    for (header, is_named) in [
        (&other, false),
        (&format!("Authorization: Bearer {TOKEN}"), true),
    ] {
        let answer = ask(server.port, "/metrics", &[header]);
        assert_eq!(
            (answer.status, answer.body.contains(&named)),
            (200, is_named),
            "{}",
            answer.body
        );
        assert!(
            answer.body.contains("gpumon_gpu_memory_used_bytes"),
            "{}",
            answer.body
        );
    }
    // The total memory includes hidden processes, and the answer reports that there are some.
    let used = |header: &str| {
        let memory =
            &ask(server.port, "/api/v1/snapshot", &[header]).json()["sample"]["gpus"][0]["memory"];
        memory["used_bytes"].clone()
    };
    assert_eq!((used(&own).is_number(), used(&own)), (true, used(&other)));
    let mut seen = frames(server.port, &other, 30).await;
    assert!(
        seen.iter().all(|frame| !working.is_in(&frame.to_string())),
        "{seen:?}"
    );
    seen = frames(server.port, &own, 3).await;
    assert!(
        seen.iter().any(|frame| working.is_in(&frame.to_string())),
        "{seen:?}"
    );
}

/// Returns the first frames of a stream in which one process starts and another ends.
async fn frames(port: u16, header: &str, most: usize) -> Vec<Value> {
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    let mut request = format!("ws://localhost:{port}/api/v1/stream")
        .into_client_request()
        .unwrap();
    let (_, value) = header.split_once(": ").unwrap();
    request
        .headers_mut()
        .insert("authorization", value.parse().unwrap());
    let mut stream = Stream::connect_with(request).await;
    stream
        .send(r#"{"type":"history","metrics":["processes.memory_bytes"]}"#)
        .await;
    let begun = std::time::Instant::now();
    let mut frames = Vec::new();
    while frames.len() < most && begun.elapsed() < PATIENCE {
        frames.extend(stream.next().await);
    }
    frames
}

#[test]
fn names_are_shown_without_command_lines_and_all_is_shown_with_them() {
    let (working, house) = (Working::start(), House::new());
    let fake = working.fake();
    for (show, has_command) in [("names", false), ("all", true)] {
        let server = serve(&fake, &house, show);
        for path in &PATHS[..2] {
            let answer = ask(server.port, path, &[&login("nobody-else")]);
            assert!(
                working.is_in(&answer.body) && answer.body.contains(&user()),
                "{show} {path}: {}",
                answer.body
            );
            assert_eq!(answer.body.contains(SECRET), has_command, "{show} {path}");
        }
        drop(server);
        let _ = std::fs::remove_file(fake.control());
    }
}

#[test]
fn metrics_of_processes_are_the_same_for_everybody_and_so_are_not_shown_to_each_its_own() {
    let all = [
        "--source",
        "sim",
        "serve",
        "--no-control",
        "--show-processes",
        "own",
        "--metrics-processes",
    ];
    refused(bounded(&gpumon(&all)), 2, "--metrics-processes");
    refused(
        gpumon(&["serve", "--show-processes", "some"]),
        2,
        "own, all, names",
    );
}

#[test]
fn other_local_user_sees_no_private_data() {
    // Only root can send requests as another user.
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernel-ab12.json");
    write_secret(
        &file,
        r#"{"kernel_name":"secret-kernel","jupyter_session":"/root/secret.ipynb"}"#,
    );
    let mut command = Command::new("python3");
    command
        .args([
            "-c",
            "import time; time.sleep(600)",
            "-f",
            file.to_str().unwrap(),
        ])
        .env("SLURM_JOB_ID", "4242424");
    let working = Working(command.spawn().unwrap());
    let fake = working.fake();
    let server = Server::over(&fake, &["--interval-ms", "200"]);
    eventually("the server's own user sees the notebook", || {
        let body = server.get("/api/v1/snapshot").body;
        ["secret.ipynb", "secret-kernel", "4242424"]
            .iter()
            .all(|text| body.contains(text))
    });
    let of_stream = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ];
    let paths = PATHS
        .iter()
        .chain(&["/api/v1/jobs", "/metrics"])
        .map(|path| (*path, &[][..]));
    for (path, headers) in paths.chain([("/api/v1/stream", &of_stream[..])]) {
        let answer = as_nobody(server.port, path, headers);
        assert!(
            answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.1 101"),
            "{path}: {answer}"
        );
        for secret in ["secret.ipynb", "secret-kernel", "4242424"] {
            assert!(!answer.contains(secret), "{path}: {answer}");
        }
        // Processes of other users are shown as far as `/proc` shows them.
        if path.starts_with("/api/v1/snapshot") {
            assert!(
                working.is_in(&answer) && answer.contains("kernel-ab12.json"),
                "{path}: {answer}"
            );
        }
    }
}
