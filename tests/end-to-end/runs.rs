//! `/api/v1/runs`: runs of the workload runner, with a script in place of the worker.

use std::{
    fs,
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream, process::CommandExt},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{
    FakeNvml, HttpResponse, Server, Stream, TEST_TIMEOUT, send_request, send_request_line,
    stdout_text, wait_for_condition,
};

/// The user ID of `nobody`.
const NOBODY_UID: u32 = 65_534;
const RUN_HEADERS: &[&str] = &["X-Gpumon: run"];
const COPY_JOB: &str = r#"{"kind":"bench","ids":["copy"],"quick":true}"#;
/// Reports that the script works on the first GPU and has reached its first step.
const BEGIN_SCRIPT: &str = r#"
say() { echo "{\"at_ms\":1,\"report\":$1}"; }
say '"begun","title":"copy","devices":[{"index":7,"name":"NVIDIA H200","uuid":"'$UUID'"}],"steps":1'
say '"phase","step":0,"id":"copy","backend":"cuda","phase":"measuring"'
"#;
const RESULT_SCRIPT: &str = r#"
TIMES='{"median_us":5.5,"low_us":5.4,"high_us":5.6,"p5_us":5.4,"p95_us":5.6,"min_us":5.4,"n":10}'
say '"progress","share":0.5,"text":"half"'
say '"result","id":"copy","backend":"cuda","device":{"name":"NVIDIA H200"},"dtype":"fp32","n":4,"extent":"elements","memory_bytes":32,"host_bytes":0,"moved_bytes":32,"operations":0,"device_time":'"$TIMES"',"host_time":'"$TIMES"',"stopped":"steady","partial":false,"rate":{"bytes_per_second":4e12},"roofline":{"limit":"memory","rated_per_second":4.8e12,"share":0.9},"verify":{"ok":true,"checked":4,"wrong":0,"largest_error":0,"tolerance":1},"environment":{"from_ms":1,"to_ms":2,"gpumon":"0.1.0","cpu":"CPU","threads":2},"load":null'
"#;
/// Works until the script is interrupted.
const INTERRUPTIBLE_SCRIPT: &str = r#"
trap 'say "\"ended\",\"code\":130"; kill $!; exit 130' INT
sleep 60 & echo $$ > "$0.pid"; wait
"#;

/// A server, and a script that executes its runs.
struct Runner {
    fake: FakeNvml,
    server: Server,
}

impl Runner {
    fn new(script: &str, arguments: &[&str]) -> Self {
        let fake = FakeNvml::new("gpus = 2");
        let worker = fake.path("worker");
        // The scripts need the UUID of the first GPU.
        let uuid = fake.read_json()["inventory"]["gpus"][0]["uuid"]
            .as_str()
            .unwrap()
            .to_owned();
        fs::write(&worker, format!("#!/bin/sh\nUUID={uuid}\n{script}\n")).unwrap();
        fs::set_permissions(&worker, fs::Permissions::from_mode(0o755)).unwrap();
        let worker = worker.to_str().unwrap().to_owned();
        let server = Server::start_with_fake(&fake, &[&["--worker", &worker], arguments].concat());
        wait_for_condition("the server is ready", || {
            server.get("/readyz").status == 200
        });
        Self { fake, server }
    }

    fn post_job(&self, job: &str) -> HttpResponse {
        send_request(self.server.port, "POST /api/v1/runs", RUN_HEADERS, job)
    }

    fn start_run(&self) -> String {
        let started = self.post_job(COPY_JOB);
        assert_eq!(started.status, 202, "{}", started.body);
        started.json()["id"].as_str().unwrap().to_owned()
    }

    fn get_details(&self, run: &str) -> Value {
        self.server.get(&format!("/api/v1/runs/{run}")).json()
    }

    fn cancel_run(&self, run: &str) -> HttpResponse {
        send_request(
            self.server.port,
            &format!("DELETE /api/v1/runs/{run}"),
            RUN_HEADERS,
            "",
        )
    }

    /// Waits until the run is over, and returns its details.
    fn wait_until_over(&self, run: &str) -> Value {
        wait_for_condition("the run has ended", || {
            self.get_details(run)["status"] != "running"
        });
        self.get_details(run)
    }

