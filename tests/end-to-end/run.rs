//! `gpumon run` and `gpumon measure`: the GPU use of commands and processes.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use gpumon_probe::model::now_ms;
use serde_json::{Value, json};

use crate::support::{
    Fake, FakeMachine, PATIENCE, Server, eventually, signal, started, stderr, stdout,
};

const GPUMON: &str = env!("CARGO_BIN_EXE_gpumon");

fn number(of: &Value, path: &str) -> f64 {
    of.pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("{path}: {of}"))
}

fn is_near(value: f64, expected: f64, share: f64) -> bool {
    (value - expected).abs() <= expected * share
}

#[test]
fn a_command_that_computes_gets_a_report() {
    let machine = FakeMachine::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    let load = [
        GPUMON,
        "bench",
        "h2d-pinned",
        "--size",
        "16MiB",
        "--backend",
        "cuda",
    ];
    let report = machine.nvml.path("cost.json");
    let run = [
        &[
            "run",
            "--name",
            "copies",
            "--json",
            report.to_str().unwrap(),
            "--",
        ][..],
        &load,
    ]
    .concat();
    let output = machine.gpumon(&run).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("h2d-pinned"),
        "the output is the command's own: {}",
        stdout(&output)
    );
    let cost: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(
        (&cost["version"], &cost["name"], &cost["shared"]),
        (&json!(1), &json!("copies"), &json!(false)),
        "{cost}"
    );
    assert_eq!(
        (&cost["gpus"][0]["index"], &cost["lost"]),
        (&json!(0), &json!([])),
        "{cost}"
    );
    assert!(
        number(&cost, "/peak_memory_bytes") > 16e6 && number(&cost, "/gpu_s") > 0.0,
        "{cost}"
    );
    assert!(number(&cost, "/gpus/0/pcie_rx_bytes") > 1e6, "{cost}");
    let joules = &cost["energy_joules"];
    assert!(
        number(joules, "/least") > 0.0 && number(joules, "/most") >= number(joules, "/estimate"),
        "{cost}"
    );

    let shown = machine
        .gpumon(&[&["run", "--"][..], &load].concat())
        .output()
        .unwrap();
    assert!(
        stderr(&shown).contains("GPU time") && stderr(&shown).contains("Peak memory"),
        "{}",
        stderr(&shown)
    );
}

