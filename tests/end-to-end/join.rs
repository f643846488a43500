//! Users' servers show the readings of the system's server, so that only one probe reads the GPUs
//! of a machine. They show no data of other users.

use std::{
    fs::{self, Permissions},
    io::Write,
    os::unix::{
        fs::{PermissionsExt, chown},
        net::UnixStream,
        process::CommandExt,
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use rustix::process::geteuid;
use serde_json::{Value, json};

use crate::support::{
    FakeNvml, HttpResponse, Server, send_request, send_socket_request, wait_for_condition,
};

/// User IDs that nothing else on the machine uses: those of the system service, of a user of the
/// machine, and of another user.
const SERVICE_UID: u32 = 61_701;
const ANA_UID: u32 = 61_702;
const OTHER_UID: u32 = 61_703;

/// The duration for which the cost of servers is measured.
const MEASURED_TIME: Duration = Duration::from_secs(15);

/// A secret in the command line of the other user.
const SECRET_ARGUMENT: &str = "--token=hunter2";

/// A machine with a shared service. Its driver lists one process of each user. If the tests do not
/// run as root, a single user takes the place of all users.
struct SharedMachine {
    fake: FakeNvml,
    /// Processes that are killed when the machine is dropped.
    _processes: Vec<KilledProcess>,
    ana_pid: u32,
}

struct KilledProcess(Child);

impl Drop for KilledProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run_as_user_if_root(command: &mut Command, uid: u32) {
    if geteuid().is_root() {
        command.uid(uid).gid(uid);
    }
}

impl SharedMachine {
    fn new() -> Self {
        let fake = FakeNvml::new("gpus = 2");
        let kernel = fake.path("kernel-ab12.json");
        let connection =
            json!({ "kernel_name": "python3", "jupyter_session": "/home/ana/train.ipynb" });
        fs::write(&kernel, connection.to_string()).unwrap();
        fs::set_permissions(&kernel, Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(fake.path(""), Permissions::from_mode(0o755)).unwrap();
        for (folder, uid) in [("run", SERVICE_UID), ("ana", ANA_UID)] {
            fs::create_dir(fake.path(folder)).unwrap();
            if geteuid().is_root() {
                chown(fake.path(folder), Some(uid), Some(uid)).unwrap();
                chown(&kernel, Some(ANA_UID), Some(ANA_UID)).unwrap();
            }
        }
        let hold = |uid, argument: &str| {
            let mut command = Command::new("sh");
            command
                .args(["-c", "read x", "kernel", "-f", argument])
                .current_dir("/")
                .stdin(Stdio::piped());
            run_as_user_if_root(&mut command, uid);
            KilledProcess(command.spawn().unwrap())
        };
        let processes = vec![
            hold(ANA_UID, kernel.to_str().unwrap()),
            hold(OTHER_UID, SECRET_ARGUMENT),
        ];
        let listed = processes.iter().zip(0..).map(|(process, gpu)| {
            format!(
                "[[process]]\ngpu = {gpu}\npid = {}\nmemory = \"1 GiB\"\n",
                process.0.id()
            )
        });
        fs::write(
            fake.path("scenario.toml"),
            format!("gpus = 2\n{}", listed.collect::<String>()),
        )
        .unwrap();
        let ana_pid = processes[0].0.id();
        Self {
            fake,
            _processes: processes,
            ana_pid,
        }
    }

    fn socket_path(&self) -> PathBuf {
        self.fake.path("run/public.sock")
    }

    /// Starts the machine's shared service. With `source`, it shows the GPUs of this source instead
    /// of the driver's.
    fn start_service(&self, source: &[&str]) -> Server {
        let socket = self.socket_path();
        let arguments = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--no-control",
            "--shared-socket",
            socket.to_str().unwrap(),
        ];
        let mut command = self.fake.gpumon_command(&[source, &arguments[..]].concat());
        command.env_remove("GPUMON_CONTROL");
        run_as_user_if_root(&mut command, SERVICE_UID);
        Server::start(command)
    }

    /// Starts a server of the user Ana.
    fn start_server_of_ana(&self, arguments: &[&str]) -> Server {
        let mut command = self.build_command_of_ana(arguments);
        run_as_user_if_root(&mut command, ANA_UID);
        Server::start(command)
    }

    fn build_command_of_ana(&self, arguments: &[&str]) -> Command {
        let (socket, control) = (self.socket_path(), self.fake.path("ana/control.sock"));
        let mut command = self
            .fake
            .gpumon_command(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
        command
            .env_remove("GPUMON_NO_JOIN")
            .env("GPUMON_JOIN", socket)
            .env("GPUMON_CONTROL", control);
        command
    }
}

fn is_joined(server: &Server) -> bool {
    let collector = server.get("/api/v1/snapshot?brief=true").json()["collector"].clone();
    collector["joined"].is_string() && server.get("/readyz").status == 200
}

fn has_ready_collector(server: &Server) -> bool {
    let collector = server.get("/api/v1/snapshot?brief=true").json()["collector"].clone();
    collector["joined"].is_null() && server.get("/readyz").status == 200
}

/// Returns the processes of all GPUs.
fn list_processes(sample: &Value) -> Vec<Value> {
    let gpus = sample["gpus"].as_array().unwrap().iter();
    gpus.flat_map(|gpu| gpu["processes"].as_array().cloned().unwrap_or_default())
        .collect()
}

fn history_points(history: &HttpResponse) -> Vec<u64> {
    history.json()["times_ms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|time| time.as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn joined_server_shows_system_readings_and_user_processes() {
    let machine = SharedMachine::new();
    let service = machine.start_service(&[]);
    wait_for_condition("the service has a history", || {
        history_points(&service.get("/api/v1/history?metrics=power.draw_watts")).len() > 3
    });
    let before_ms = service.get("/api/v1/snapshot").json()["sample"]["at_ms"]
        .as_u64()
        .unwrap();
    let ana = machine.start_server_of_ana(&[]);
    wait_for_condition("the user's server has joined the service", || {
        is_joined(&ana)
    });
    assert!(
        ana.get("/readyz")
            .body
            .contains(machine.socket_path().to_str().unwrap()),
        "/readyz names the socket of the service"
    );
    assert_eq!(
        ana.collector_pid(),
        None,
        "a joined server has no collector"
    );

    let mut stream = ana.open_stream().await;
    let hello = stream.next_frame_of_type("hello").await;
    assert!(
        hello["history"]["times_ms"][0].as_u64().unwrap() < before_ms,
        "{hello}"
    );
    let sample = stream.next_frame_of_type("sample").await;
    let snapshot = ana
        .get("/api/v1/snapshot?history_s=600&metrics=processes.memory_bytes")
        .json();
    for sample in [&sample, &snapshot["sample"]] {
        let own = list_processes(sample)
            .into_iter()
            .find(|process| process["pid"] == machine.ana_pid)
            .unwrap();
        assert!(
            own["command"]
                .as_str()
                .is_some_and(|command| command.contains("kernel-ab12.json")),
            "{own}"
        );
        assert_eq!(
            own["owner"]["notebook"]["path"], "/home/ana/train.ipynb",
            "{own}"
        );
    }
    let history = ana.get("/api/v1/history?metrics=power.draw_watts,host.cpu.busy_percent");
    assert!(history_points(&history)[0] < before_ms, "{}", history.body);
    let usage = ana.get("/api/v1/usage?from_ms=1").json();
    assert!(
        usage["oldest_ms"]
            .as_u64()
            .is_some_and(|oldest_ms| (1..before_ms).contains(&oldest_ms)),
        "{usage}"
    );
    if geteuid().is_root() {
        let other = list_processes(&sample)
            .into_iter()
            .find(|process| process["pid"] != machine.ana_pid)
            .unwrap();
        assert_eq!(
            (&other["command"]["absent"], &other["user"]),
            (&json!("hidden"), &json!(OTHER_UID.to_string()))
        );
        let answers = [
            "/api/v1/snapshot?history_s=600",
            "/api/v1/history",
            "/api/v1/usage",
            "/api/v1/usage?from_ms=1",
            "/api/v1/answers",
            "/metrics",
        ];
        for path in answers {
            let answer = ana.get(path);
            assert!(
                answer.status == 200 && !answer.body.contains(SECRET_ARGUMENT),
                "{path}: {}",
                answer.body
            );
        }
        assert!(!format!("{hello}{sample}{snapshot}").contains(SECRET_ARGUMENT));
        let theirs = service.get("/api/v1/snapshot?history_s=600").body;
        assert!(
            !theirs.contains("train.ipynb") && !theirs.contains(SECRET_ARGUMENT),
            "{theirs}"
        );
    }

    stream.send(r#"{"type":"interval","ms":100}"#).await;
    stream
        .read_until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 100)
        .await;
    assert_eq!(
        service.get("/api/v1/snapshot").json()["sample"]["interval_ms"],
        100,
        "the service must sample at the interval of the user's server"
    );
    stream.send(r#"{"type":"traces","on":true}"#).await;
    stream.next_frame_of_type("trace").await;

    let answers = ana.get("/api/v1/answers").json();
    assert_eq!(answers["gpus"].as_array().unwrap().len(), 2, "{answers}");
    assert_ne!(
        answers["gpus"][0]["answers"],
        json!([]),
        "the answers of the driver come from the service"
    );
}

#[test]
fn joined_server_shows_shared_and_local_marks() {
    let machine = SharedMachine::new();
    let service = machine.start_service(&[]);
    let ana = machine.start_server_of_ana(&[]);
    wait_for_condition("the user's server has joined the service", || {
        is_joined(&ana)
    });
    let mark = |server: &Server, text: &str| {
        let body = json!({ "text": text }).to_string();
        send_request(server.port, "POST /api/v1/marks", &["X-Gpumon: run"], &body)
    };
    for (server, text) in [(&service, "of all"), (&ana, "own")] {
        let marked = mark(server, text);
        // Root may set marks on every server.
        assert!(
            !geteuid().is_root() || marked.status < 300,
            "{}",
            marked.body
        );
    }
    if !geteuid().is_root() {
        return;
    }
    let reported = |server: &Server, text: &str| {
        server
            .get("/api/v1/history")
            .body
            .contains(&format!(r#""text":"{text}""#))
    };
    wait_for_condition("both marks are in the history", || {
        reported(&ana, "of all") && reported(&ana, "own")
    });
    assert!(
        !reported(&service, "own"),
        "the mark of a user must not reach the service"
    );
}

#[test]
fn user_server_runs_collector_without_system_server() {
    let machine = SharedMachine::new();
    let mut service = machine.start_service(&[]);
    let ana = machine.start_server_of_ana(&[]);
    wait_for_condition("the user's server has joined the service", || {
        is_joined(&ana)
    });
    // While the service is not running, the user's server waits for it.
    service.terminate();
    wait_for_condition("/readyz reports that the service is gone", || {
        ana.get("/readyz")
            .body
            .contains("no connection to the server at")
    });
    let service = machine.start_service(&[]);
    wait_for_condition("the user's server has joined the service again", || {
        is_joined(&ana)
    });
    assert_eq!(ana.collector_pid(), None);

    drop(service);
    wait_for_condition("the user's server reads the GPUs itself", || {
        has_ready_collector(&ana)
    });
    let reads = list_processes(&ana.get("/api/v1/snapshot").json()["sample"]);
    assert!(reads.iter().any(|process| {
        process["command"]
            .as_str()
            .is_some_and(|it| it.contains("kernel-ab12"))
    }));
    assert!(ana.collector_pid().is_some());
    let _service = machine.start_service(&[]);
    wait_for_condition("the user's server has joined the service again", || {
        is_joined(&ana)
    });
    wait_for_condition("the user's own collector has ended", || {
        ana.collector_pid().is_none()
    });
    let times = history_points(&ana.get("/api/v1/history?metrics=power.draw_watts"));
    let longest_ms = times
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap();
    assert!(
        longest_ms < 20_000,
        "the history contains the readings of the user's own collector: {times:?}"
    );
}

#[test]
fn pause_of_system_server_applies_to_joined_servers() {
    let machine = SharedMachine::new();
    let control = machine.fake.path("run/control.sock");
    let socket = machine.socket_path();
    let shared = [
        "--shared-socket",
        socket.to_str().unwrap(),
        "--control",
        control.to_str().unwrap(),
    ];
    let mut command = machine
        .fake
        .gpumon_command(&[&["serve", "--listen", "127.0.0.1:0"], &shared[..]].concat());
    run_as_user_if_root(&mut command, SERVICE_UID);
    let _service = Server::start(command);
    let ana = machine.start_server_of_ana(&[]);
    wait_for_condition("the user's server has joined the service", || {
        is_joined(&ana)
    });

    let own = send_socket_request(&machine.fake.path("ana/control.sock"), "POST /api/v1/pause");
    assert!(
        own.status == 409 && own.body.contains(socket.to_str().unwrap()),
        "{}",
        own.body
    );
    let shared = send_socket_request(&socket, "POST /api/v1/pause");
    assert!(
        shared.status == 403 && shared.body.contains("control socket"),
        "root may not pause on the shared socket either: {}",
        shared.body
    );
    assert_eq!(
        send_socket_request(&control, "POST /api/v1/pause").status,
        200
    );
    let state = || ana.get("/api/v1/snapshot").json()["collector"]["state"].clone();
    wait_for_condition("the user's server reports the pause", || {
        state() == "paused"
    });
    // The user's server must not start its own collector, which would use the released GPUs.
    sleep(Duration::from_secs(7));
    assert_eq!((state(), ana.collector_pid()), (json!("paused"), None));
    assert_eq!(
        send_socket_request(&control, "POST /api/v1/resume").status,
        200
    );
    wait_for_condition("the readings of the service have returned", || {
        is_joined(&ana)
    });
}

#[test]
fn shared_socket_is_readonly_for_all_users() {
    let machine = SharedMachine::new();
    let service = machine.start_service(&[]);
    wait_for_condition("the service has a sample", || {
        service.get("/readyz").status == 200
    });
    let socket = machine.socket_path();
    assert_eq!(
        fs::metadata(&socket).unwrap().permissions().mode() & 0o777,
        0o666
    );
    for request in [
        "POST /api/v1/pause",
        "POST /api/v1/resume",
        "POST /api/v1/runs",
        "POST /api/v1/marks",
        "POST /api/v1/replay",
        "DELETE /api/v1/runs/1",
        "PUT /",
    ] {
        assert_eq!(
            send_socket_request(&socket, request).status,
            403,
            "{request}"
        );
    }
    let mut curl = Command::new("python3");
    let script = "import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.sendall(b'GET /api/v1/snapshot HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n')
while part := client.recv(65536):
    sys.stdout.buffer.write(part)";
    curl.args(["-c", script, socket.to_str().unwrap()]);
    run_as_user_if_root(&mut curl, OTHER_UID);
    let reported = String::from_utf8(curl.output().unwrap().stdout).unwrap();
    assert!(
        reported.contains("200 OK") && reported.contains("\"sample\""),
        "{reported}"
    );
    drop(service);
    assert!(!geteuid().is_root() || !reported.contains(SECRET_ARGUMENT));
}

#[test]
fn unsuitable_system_server_is_not_joined() {
    let machine = SharedMachine::new();
    let simulated = machine.start_service(&["--source", "sim:1"]);
    wait_for_condition("the service has a sample", || {
        simulated.get("/readyz").status == 200
    });
    let mut ana = machine.start_server_of_ana(&[]);
    let why = (0..3)
        .map(|_| ana.next_message())
        .find(|line| line.contains("not joining"))
        .unwrap();
    assert!(
        why.contains("simulated") && why.contains(machine.socket_path().to_str().unwrap()),
        "{why}"
    );
    wait_for_condition("the user's server reads the GPUs itself", || {
        has_ready_collector(&ana)
    });
    drop((simulated, ana));

    // These servers read the driver themselves and do not join the service, because their options
    // forbid joining or name another library.
    let _service = machine.start_service(&[]);
    let library = machine.fake.path("libnvidia-ml.so.1");
    let another = machine.fake.path("another.so");
    fs::copy(library, &another).unwrap();
    for arguments in [
        &["--no-join"][..],
        &["--join", ""],
        &["--nvml-lib", another.to_str().unwrap()],
    ] {
        let alone = machine.start_server_of_ana(arguments);
        wait_for_condition("the user's server reads the GPUs itself", || {
            has_ready_collector(&alone) && alone.collector_pid().is_some()
        });
    }
}

#[test]
fn invalid_responses_of_socket_do_not_stop_readings() {
    let machine = SharedMachine::new();
    let socket = machine.socket_path();
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, Permissions::from_mode(0o666)).unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _: std::io::Result<()> =
                UnixStream::write_all(&mut stream, b"SSH-2.0-OpenSSH_9.7\r\n");
        }
    });
    let mut ana = machine.start_server_of_ana(&[]);
    wait_for_condition("the user's server reads the GPUs itself", || {
        has_ready_collector(&ana)
    });
    let why = (0..3)
        .map(|_| ana.next_message())
        .find(|line| line.contains("not joining"));
    assert!(why.is_some());
}

#[test]
fn server_of_other_pid_namespace_is_not_joined() {
    if !geteuid().is_root() {
        return;
    }
    let machine = SharedMachine::new();
    let service = machine.start_service(&[]);
    wait_for_condition("the service has a sample", || {
        service.get("/readyz").status == 200
    });
    let inner = machine.build_command_of_ana(&[]);
    let mut command = Command::new("unshare");
    command
        .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(inner.get_program())
        .args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut ana = Server::start(command);
    let why = (0..3)
        .map(|_| ana.next_message())
        .find(|line| line.contains("not joining"))
        .unwrap();
    assert!(why.contains("PID namespace"), "{why}");
    wait_for_condition("the user's server reads the GPUs itself", || {
        has_ready_collector(&ana)
    });
}

/// Returns the processor time of all threads of a process in nanoseconds.
fn processor_time_ns(pid: u32) -> u64 {
    let of =
        |task: fs::DirEntry| fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks
        .filter_map(|task| of(task).split(' ').next()?.parse::<u64>().ok())
        .sum()
}

#[test]
fn joined_server_uses_less_cpu_than_collector() {
    let machine = SharedMachine::new();
    fs::write(machine.fake.path("scenario.toml"), "gpus = 8").unwrap();
    let service = machine.start_service(&[]);
    let (joined, alone) = (
        machine.start_server_of_ana(&[]),
        machine.start_server_of_ana(&["--no-join", "--no-control"]),
    );
    wait_for_condition("both servers have readings", || {
        is_joined(&joined) && has_ready_collector(&alone) && service.get("/readyz").status == 200
    });
    let used = |server: &Server| {
        processor_time_ns(server.child.id()) + server.collector_pid().map_or(0, processor_time_ns)
    };
    // The pause makes sure that the work at the start of the server is not measured.
    sleep(Duration::from_secs(3));
    let before = [used(&joined), used(&alone)];
    sleep(MEASURED_TIME);
    let cost = [used(&joined) - before[0], used(&alone) - before[1]];
    let percent = cost.map(|ns| ns as f64 / 1e7 / MEASURED_TIME.as_secs_f64());
    println!(
        "with 8 GPUs at 1 Hz, joined {:.2} % and alone {:.2} % of a processor",
        percent[0], percent[1]
    );
    assert!(cost[0] * 2 < cost[1], "{percent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_of_service_reach_clients_of_joined_servers() {
    let machine = SharedMachine::new();
    let rule = "[[rule]]\nname = \"memory\"\nfield = \"memory.total_bytes\"\nabove = \"1 MiB\"\n";
    let [alerts, settings] = ["alerts.toml", "service.toml"].map(|name| machine.fake.path(name));
    fs::write(&alerts, rule).unwrap();
    fs::write(&settings, format!("[serve]\nalerts = {alerts:?}\n")).unwrap();
    let _service = machine.start_service(&["--config", settings.to_str().unwrap()]);
    let ana = machine.start_server_of_ana(&[]);
    wait_for_condition("the user's server has joined the service", || {
        ana.get("/readyz").body.contains("joined")
    });
    let mut stream = ana.open_stream().await;
    let reported = |frame: &Value| {
        let firing = if frame["type"] == "hello" {
            &frame["alerts"]
        } else {
            &frame["firing"]
        };
        firing[0]["rule"] == "memory"
    };
    stream.read_until(reported).await;
    assert_eq!(
        ana.get("/api/v1/alerts").json()["rules"],
        json!([]),
        "a joined server evaluates no rules"
    );
}
