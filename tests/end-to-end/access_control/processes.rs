//! Visibility of processes to other users: `--show-processes`.

use std::process::{Child, Command};

use serde_json::Value;

use super::{ServerFiles, add_time_limit};
use crate::{
    connections::{get_as_nobody, is_root},
    support::{
        FakeNvml, Server, Stream, TEST_TIMEOUT, assert_refused, gpumon_command, send_get,
        wait_for_condition, write_secret,
    },
};

const SECRET_ARGUMENT: &str = "--token=hunter2";
/// The hash of `correct horse`.
const PASSWORD_HASH: &str = "$2b$04$9KVBEGvapFjzzFQjgF330O/446X5e.EFNWNC3OenoHMAnjzfjtnRe";

/// The token of Prometheus.
const METRICS_TOKEN: &str = "6f1c2a9be04d7785c3b1f0a2d4e69788";

/// A process on a GPU, which is killed when this value is dropped.
struct GpuProcess(Child);

impl GpuProcess {
    fn start() -> Self {
        Self(
            Command::new("python3")
                .args(["-c", "import time; time.sleep(600)", SECRET_ARGUMENT])
                .spawn()
                .unwrap(),
        )
    }

    fn fake_gpu(&self) -> FakeNvml {
        let pid = self.0.id();
        FakeNvml::new(&format!(
            "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"1 GiB\"\n"
        ))
    }

    /// Returns whether the text mentions this process.
    fn is_mentioned_in(&self, text: &str) -> bool {
        text.contains(SECRET_ARGUMENT) || text.contains(&format!("\"pid\":{}", self.0.id()))
    }
}

impl Drop for GpuProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All paths with information about processes.
const PROCESS_PATHS: [&str; 5] = [
    "/api/v1/snapshot",
    "/api/v1/snapshot?history_s=600&metrics=processes.memory_bytes",
    "/api/v1/history",
    "/api/v1/usage",
    "/api/v1/answers",
];

fn current_user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Starts a server behind a proxy, so that no client on its port counts as the server's own user.
/// The user `nobody-else` and the server's own user have the same password.
fn serve_processes(fake: &FakeNvml, house: &ServerFiles, show: &str) -> Server {
    write_secret(
        &house.path("users.yml"),
        &format!(
            "basic_auth_users:\n  nobody-else: {PASSWORD_HASH}\n  {}: {PASSWORD_HASH}\n",
            current_user()
        ),
    );
    write_secret(
        &house.path("tokens"),
        &format!("metrics prometheus {METRICS_TOKEN}\n"),
    );
    let (web, tokens) = (house.path_text("users.yml"), house.path_text("tokens"));
    let servers = [
        "--web-config",
        &web,
        "--token-file",
        &tokens,
        "--public-origin",
        "https://gpus.example.org",
    ];
    let server =
        Server::start_with_fake(fake, &[&servers[..], &["--show-processes", show]].concat());
    let own = fake.control_path();
    wait_for_condition("the user of the process sees its command line", || {
        crate::support::send_socket_request(&own, "GET /api/v1/snapshot")
            .body
            .contains(SECRET_ARGUMENT)
    });
    server
}