#[test]
fn exit_codes_and_signals_are_the_commands_own() {
    let fake = Fake::new("gpus = 1");
    let sh = |script: &str| fake.gpumon(&["run", "--", "sh", "-c", script]);
    assert_eq!(sh("exit 7").output().unwrap().status.code(), Some(7));
    assert_eq!(
        sh("kill -KILL $$").output().unwrap().status.signal(),
        Some(9)
    );
    assert_eq!(
        sh("kill -40 $$").output().unwrap().status.code(),
        Some(168),
        "a signal without a name"
    );
    let mut echo = sh("cat; echo done >&2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    echo.stdin.take().unwrap().write_all(b"through").unwrap();
    assert_eq!(stdout(&echo.wait_with_output().unwrap()), "through");
    let trap = "trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = sh(trap).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    signal("-TERM", child.id());
    assert_eq!(
        (lines.next().unwrap().unwrap(), child.wait().unwrap().code()),
        ("told".to_owned(), Some(3))
    );
    let gpumon = sh("kill -HUP $$; echo alive");
    let words: Vec<_> = gpumon
        .get_args()
        .map(|word| word.to_str().unwrap().to_owned())
        .collect();
    let mut nohup = Command::new("sh");
    // The end of the command is noticed even if SIGCHLD is ignored.
    nohup
        .args(["-c", "trap '' HUP CHLD; exec \"$0\" \"$@\""])
        .arg(gpumon.get_program())
        .args(words);
    nohup.envs(
        gpumon
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let output = nohup.output().unwrap();
    assert_eq!(
        (stdout(&output), output.status.code()),
        ("alive\n".to_owned(), Some(0)),
        "what is ignored stays so"
    );
    for (command, code, words) in [
        ("no-such-command", 127, "there is no such command"),
        ("/etc", 126, "not executable"),
    ] {
        let output = fake.gpumon(&["run", "--", command]).output().unwrap();
        assert!(
            output.status.code() == Some(code) && stderr(&output).contains(words),
            "{}",
            stderr(&output)
        );
    }
}

/// A short load on the GPU of a fake machine.
const LOAD: [&str; 7] = [
    GPUMON,
    "bench",
    "h2d-pinned",
    "--size",
    "16MiB",
    "--backend",
    "cuda",
];

/// Returns shell code that runs [`LOAD`] after `wrapper` in a process whose parents have ended, and
/// then creates `done`.
fn orphaned(wrapper: &str, done: &std::path::Path) -> String {
    format!(
        "( ( {wrapper} {} >&2; : > {} ) & )",
        LOAD.join(" "),
        done.display()
    )
}

fn wait_for(file: &std::path::Path) -> String {
    format!("while [ ! -e {} ]; do sleep 0.05; done", file.display())
}

#[test]
fn orphaned_worker_of_command_is_measured() {
    let machine = FakeMachine::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    for wrapper in ["", "setsid"] {
        let done = machine.nvml.path(&format!("done{wrapper}"));
        let script = format!("{}; {}", orphaned(wrapper, &done), wait_for(&done));
        let output = machine
            .gpumon(&["run", "--json", "-", "--", "sh", "-c", &script])
            .output()
            .unwrap();
        let cost: Value = serde_json::from_str(&stdout(&output))
            .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
        assert_eq!(
            (cost["gpus"].as_array().unwrap().len(), &cost["lost"]),
            (1, &json!([])),
            "{wrapper}: {cost}"
        );
        assert!(
            number(&cost, "/gpu_s") > 0.0 && number(&cost, "/peak_memory_bytes") > 16e6,
            "{wrapper}: {cost}"
        );
    }
}

#[test]
fn command_with_daemon_ends_at_once() {
    let fake = Fake::new("gpus = 1");
    // Ended orphans do not stay as zombies of gpumon, and gpumon does not wait for a running one.
    let zombies = "cat /proc/[0-9]*/stat 2>/dev/null | grep -c \"^[0-9]* (sleep) Z $PPID \"";
    let script = format!(
        "for one in 1 2 3 4 5; do ( sleep 0.05 & ); done; sleep 1; {zombies}; ( setsid sleep 600 >/dev/null 2>&1 & \
         echo $! ); exit 7"
    );
    let output = fake
        .gpumon(&["run", "--", "sh", "-c", &script])
        .output()
        .unwrap();
    let printed = stdout(&output);
    let [zombies, daemon] = printed.lines().collect::<Vec<_>>()[..] else {
        panic!("{printed}")
    };
    assert_eq!(
        (zombies, output.status.code()),
        ("0", Some(7)),
        "{}",
        stderr(&output)
    );
    let stat = std::fs::read_to_string(format!("/proc/{daemon}/stat")).unwrap();
    signal("-KILL", daemon.parse().unwrap());
    assert!(
        stat.contains("(sleep)") || stat.contains("(setsid)"),
        "the daemon continues: {stat}"
    );
}

#[test]
fn orphaned_worker_of_measured_process_is_found() {
    let machine = FakeMachine::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    // The worker belongs to the leader of its session, as for a kernel. If it has left the session,
    // it belongs to the kernel that its environment names.
    for (wrapper, is_kernel) in [("", false), ("setsid", true)] {
        let [go, done] = ["go", "done"].map(|name| machine.nvml.path(&format!("{name}{wrapper}")));
        let script = format!("{}; {}; sleep 600", wait_for(&go), orphaned(wrapper, &done));
        let mut root = machine.gpumon(&[]);
        let environment: Vec<_> = root
            .get_envs()
            .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
            .collect();
        root = Command::new("setsid");
        root.args(["sh", "-c", &script]).stderr(Stdio::null());
        for (name, value) in environment {
            match value {
                Some(value) => root.env(name, value),
                None => root.env_remove(name),
            };
        }
        if is_kernel {
            root.arg("/run/kernel-ab12.json");
            root.env("JPY_PARENT_PID", std::process::id().to_string())
                .env("JPY_SESSION_NAME", "train.ipynb");
        }
        let mut root = started(root);
        let mut measuring = Measuring::start(machine.gpumon(&["measure"]));
        measuring.send(&json!({ "begin": 1, "pid": root.id() }));
        measuring.ask(&json!({ "id": 1, "snapshot": true }));
        std::fs::write(&go, "").unwrap();
        eventually("the worker has ended", || done.exists());
        measuring.send(&json!({ "end": 1 }));
        let cost = measuring.ask(&json!({ "id": 2, "cost": 1 }))["cost"].clone();
        measuring.end();
        signal("-KILL", root.id());
        root.wait().unwrap();
        assert_eq!(
            (cost["gpus"].as_array().unwrap().len(), &cost["lost"]),
            (1, &json!([])),
            "{wrapper}: {cost}"
        );
        assert!(
            number(&cost, "/peak_memory_bytes") > 16e6,
            "{wrapper}: {cost}"
        );
    }
}

#[test]
fn orphan_of_unknown_origin_is_lost_from_report() {
    let machine = FakeMachine::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    let mut root = sleeper();
    let mut measuring = Measuring::start(machine.gpumon(&["measure"]));
    measuring.send(&json!({ "begin": 1, "pid": root.id() }));
    measuring.ask(&json!({ "id": 1, "snapshot": true }));
    // Start times have a resolution of one second.
    std::thread::sleep(Duration::from_secs(2));
    let done = machine.nvml.path("done");
    let environment = machine.gpumon(&[]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &orphaned("setsid", &done)])
        .stderr(Stdio::null());
    shell.envs(
        environment
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    assert!(shell.status().unwrap().success());
    eventually("the worker has ended", || done.exists());
    measuring.send(&json!({ "end": 1 }));
    let cost = measuring.ask(&json!({ "id": 2, "cost": 1 }))["cost"].clone();
    measuring.end();
    root.kill().unwrap();
    root.wait().unwrap();
    assert_eq!(cost["gpus"], json!([]), "{cost}");
    let lost = cost["lost"][0].as_str().unwrap_or_else(|| panic!("{cost}"));
    assert!(
        lost.contains("not counted: process") && lost.contains("is not known"),
        "{lost}"
    );
}

#[test]
fn a_command_runs_where_there_is_no_driver_and_the_report_says_why_it_has_no_numbers() {
    let fake = Fake::without("gpus = 1", &["nvmlInit_v2"]);
    let output = fake
        .gpumon(&["run", "--", "sleep", "0.5"])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(
        stderr(&output).contains("gpumon: sleep 0.5: 5") && stderr(&output).lines().count() > 1,
        "{}",
        stderr(&output)
    );
}

#[test]
fn marks_of_a_command_are_in_its_report_once_and_on_the_charts_of_a_server() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &["--interval-ms", "200"]);
    let script = "sleep 0.3; echo epoch 1 > $GPUMON_MARKS; echo epoch 2 > $GPUMON_MARKS; sleep 0.5";
    let output = fake
        .gpumon(&["run", "--mark", "--json", "-", "--", "sh", "-c", script])
        .output()
        .unwrap();
    let cost: Value = serde_json::from_str(&stdout(&output))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let marks: Vec<_> = cost["marks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mark| mark["text"].as_str().unwrap())
        .collect();
    assert_eq!(marks, ["epoch 1", "epoch 2"], "{cost}");
    for _ in 0..10 {
        let last = [
            "run",
            "--mark",
            "--json",
            "-",
            "--",
            "sh",
            "-c",
            "echo last > $GPUMON_MARKS",
        ];
        let output = fake.gpumon(&last).output().unwrap();
        assert!(
            stdout(&output).contains(r#""text":"last""#),
            "a mark right before the end: {}",
            stdout(&output)
        );
    }
    eventually("the server knows both", || {
        let events = server.get("/api/v1/history").body;
        events.contains("epoch 1") && events.contains("epoch 2")
    });
}

/// A running `gpumon measure`, with its input and output.
struct Measuring {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Measuring {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (requests, answers) = (
            child.stdin.take().unwrap(),
            BufReader::new(child.stdout.take().unwrap()),
        );
        Self {
            child,
            requests,
            answers,
        }
    }

    fn send(&mut self, request: &Value) {
        writeln!(self.requests, "{request}").unwrap();
    }

    /// Returns the next line that meets this condition.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(
                self.answers.read_line(&mut line).unwrap() > 0,
                "it has ended"
            );
            let line: Value = serde_json::from_str(&line).unwrap();
            if is_it(&line) {
                return line;
            }
        }
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.send(request);
        self.until(|line| line["id"] == request["id"])
    }

    fn end(mut self) {
        drop(self.requests);
        let begun = Instant::now();
        assert!(self.child.wait().unwrap().success());
        assert!(begun.elapsed() < PATIENCE, "it ends with its input");
    }
}