    async fn open_follower(&self) -> Stream {
        let mut stream = self.server.open_stream().await;
        stream.send(r#"{"type":"runs","on":true}"#).await;
        stream
    }

    /// Returns the PID of the worker as soon as it waits.
    fn worker_pid(&self) -> u32 {
        let file = self.fake.path("worker.pid");
        let pid = || fs::read_to_string(&file).ok()?.trim().parse().ok();
        wait_for_condition("the worker has written its PID", || pid().is_some());
        pid().unwrap()
    }

    fn connect_to_control_socket(&self) -> UnixStream {
        let stream = UnixStream::connect(self.fake.control_path()).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream
    }
}

fn process_exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn run_is_reported_from_start_to_end() {
    let script = format!(
        "{BEGIN_SCRIPT}\nwhile [ ! -e \"$0.go\" ]; do sleep 0.02; done\n{RESULT_SCRIPT}\nsay \
         '\"ended\",\"code\":0'"
    );
    let runner = Runner::new(
        &(r#"for job; do :; done; echo "$job" > "$0.job""#.to_owned() + &script),
        &[],
    );
    let (mut follower, mut plain) = (
        runner.open_follower().await,
        runner.server.open_stream().await,
    );
    let run = runner.start_run();
    let began = plain.read_until(|frame| frame["what"] == "run_began").await;
    assert_eq!(
        (
            &began["gpu"]["index"],
            &began["title"],
            &began["kind"],
            &began["run"]
        ),
        (&json!(0), &json!("copy"), &json!("bench"), &json!(run)),
        "the GPU is found by its UUID, not by CUDA's index: {began}"
    );
    assert_eq!(
        plain.read_until(|frame| frame["what"] == "run_step").await["step"],
        "copy"
    );
    let working = follower
        .read_until(|frame| frame["type"] == "run" && frame["step"]["phase"] == "measuring")
        .await;
    assert_eq!(
        (&working["status"], &working["own"]),
        (&json!("running"), &json!(true))
    );
    assert!(
        working["step"]["since_ms"].as_u64() >= working["started_ms"].as_u64(),
        "{working}"
    );
    assert_eq!(
        working["devices"],
        json!([{"index": 0, "name": "NVIDIA H200"}])
    );
    let asked: Value =
        serde_json::from_str(&fs::read_to_string(runner.fake.path("worker.job")).unwrap()).unwrap();
    assert_eq!(
        (&asked["kind"], &asked["ids"], &asked["quick"]),
        (&json!("bench"), &json!(["copy"]), &json!(true))
    );

    let second = runner.post_job(COPY_JOB);
    assert_eq!(second.status, 409, "only one run at a time is allowed");
    assert!(
        second.body.contains(&run) && second.body.contains("copy"),
        "{}",
        second.body
    );

    fs::write(runner.fake.path("worker.go"), "").unwrap();
    let ended = plain.read_until(|frame| frame["what"] == "run_ended").await;
    assert_eq!(
        (&ended["status"], &ended["gpu"]["index"]),
        (&json!("done"), &json!(0))
    );
    let done = follower
        .read_until(|frame| frame["type"] == "run" && frame["status"] == "done")
        .await;
    assert_eq!(
        (&done["items"], &done["newest"]["verified"], &done["code"]),
        (&json!(1), &json!(true), &json!(0))
    );
    let result = &runner.get_details(&run)["all"][0];
    assert_eq!(
        (
            &result["item"],
            &result["bytes_per_second"],
            &result["peak_per_second"],
            &result["share"]
        ),
        (&json!("result"), &json!(4e12), &json!(4.8e12), &json!(0.9))
    );
    assert_eq!(
        result["operations_per_second"],
        json!({"absent": "not_supported"})
    );
    assert_eq!(
        runner.server.get("/api/v1/runs").json()["runs"][0]["run"],
        *run
    );

    // A client that connects later also receives the run.
    let hello = runner
        .server
        .open_stream()
        .await
        .next_frame()
        .await
        .unwrap();
    let reported = hello["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|event| event["what"].as_str());
    assert_eq!(
        reported.filter(|what| what.starts_with("run_")).count(),
        3,
        "{}",
        hello["events"]
    );
    assert_eq!(
        runner.open_follower().await.next_frame_of_type("run").await["run"],
        *run
    );
    assert_eq!(done["seconds"], json!(null));
    let next = runner.post_job(r#"{"kind":"burn","seconds":90}"#);
    assert_eq!(next.status, 202, "the next run may start");
    assert_eq!(
        runner.get_details(next.json()["id"].as_str().unwrap())["seconds"],
        json!(90.0)
    );
}

#[test]
fn canceled_run_frees_its_resources() {
    let runner = Runner::new(&format!("{BEGIN_SCRIPT}{INTERRUPTIBLE_SCRIPT}"), &[]);
    let run = runner.start_run();
    let pid = runner.worker_pid();
    assert_eq!(runner.cancel_run(&run).status, 200);
    let over = runner.wait_until_over(&run);
    assert_eq!(
        (&over["status"], &over["code"], &over["error"]),
        (&json!("canceled"), &json!(130), &Value::Null)
    );
    assert!(!process_exists(pid));
    assert_eq!(
        runner.cancel_run(&run).status,
        200,
        "canceling an ended run succeeds"
    );
}

#[test]
fn unresponsive_worker_is_killed() {
    let deaf = "trap '' INT; echo $$ > \"$0.pid\"; while :; do sleep 0.05; done";
    let runner = Runner::new(&format!("{BEGIN_SCRIPT}{deaf}"), &[]);
    let run = runner.start_run();
    let pid = runner.worker_pid();
    let begun = Instant::now();
    runner.cancel_run(&run);
    let over = runner.wait_until_over(&run);
    assert_eq!(
        (&over["status"], &over["code"]),
        (&json!("canceled"), &Value::Null)
    );
    assert!(
        begun.elapsed() >= Duration::from_secs(5),
        "the worker must get time to end: {:?}",
        begun.elapsed()
    );
    assert!(!process_exists(pid));
}

#[test]
fn crashed_worker_fails_with_its_error_output() {
    let failed = |script: &str| {
        let runner = Runner::new(script, &[]);
        let over = runner.wait_until_over(&runner.start_run());
        assert_eq!(over["status"], "failed", "{over}");
        over["error"].as_str().unwrap().to_owned()
    };
    let crash = failed(&format!(
        "{BEGIN_SCRIPT}\necho first >&2; echo 'gpumon: the driver is gone' >&2; kill -9 $$"
    ));
    assert!(
        crash.contains("signal: 9") && crash.ends_with("the driver is gone"),
        "{crash}"
    );
    assert!(failed("exit 2").contains("without an error message"));
    assert!(failed(&format!("{BEGIN_SCRIPT}\necho hello; sleep 60")).contains("not a report"));
    assert!(failed("head -c 100000 /dev/zero | tr '\\0' x; sleep 60").contains("64 KiB"));
    let refused = r#"say '"failed","id":"copy","backend":"cuda","error":"too large: needs 9 GiB","code":5'; say '"ended","code":5'; exit 5"#;
    let runner = Runner::new(&format!("{BEGIN_SCRIPT}{refused}"), &[]);
    let over = runner.wait_until_over(&runner.start_run());
    assert_eq!(
        (&over["status"], &over["error"]),
        (&json!("failed"), &Value::Null),
        "the list of runs must not repeat the error"
    );
    assert_eq!(
        over["newest"],
        json!({"item": "failed", "id": "copy", "error": "too large: needs 9 GiB"})
    );

    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &["--worker", "/nonexistent"]);
    let started = send_request(server.port, "POST /api/v1/runs", RUN_HEADERS, COPY_JOB).json();
    let details = || {
        server
            .get(&format!("/api/v1/runs/{}", started["id"].as_str().unwrap()))
            .json()
    };
    wait_for_condition("the run has failed", || details()["status"] == "failed");
    assert!(
        details()["error"]
            .as_str()
            .unwrap()
            .contains("/nonexistent")
    );
}

#[test]
fn worker_ends_with_server() {
    let mut runner = Runner::new(&format!("{BEGIN_SCRIPT}{INTERRUPTIBLE_SCRIPT}"), &[]);
    runner.start_run();
    let pid = runner.worker_pid();
    let (status, _) = runner.server.terminate();
    assert!(status.success());
    wait_for_condition("the worker has ended", || !process_exists(pid));
}

#[test]
fn invalid_job_is_refused_with_reason() {
    let runner = Runner::new("exit 0", &[]);
    let huge = format!(r#"{{"kind":"bench","ids":["{}"]}}"#, "x".repeat(70_000));
    for (job, status, word) in [
        ("hello", 400, "invalid job"),
        (r#"{"kind":"format_disk"}"#, 400, "format_disk"),
        (r#"{"kind":"bench","id":"copy"}"#, 400, "`id`"),
        (r#"{"kind":"burn","seconds":-1}"#, 400, "seconds"),
        (&huge, 413, ""),
    ] {
        let refused = runner.post_job(job);
        assert_eq!(refused.status, status, "{}", refused.body);
        assert!(refused.body.contains(word), "{}", refused.body);
    }
    assert_eq!(
        runner.server.get("/api/v1/runs").json()["runs"],
        json!([]),
        "no run may be started"
    );
    assert_eq!(runner.server.get("/api/v1/runs/none").status, 404);
    assert_eq!(runner.cancel_run("none").status, 404);
    let catalogue = runner.server.get("/api/v1/catalogue").json();
    let copy = catalogue["entries"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["id"] == "copy")
        .unwrap();
    assert_eq!(
        (&copy["kind"], &copy["on_cpu"]),
        (&json!("bench"), &json!(true))
    );
}

/// Returns the answer to a request of another user; `None` if the test does not run as root.
fn request_as_other_user(port: u16, request: &str) -> Option<String> {
    let request = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{request} HTTP/1.0\\r\\nHost: localhost\\r\\n\
         X-Gpumon: run\\r\\nContent-Length: {}\\r\\n\\r\\n%s' '{COPY_JOB}' >&3; cat <&3",
        COPY_JOB.len()
    );
    let output = Command::new("bash")
        .args(["-c", &request])
        .uid(NOBODY_UID)
        .output()
        .ok()?;
    Some(stdout_text(&output))
}

#[test]
fn other_users_need_permission_for_runs() {
    let runner = Runner::new("exit 0", &[]);
    let port = runner.server.port;
    let origin = format!("Origin: http://localhost:{port}");
    for (headers, word) in [
        (&[][..], "X-Gpumon"),
        (&[&*origin][..], "X-Gpumon"),
        (
            &["X-Gpumon: run", "Origin: http://evil.example"][..],
            "another origin",
        ),
        (&["X-Gpumon: run", "Origin: null"][..], "another origin"),
        (&["X-Gpumon: run", "Host: evil.example"][..], "Host"),
    ] {
        for request in ["POST /api/v1/runs", "DELETE /api/v1/runs/none"] {
            let refused = send_request(port, request, headers, COPY_JOB);
            assert_eq!(refused.status, 403, "{request} {headers:?}");
            assert!(refused.body.contains(word), "{}", refused.body);
        }
    }
    assert_eq!(
        send_request(
            port,
            "POST /api/v1/runs",
            &["X-Gpumon: run", &origin],
            COPY_JOB
        )
        .status,
        202
    );
    // Behind a proxy, the connection belongs to the user of the proxy and not to the user of the
    // client.
    let public = "https://gpus.example.org";
    let headers = [
        "X-Gpumon: run",
        "Host: gpus.example.org",
        &format!("Origin: {public}"),
    ];
    for (more, status) in [(&[][..], 403), (&["--allow-runs"], 202)] {
        let proxied = Runner::new("exit 0", &[&["--public-origin", public], more].concat());
        let answer = send_request(proxied.server.port, "POST /api/v1/runs", &headers, COPY_JOB);
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(
            status == 202
                || answer.body.contains("is behind a reverse proxy")
                    && answer
                        .body
                        .contains(": start it with `gpumon serve --allow-runs`"),
            "{}",
            answer.body
        );
    }
    assert_eq!(
        runner.server.get("/api/v1/catalogue").json()["refusal"],
        json!(null)
    );
    let [start, catalogue] = ["POST /api/v1/runs", "GET /api/v1/catalogue"];
    if let Some(answer) = request_as_other_user(port, start) {
        assert!(
            answer.contains(" 403 ") && answer.contains("--allow-runs"),
            "{answer}"
        );
        let answer = request_as_other_user(port, catalogue).unwrap();
        assert!(
            answer.contains("\"refusal\":\"only the user who started this server"),
            "{answer}"
        );
        let open = Runner::new("exit 0", &["--allow-runs"]);
        let answer = request_as_other_user(open.server.port, start).unwrap();
        assert!(answer.contains(" 202 "), "{answer}");
        assert!(
            request_as_other_user(open.server.port, catalogue)
                .unwrap()
                .contains("\"refusal\":null")
        );
        assert_eq!(
            send_request(open.server.port, "POST /api/v1/runs", &[], COPY_JOB).status,
            403,
            "the header is required for all users"
        );
    }
}

/// Returns the head of a request that announces a run. The body of the request follows in chunks.
fn make_announcement_head(name: &str) -> String {
    format!(
        "POST /api/v1/runs/announced HTTP/1.1\r\nHost: localhost\r\nConnection: \
         close\r\nX-Gpumon-Run: {name}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
}

fn encode_chunk(line: &str) -> String {
    format!("{:x}\r\n{line}\n\r\n", line.len() + 1)
}

fn read_response(mut stream: UnixStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn run_in_terminal_is_shown_like_other_runs() {
    let runner = Runner::new("exit 0", &[]);
    let mut follower = runner.open_follower().await;
    let mut terminal = runner.connect_to_control_socket();
    terminal
        .write_all(make_announcement_head("term-1").as_bytes())
        .unwrap();
    terminal
        .write_all(
            encode_chunk(r#"{"report":"begun","title":"triad","devices":[],"steps":2}"#).as_bytes(),
        )
        .unwrap();
    let shown = follower
        .read_until(|frame| frame["type"] == "run" && frame["title"] == "triad")
        .await;
    assert_eq!(
        (&shown["run"], &shown["own"]),
        (&json!("term-1"), &json!(false))
    );
    let refused = runner.cancel_run("term-1");
    assert_eq!(refused.status, 409);
    assert!(refused.body.contains("Ctrl-C"), "{}", refused.body);
    assert_eq!(
        runner.post_job(COPY_JOB).status,
        202,
        "a run in a terminal must not block runs of the page"
    );
    let mut again = runner.connect_to_control_socket();
    again
        .write_all((make_announcement_head("term-1") + "0\r\n\r\n").as_bytes())
        .unwrap();
    assert!(read_response(again).contains(" 409 "));
    terminal
        .write_all(encode_chunk(r#"{"report":"ended","code":0}"#).as_bytes())
        .unwrap();
    assert!(read_response(terminal).contains(" 200 "));
    assert_eq!(runner.get_details("term-1")["status"], "done");
}

#[test]
fn interrupted_run_in_terminal_is_listed_as_lost() {
    let runner = Runner::new("exit 0", &[]);
    let mut terminal = runner.connect_to_control_socket();
    let begun = r#"{"report":"begun","title":"triad","devices":[],"steps":2}"#;
    terminal
        .write_all((make_announcement_head("gone") + &encode_chunk(begun)).as_bytes())
        .unwrap();
    wait_for_condition("the run is listed", || {
        runner.server.get("/api/v1/runs").json()["runs"][0]["title"] == "triad"
    });
    drop(terminal);
    assert_eq!(runner.wait_until_over("gone")["status"], "lost");

    let ends = |name: &str, body: &str| {
        let mut terminal = runner.connect_to_control_socket();
        terminal
            .write_all((make_announcement_head(name) + body).as_bytes())
            .unwrap();
        read_response(terminal)
    };
    assert!(ends("brief", &(encode_chunk(begun) + "0\r\n\r\n")).contains("before the run did"));
    assert!(ends("rude", &encode_chunk("hello")).contains("not a report"));
    assert!(ends("long", &encode_chunk(&"x".repeat(70_000))).contains("64 KiB"));
    assert!(ends("a b", "0\r\n\r\n").contains(" 400 "));
    for name in ["brief", "rude", "long"] {
        assert_eq!(runner.wait_until_over(name)["status"], "lost", "{name}");
    }
    let refused = send_request_line(runner.server.port, "POST /api/v1/runs/announced");
    assert_eq!(
        refused.status, 403,
        "the port must not accept announced runs"
    );
}

#[test]
fn last_fifty_runs_are_stored() {
    let runner = Runner::new("exit 0", &[]);
    let runs: Vec<String> = (0..52)
        .map(|_| {
            let run = runner.start_run();
            runner.wait_until_over(&run);
            run
        })
        .collect();
    let known = runner.server.get("/api/v1/runs").json();
    let known: Vec<&str> = known["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    let newest: Vec<&str> = runs.iter().rev().take(50).map(String::as_str).collect();
    assert_eq!(known, newest, "the newest runs are listed first");
}
