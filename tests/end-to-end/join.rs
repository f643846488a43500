//! One probe per machine: servers of users show the readings of the system's server, without data
//! of other users.

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

use crate::support::{Answer, Fake, Server, ask_socket, eventually, send};

/// User IDs that nothing else on the machine uses: the system service, a user of the machine, and
/// another user.
const SERVICE: u32 = 61_701;
const ANA: u32 = 61_702;
const OTHER: u32 = 61_703;

/// The duration for which the cost of servers is measured.
const MEASURED: Duration = Duration::from_secs(15);

/// A secret in the command line of the other user.
const SECRET: &str = "--token=hunter2";

/// A machine with a service, whose driver lists a process of each user. If the tests do not run as
/// root, all users are the same.
struct Machine {
    fake: Fake,
    /// The processes, which are killed together with the machine.
    _processes: Vec<Process>,
    ana_pid: u32,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn become_user(command: &mut Command, uid: u32) {
    if geteuid().is_root() {
        command.uid(uid).gid(uid);
    }
}

impl Machine {
    fn new() -> Self {
        let fake = Fake::new("gpus = 2");
        let kernel = fake.path("kernel-ab12.json");
        let connection =
            json!({ "kernel_name": "python3", "jupyter_session": "/home/ana/train.ipynb" });
        fs::write(&kernel, connection.to_string()).unwrap();
        fs::set_permissions(&kernel, Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(fake.path(""), Permissions::from_mode(0o755)).unwrap();
        for (folder, uid) in [("run", SERVICE), ("ana", ANA)] {
            fs::create_dir(fake.path(folder)).unwrap();
            if geteuid().is_root() {
                chown(fake.path(folder), Some(uid), Some(uid)).unwrap();
                chown(&kernel, Some(ANA), Some(ANA)).unwrap();
            }
        }
        let hold = |uid, argument: &str| {
            let mut command = Command::new("sh");
            command
                .args(["-c", "read x", "kernel", "-f", argument])
                .current_dir("/")
                .stdin(Stdio::piped());
            become_user(&mut command, uid);
            Process(command.spawn().unwrap())
        };
        let processes = vec![hold(ANA, kernel.to_str().unwrap()), hold(OTHER, SECRET)];
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

    fn socket(&self) -> PathBuf {
        self.fake.path("run/public.sock")
    }

    /// Starts the system's service. With `source`, it shows other GPUs than the driver's.
    fn service(&self, source: &[&str]) -> Server {
        let socket = self.socket();
        let arguments = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--no-control",
            "--shared-socket",
            socket.to_str().unwrap(),
        ];
        let mut command = self.fake.gpumon(&[source, &arguments[..]].concat());
        command.env_remove("GPUMON_CONTROL");
        become_user(&mut command, SERVICE);
        Server::start(command)
    }

    /// Starts the server of a user.
    fn of_ana(&self, arguments: &[&str]) -> Server {
        let mut command = self.command_of_ana(arguments);
        become_user(&mut command, ANA);
        Server::start(command)
    }

    fn command_of_ana(&self, arguments: &[&str]) -> Command {
        let (socket, control) = (self.socket(), self.fake.path("ana/control.sock"));
        let mut command = self
            .fake
            .gpumon(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
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

fn is_own(server: &Server) -> bool {
    let collector = server.get("/api/v1/snapshot?brief=true").json()["collector"].clone();
    collector["joined"].is_null() && server.get("/readyz").status == 200
}

/// Returns the processes of all GPUs.
fn processes(sample: &Value) -> Vec<Value> {
    let gpus = sample["gpus"].as_array().unwrap().iter();
    gpus.flat_map(|gpu| gpu["processes"].as_array().cloned().unwrap_or_default())
        .collect()
}

fn points(history: &Answer) -> Vec<u64> {
    history.json()["times_ms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|time| time.as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn a_user_s_server_shows_the_system_s_readings_and_its_own_user_s_processes_whole() {
    let machine = Machine::new();
    let service = machine.service(&[]);
    eventually("there is a past", || {
        points(&service.get("/api/v1/history?metrics=power.draw_watts")).len() > 3
    });
    let before_ms = service.get("/api/v1/snapshot").json()["sample"]["at_ms"]
        .as_u64()
        .unwrap();
    let ana = machine.of_ana(&[]);
    eventually("it has joined", || is_joined(&ana));
    assert!(
        ana.get("/readyz")
            .body
            .contains(machine.socket().to_str().unwrap()),
        "health says where readings come from"
    );
    assert_eq!(ana.collector(), None, "one probe per machine");

    let mut stream = ana.stream().await;
    let hello = stream.next_of("hello").await;
    assert!(
        hello["history"]["times_ms"][0].as_u64().unwrap() < before_ms,
        "{hello}"
    );
    let sample = stream.next_of("sample").await;
    let snapshot = ana
        .get("/api/v1/snapshot?history_s=600&metrics=processes.memory_bytes")
        .json();
    for sample in [&sample, &snapshot["sample"]] {
        let own = processes(sample)
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
    assert!(points(&history)[0] < before_ms, "{}", history.body);
    let usage = ana.get("/api/v1/usage?from_ms=1").json();
    assert!(
        usage["oldest_ms"]
            .as_u64()
            .is_some_and(|oldest_ms| (1..before_ms).contains(&oldest_ms)),
        "{usage}"
    );
    if geteuid().is_root() {
        let other = processes(&sample)
            .into_iter()
            .find(|process| process["pid"] != machine.ana_pid)
            .unwrap();
        assert_eq!(
            (&other["command"]["absent"], &other["user"]),
            (&json!("hidden"), &json!(OTHER.to_string()))
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
                answer.status == 200 && !answer.body.contains(SECRET),
                "{path}: {}",
                answer.body
            );
        }
        assert!(!format!("{hello}{sample}{snapshot}").contains(SECRET));
        let theirs = service.get("/api/v1/snapshot?history_s=600").body;
        assert!(
            !theirs.contains("train.ipynb") && !theirs.contains(SECRET),
            "{theirs}"
        );
    }

    stream.send(r#"{"type":"interval","ms":100}"#).await;
    stream
        .until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 100)
        .await;
    assert_eq!(
        service.get("/api/v1/snapshot").json()["sample"]["interval_ms"],
        100,
        "the system's samples as often"
    );
    stream.send(r#"{"type":"traces","on":true}"#).await;
    stream.next_of("trace").await;

    let answers = ana.get("/api/v1/answers").json();
    assert_eq!(answers["gpus"].as_array().unwrap().len(), 2, "{answers}");
    assert_ne!(
        answers["gpus"][0]["answers"],
        json!([]),
        "nvidia-smi's are the system's collector's"
    );
}

#[test]
fn marks_of_a_user_s_server_stay_there_and_those_of_the_system_s_are_shown() {
    let machine = Machine::new();
    let service = machine.service(&[]);
    let ana = machine.of_ana(&[]);
    eventually("it has joined", || is_joined(&ana));
    let mark = |server: &Server, text: &str| {
        let body = json!({ "text": text }).to_string();
        send(server.port, "POST /api/v1/marks", &["X-Gpumon: run"], &body)
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
    let told = |server: &Server, text: &str| {
        server
            .get("/api/v1/history")
            .body
            .contains(&format!(r#""text":"{text}""#))
    };
    eventually("both are told", || {
        told(&ana, "of all") && told(&ana, "own")
    });
    assert!(
        !told(&service, "own"),
        "what a user does there is the user's own"
    );
}

#[test]
fn while_the_system_s_server_is_away_a_collector_reads_and_then_it_is_joined_again() {
    let machine = Machine::new();
    let mut service = machine.service(&[]);
    let ana = machine.of_ana(&[]);
    eventually("it has joined", || is_joined(&ana));
    // If the service is restarted, the user's server waits for it.
    service.terminate();
    eventually("it is said that it is gone", || {
        ana.get("/readyz")
            .body
            .contains("no connection to the server at")
    });
    let service = machine.service(&[]);
    eventually("it is joined again", || is_joined(&ana));
    assert_eq!(ana.collector(), None);

    drop(service);
    eventually("a collector reads", || is_own(&ana));
    let reads = processes(&ana.get("/api/v1/snapshot").json()["sample"]);
    assert!(reads.iter().any(|process| {
        process["command"]
            .as_str()
            .is_some_and(|it| it.contains("kernel-ab12"))
    }));
    assert!(ana.collector().is_some());
    let _service = machine.service(&[]);
    eventually("it is joined again", || is_joined(&ana));
    eventually("its own collector has ended", || ana.collector().is_none());
    let times = points(&ana.get("/api/v1/history?metrics=power.draw_watts"));
    let longest_ms = times
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap();
    assert!(
        longest_ms < 20_000,
        "what the collector read is shown, too: {times:?}"
    );
}

#[test]
fn a_pause_of_the_system_s_server_releases_the_gpus_for_its_users_too() {
    let machine = Machine::new();
    let control = machine.fake.path("run/control.sock");
    let socket = machine.socket();
    let shared = [
        "--shared-socket",
        socket.to_str().unwrap(),
        "--control",
        control.to_str().unwrap(),
    ];
    let mut command = machine
        .fake
        .gpumon(&[&["serve", "--listen", "127.0.0.1:0"], &shared[..]].concat());
    become_user(&mut command, SERVICE);
    let _service = Server::start(command);
    let ana = machine.of_ana(&[]);
    eventually("it has joined", || is_joined(&ana));

    let own = ask_socket(&machine.fake.path("ana/control.sock"), "POST /api/v1/pause");
    assert!(
        own.status == 409 && own.body.contains(socket.to_str().unwrap()),
        "{}",
        own.body
    );
    let shared = ask_socket(&socket, "POST /api/v1/pause");
    assert!(
        shared.status == 403 && shared.body.contains("control socket"),
        "also for root: {}",
        shared.body
    );
    assert_eq!(ask_socket(&control, "POST /api/v1/pause").status, 200);
    let state = || ana.get("/api/v1/snapshot").json()["collector"]["state"].clone();
    eventually("its users see it", || state() == "paused");
    // A collector of the user's server would use the GPUs that were released.
    sleep(Duration::from_secs(7));
    assert_eq!((state(), ana.collector()), (json!("paused"), None));
    assert_eq!(ask_socket(&control, "POST /api/v1/resume").status, 200);
    eventually("readings are back", || is_joined(&ana));
}

#[test]
fn a_shared_socket_is_open_to_every_user_and_only_read_from() {
    let machine = Machine::new();
    let service = machine.service(&[]);
    eventually("it has a sample", || service.get("/readyz").status == 200);
    let socket = machine.socket();
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
        assert_eq!(ask_socket(&socket, request).status, 403, "{request}");
    }
    let mut curl = Command::new("python3");
    let script = "import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.sendall(b'GET /api/v1/snapshot HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n')
while part := client.recv(65536):
    sys.stdout.buffer.write(part)";
    curl.args(["-c", script, socket.to_str().unwrap()]);
    become_user(&mut curl, OTHER);
    let told = String::from_utf8(curl.output().unwrap().stdout).unwrap();
    assert!(
        told.contains("200 OK") && told.contains("\"sample\""),
        "{told}"
    );
    drop(service);
    assert!(!geteuid().is_root() || !told.contains(SECRET));
}

#[test]
fn a_server_that_shows_something_else_is_not_joined_and_one_that_breaks_off_is_left() {
    let machine = Machine::new();
    let simulated = machine.service(&["--source", "sim:1"]);
    eventually("it has a sample", || simulated.get("/readyz").status == 200);
    let mut ana = machine.of_ana(&[]);
    let why = (0..3)
        .map(|_| ana.next_message())
        .find(|line| line.contains("not joining"))
        .unwrap();
    assert!(
        why.contains("simulated") && why.contains(machine.socket().to_str().unwrap()),
        "{why}"
    );
    eventually("a collector reads", || is_own(&ana));
    drop((simulated, ana));

    // Servers whose options name another source or disable joining read the driver themselves.
    let _service = machine.service(&[]);
    let library = machine.fake.path("libnvidia-ml.so.1");
    let another = machine.fake.path("another.so");
    fs::copy(library, &another).unwrap();
    for arguments in [
        &["--no-join"][..],
        &["--join", ""],
        &["--nvml-lib", another.to_str().unwrap()],
    ] {
        let alone = machine.of_ana(arguments);
        eventually("a collector reads", || {
            is_own(&alone) && alone.collector().is_some()
        });
    }
}

#[test]
fn a_socket_that_answers_nonsense_costs_nobody_their_readings() {
    let machine = Machine::new();
    let socket = machine.socket();
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, Permissions::from_mode(0o666)).unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _: std::io::Result<()> =
                UnixStream::write_all(&mut stream, b"SSH-2.0-OpenSSH_9.7\r\n");
        }
    });
    let mut ana = machine.of_ana(&[]);
    eventually("a collector reads", || is_own(&ana));
    let why = (0..3)
        .map(|_| ana.next_message())
        .find(|line| line.contains("not joining"));
    assert!(why.is_some());
}

#[test]
fn a_server_of_another_pid_namespace_where_numbers_mean_other_processes_is_not_joined() {
    if !geteuid().is_root() {
        return;
    }
    let machine = Machine::new();
    let service = machine.service(&[]);
    eventually("it has a sample", || service.get("/readyz").status == 200);
    let inner = machine.command_of_ana(&[]);
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
    eventually("a collector reads", || is_own(&ana));
}

/// Returns the processor time of all threads of a process in nanoseconds.
fn used_ns(pid: u32) -> u64 {
    let of =
        |task: fs::DirEntry| fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks
        .filter_map(|task| of(task).split(' ').next()?.parse::<u64>().ok())
        .sum()
}

#[test]
fn a_server_that_has_joined_costs_less_than_one_with_a_collector() {
    let machine = Machine::new();
    fs::write(machine.fake.path("scenario.toml"), "gpus = 8").unwrap();
    let service = machine.service(&[]);
    let (joined, alone) = (
        machine.of_ana(&[]),
        machine.of_ana(&["--no-join", "--no-control"]),
    );
    eventually("both read", || {
        is_joined(&joined) && is_own(&alone) && service.get("/readyz").status == 200
    });
    let used = |server: &Server| used_ns(server.child.id()) + server.collector().map_or(0, used_ns);
    // The work of the start is not measured.
    sleep(Duration::from_secs(3));
    let before = [used(&joined), used(&alone)];
    sleep(MEASURED);
    let cost = [used(&joined) - before[0], used(&alone) - before[1]];
    let percent = cost.map(|ns| ns as f64 / 1e7 / MEASURED.as_secs_f64());
    println!(
        "with 8 GPUs at 1 Hz, joined {:.2} % and alone {:.2} % of a processor",
        percent[0], percent[1]
    );
    assert!(cost[0] * 2 < cost[1], "{percent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_of_the_service_are_told_to_the_clients_of_those_who_have_joined_it() {
    let machine = Machine::new();
    let rule = "[[rule]]\nname = \"memory\"\nfield = \"memory.total_bytes\"\nabove = \"1 MiB\"\n";
    let [alerts, settings] = ["alerts.toml", "service.toml"].map(|name| machine.fake.path(name));
    fs::write(&alerts, rule).unwrap();
    fs::write(&settings, format!("[serve]\nalerts = {alerts:?}\n")).unwrap();
    let _service = machine.service(&["--config", settings.to_str().unwrap()]);
    let ana = machine.of_ana(&[]);
    eventually("she has joined", || {
        ana.get("/readyz").body.contains("joined")
    });
    let mut stream = ana.stream().await;
    let told = |frame: &Value| {
        let firing = if frame["type"] == "hello" {
            &frame["alerts"]
        } else {
            &frame["firing"]
        };
        firing[0]["rule"] == "memory"
    };
    stream.until(told).await;
    assert_eq!(
        ana.get("/api/v1/alerts").json()["rules"],
        json!([]),
        "it evaluates none itself"
    );
}