fn sleeper() -> Child {
    let mut sleep = Command::new("sleep");
    sleep.arg("600");
    started(sleep)
}

#[test]
fn processes_are_measured_alone_and_beside_others_also_when_the_server_is_killed() {
    let mut sleepers = [sleeper(), sleeper()];
    let [one, other] = [&sleepers[0], &sleepers[1]].map(Child::id);
    let fake = Fake::new(&format!(
        "[[gpu]]\nindex = 0\npower_watts = 300\n[[gpu]]\nindex = 1\npower_watts = 200\n\
         [[process]]\ngpu = 0\npid = {one}\nmemory = \"2 GiB\"\nsm_percent = 50\n\
         [[process]]\ngpu = 1\npid = {one}\nmemory = \"1 GiB\"\nsm_percent = 30\n\
         [[process]]\ngpu = 1\npid = {other}\nmemory = \"1 GiB\"\nsm_percent = 10\n"
    ));
    let server = Server::over(&fake, &["--interval-ms", "200"]);
    eventually("it is ready", || server.get("/readyz").status == 200);
    let mut measuring = Measuring::start(fake.gpumon(&["measure"]));
    let snapshot = measuring.ask(&json!({ "id": 1, "snapshot": true }));
    assert_eq!(
        snapshot["snapshot"]["sample"]["gpus"]
            .as_array()
            .unwrap()
            .len(),
        2
    );

    let begun_ms = now_ms() as f64;
    measuring.send(&json!({ "begin": 5, "at_ms": begun_ms, "name": "both", "pid": one }));
    std::thread::sleep(Duration::from_secs(2));
    measuring.send(&json!({ "mark": "half" }));
    let so_far = measuring.ask(&json!({ "id": 2, "cost": 5 }))["cost"].clone();
    assert!(
        is_near(number(&so_far, "/duration_s"), 2.0, 0.2),
        "{so_far}"
    );
    std::thread::sleep(Duration::from_secs(2));
    let ended_ms = begun_ms + 4000.0;
    measuring.send(&json!({ "end": 5, "at_ms": ended_ms }));
    let answer = measuring.ask(&json!({ "id": 3, "cost": 5 }));
    let cost = &answer["cost"];
    assert_eq!(
        (number(cost, "/duration_s"), &cost["shared"], &cost["lost"]),
        (4.0, &json!(true), &json!([])),
        "{cost}"
    );
    assert_eq!(
        (
            number(cost, "/peak_memory_bytes"),
            number(cost, "/memory_change_bytes")
        ),
        (3.0 * 1_073_741_824.0, 0.0)
    );
    let alone = &cost["gpus"][0]["energy_joules"];
    assert!(
        is_near(number(alone, "/estimate"), 1200.0, 0.03) && alone["least"] == alone["most"],
        "{cost}"
    );
    assert!(is_near(number(cost, "/gpus/0/held_s"), 4.0, 0.01), "{cost}");
    let shared = &cost["gpus"][1]["energy_joules"];
    assert!(
        is_near(number(shared, "/most"), 800.0, 0.03)
            && number(shared, "/least") < number(shared, "/most"),
        "{cost}"
    );
    assert_eq!(cost["marks"].as_array().unwrap().len(), 1, "{cost}");
    let stored = &answer["stored"];
    assert_eq!(
        (
            number(stored, "/duration_s"),
            stored["gpus"].as_array().unwrap().len()
        ),
        (4.0, 2),
        "{stored}"
    );

    measuring.send(&json!({ "begin": 6, "pid": one }));
    std::thread::sleep(Duration::from_secs(1));
    drop(server);
    measuring.until(|line| {
        line["remark"]
            .as_str()
            .is_some_and(|remark| remark.contains("reading the driver directly"))
    });
    std::thread::sleep(Duration::from_secs(2));
    measuring.send(&json!({ "end": 6 }));
    let cost = measuring.ask(&json!({ "id": 4, "cost": 6 }))["cost"].clone();
    assert!(
        cost["lost"][0]
            .as_str()
            .unwrap()
            .contains("the server has ended"),
        "{cost}"
    );
    let seconds = number(&cost, "/duration_s");
    assert!(
        is_near(
            number(&cost, "/gpus/0/energy_joules/estimate"),
            300.0 * seconds,
            0.1
        ),
        "{cost}"
    );

    measuring.send(&json!({ "forget": 6 }));
    let forgotten = measuring.ask(&json!({ "id": 5, "cost": 6 }));
    assert!(
        forgotten["error"].as_str().unwrap().contains("not known"),
        "{forgotten}"
    );
    measuring.end();
    for sleeper in &mut sleepers {
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}

#[test]
fn history_needs_a_server_and_what_cannot_be_read_is_told() {
    let fake = Fake::new("gpus = 1");
    let mut measuring = Measuring::start(fake.gpumon(&["measure"]));
    let none = measuring.ask(&json!({ "id": 1, "history": {} }));
    assert!(
        none["error"].as_str().unwrap().contains("gpumon serve"),
        "{none}"
    );
    let server = Server::over(&fake, &["--interval-ms", "200"]);
    eventually("it knows something", || {
        let span = measuring
            .ask(&json!({ "id": 2, "history": { "metrics": "power.draw_watts", "points": 100 } }));
        span["history"]["gpus"]
            .as_array()
            .is_some_and(|gpus| !gpus.is_empty())
    });
    let wrong = measuring.ask(&json!({ "id": 3, "history": { "metrics": "power.watts" } }));
    assert!(
        wrong["error"]
            .as_str()
            .unwrap()
            .contains("power.draw_watts"),
        "{wrong}"
    );
    measuring.send(&json!({ "began": 1 }));
    let told = measuring.until(|line| line["remark"].is_string());
    assert!(
        told["remark"]
            .as_str()
            .unwrap()
            .contains("unknown field `began`"),
        "{told}"
    );
    measuring.send(&json!({ "stream": 200 }));
    let [first, second] = [0; 2]
        .map(|_| measuring.until(|line| line["sample"].is_object())["sample"]["at_ms"].clone());
    let apart = second.as_u64().unwrap() - first.as_u64().unwrap();
    assert!((150..=450).contains(&apart), "{apart} ms");
    measuring.end();
    drop(server);
}