fn basic_header(user: &str) -> String {
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
async fn client_sees_only_processes_of_same_user() {
    let (working, house) = (GpuProcess::start(), ServerFiles::new());
    let fake = working.fake_gpu();
    let server = serve_processes(&fake, &house, "own");
    let (own, other) = (basic_header(&current_user()), basic_header("nobody-else"));
    let snapshot = send_get(server.port, "/api/v1/snapshot", &[&own]);
    assert!(working.is_mentioned_in(&snapshot.body), "{}", snapshot.body);
    let is_own_user = |text: &str| text.contains(&format!("\"user\":\"{}\"", current_user()));
    wait_for_condition("the usage contains this user", || {
        is_own_user(&send_get(server.port, "/api/v1/usage", &[&own]).body)
    });
    for path in PROCESS_PATHS {
        let answer = send_get(server.port, path, &[&other]);
        assert!(
            !working.is_mentioned_in(&answer.body),
            "{path}: {}",
            answer.body
        );
        let status = if path == "/api/v1/answers" { 403 } else { 200 };
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(!is_own_user(&answer.body), "{path}: {}", answer.body);
    }
    // Only clients with the scope `metrics` see user names in metrics.
    let named = format!("user=\"{}\"", current_user());
    for (header, is_named) in [
        (&other, false),
        (&format!("Authorization: Bearer {METRICS_TOKEN}"), true),
    ] {
        let answer = send_get(server.port, "/metrics", &[header]);
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
    // The total memory includes hidden processes, and the answer reports that there are hidden
    // processes.
    let used = |header: &str| {
        let memory = &send_get(server.port, "/api/v1/snapshot", &[header]).json()["sample"]["gpus"]
            [0]["memory"];
        memory["used_bytes"].clone()
    };
    assert_eq!((used(&own).is_number(), used(&own)), (true, used(&other)));
    let mut seen = read_frames(server.port, &other, 30).await;
    assert!(
        seen.iter()
            .all(|frame| !working.is_mentioned_in(&frame.to_string())),
        "{seen:?}"
    );
    seen = read_frames(server.port, &own, 3).await;
    assert!(
        seen.iter()
            .any(|frame| working.is_mentioned_in(&frame.to_string())),
        "{seen:?}"
    );
}

/// Returns the first frames of a stream, at most `most`. While they are received, one process
/// starts and another one ends.
async fn read_frames(port: u16, header: &str, most: usize) -> Vec<Value> {
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
    while frames.len() < most && begun.elapsed() < TEST_TIMEOUT {
        frames.extend(stream.next_frame().await);
    }
    frames
}

#[test]
fn process_detail_depends_on_show_processes() {
    let (working, house) = (GpuProcess::start(), ServerFiles::new());
    let fake = working.fake_gpu();
    for (show, has_command) in [("names", false), ("all", true)] {
        let server = serve_processes(&fake, &house, show);
        for path in &PROCESS_PATHS[..2] {
            let answer = send_get(server.port, path, &[&basic_header("nobody-else")]);
            assert!(
                working.is_mentioned_in(&answer.body) && answer.body.contains(&current_user()),
                "{show} {path}: {}",
                answer.body
            );
            assert_eq!(
                answer.body.contains(SECRET_ARGUMENT),
                has_command,
                "{show} {path}"
            );
        }
        drop(server);
        let _ = std::fs::remove_file(fake.control_path());
    }
}

#[test]
fn process_metrics_are_hidden_if_processes_are_private() {
    let all = [
        "--source",
        "sim",
        "serve",
        "--no-control",
        "--show-processes",
        "own",
        "--metrics-processes",
    ];
    assert_refused(
        add_time_limit(&gpumon_command(&all)),
        2,
        "--metrics-processes",
    );
    assert_refused(
        gpumon_command(&["serve", "--show-processes", "some"]),
        2,
        "own, all, names",
    );
}

#[test]
fn other_local_user_does_not_see_private_data() {
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
    let working = GpuProcess(command.spawn().unwrap());
    let fake = working.fake_gpu();
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    wait_for_condition("the server's own user sees the notebook", || {
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
    let paths = PROCESS_PATHS
        .iter()
        .chain(&["/api/v1/jobs", "/metrics"])
        .map(|path| (*path, &[][..]));
    for (path, headers) in paths.chain([("/api/v1/stream", &of_stream[..])]) {
        let answer = get_as_nobody(server.port, path, headers);
        assert!(
            answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.1 101"),
            "{path}: {answer}"
        );
        for secret in ["secret.ipynb", "secret-kernel", "4242424"] {
            assert!(!answer.contains(secret), "{path}: {answer}");
        }
        // `/api/v1/snapshot` also lists processes of other users, with as much information as
        // `/proc` provides.
        if path.starts_with("/api/v1/snapshot") {
            assert!(
                working.is_mentioned_in(&answer) && answer.contains("kernel-ab12.json"),
                "{path}: {answer}"
            );
        }
    }
}
