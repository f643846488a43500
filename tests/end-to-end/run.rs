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
    FakeMachine, FakeNvml, Server, TEST_TIMEOUT, send_signal, start_command, stderr_text,
    stdout_text, wait_for_condition,
};

const GPUMON: &str = env!("CARGO_BIN_EXE_gpumon");

fn read_number(of: &Value, path: &str) -> f64 {
    of.pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("{path}: {of}"))
}

fn is_near(value: f64, expected: f64, share: f64) -> bool {
    (value - expected).abs() <= expected * share
}

#[test]
fn run_reports_gpu_use_of_command() {
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
    let output = machine.gpumon_command(&run).output().unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert!(
        stdout_text(&output).contains("h2d-pinned"),
        "the output is that of the command: {}",
        stdout_text(&output)
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
        read_number(&cost, "/peak_memory_bytes") > 16e6 && read_number(&cost, "/gpu_s") > 0.0,
        "{cost}"
    );
    assert!(read_number(&cost, "/gpus/0/pcie_rx_bytes") > 1e6, "{cost}");
    let joules = &cost["energy_joules"];
    assert!(
        read_number(joules, "/least") > 0.0
            && read_number(joules, "/most") >= read_number(joules, "/estimate"),
        "{cost}"
    );

    let shown = machine
        .gpumon_command(&[&["run", "--"][..], &load].concat())
        .output()
        .unwrap();
    assert!(
        stderr_text(&shown).contains("GPU time") && stderr_text(&shown).contains("Peak memory"),
        "{}",
        stderr_text(&shown)
    );
}

#[test]
fn run_reports_what_limited_each_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "\
        [[gpu]]\nindex = 0\nutilization_percent = 30\ngraphics_percent = 30\nsm_percent = 28\n\
        tensor_percent = 27\npcie_per_second = \"0 B\"\n\
        [[gpu]]\nindex = 1\nutilization_percent = 100\ngraphics_percent = 100\nsm_percent = 95\n\
        tensor_percent = 92\npower_watts = 300\n\
        [[process]]\ngpu = 0\npid = PID\nmemory = \"4 GiB\"\nsm_percent = 28\ncpu_percent = 100\n\
        [[process]]\ngpu = 1\npid = PID\nmemory = \"4 GiB\"\nsm_percent = 95\ncpu_percent = 100\n";
    std::fs::write(folder.path().join("template.toml"), scenario).unwrap();
    // The simulated processes have the PID of gpumon, which is the root of the measured tree.
    let script = "sed s/PID/$$/ template.toml > scenario.toml; exec \"$0\" \"$@\"";
    let run = |arguments: &[&str]| {
        let output = Command::new("sh")
            .args(["-c", script, GPUMON, "--source", "sim:scenario.toml", "run"])
            .args(arguments)
            .args(["--", "sleep", "3"])
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
        output
    };
    let report = stderr_text(&run(&[]));
    for words in [
        "\nGPU 0 limited by: host-bound ",
        "\nGPU 0: A process uses 100 % of a core while the GPU waits. ",
        "\nGPU 1 limited by: tensor-bound ",
        "\nGPU 1: Tensor cores are busy 92 % of the time. ",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
    let cost: Value = serde_json::from_str(&stdout_text(&run(&["--json", "-"]))).unwrap();
    let causes = ["/gpus/0", "/gpus/1", ""].map(|part| {
        cost.pointer(&format!("{part}/limits/shares/0/cause"))
            .unwrap_or_else(|| panic!("{cost}"))
    });
    assert_eq!(causes, ["host", "tensor", "tensor"], "{cost}");
}

#[test]
fn exit_code_and_signals_come_from_command() {
    let fake = FakeNvml::new("gpus = 1");
    let sh = |script: &str| fake.gpumon_command(&["run", "--", "sh", "-c", script]);
    assert_eq!(sh("exit 7").output().unwrap().status.code(), Some(7));
    assert_eq!(
        sh("kill -KILL $$").output().unwrap().status.signal(),
        Some(9)
    );
    assert_eq!(
        sh("kill -40 $$").output().unwrap().status.code(),
        Some(168),
        "a signal without a name has an exit code, too"
    );
    let mut echo = sh("cat; echo done >&2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    echo.stdin.take().unwrap().write_all(b"through").unwrap();
    assert_eq!(stdout_text(&echo.wait_with_output().unwrap()), "through");
    let trap = "trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = sh(trap).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    send_signal("-TERM", child.id());
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
    // This shell starts gpumon with SIGHUP and SIGCHLD ignored. gpumon must notice the end of its
    // command even if it ignores SIGCHLD.
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
        (stdout_text(&output), output.status.code()),
        ("alive\n".to_owned(), Some(0)),
        "an ignored signal is still ignored by the command"
    );
    for (command, code, words) in [
        ("no-such-command", 127, "there is no such command"),
        ("/etc", 126, "not executable"),
    ] {
        let output = fake
            .gpumon_command(&["run", "--", command])
            .output()
            .unwrap();
        assert!(
            output.status.code() == Some(code) && stderr_text(&output).contains(words),
            "{}",
            stderr_text(&output)
        );
    }
}

/// A short load on the GPU of a fake machine.
const LOAD_COMMAND: [&str; 7] = [
    GPUMON,
    "bench",
    "h2d-pinned",
    "--size",
    "16MiB",
    "--backend",
    "cuda",
];

/// Returns shell code that runs [`LOAD_COMMAND`] with the prefix `wrapper` in a process whose
/// parents have ended, and then creates `done`.
fn make_orphaned_load_script(wrapper: &str, done: &std::path::Path) -> String {
    format!(
        "( ( {wrapper} {} >&2; : > {} ) & )",
        LOAD_COMMAND.join(" "),
        done.display()
    )
}

fn make_wait_script(file: &std::path::Path) -> String {
    format!("while [ ! -e {} ]; do sleep 0.05; done", file.display())
}

#[test]
fn orphaned_worker_of_command_is_measured() {
    let machine = FakeMachine::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    for wrapper in ["", "setsid"] {
        let done = machine.nvml.path(&format!("done{wrapper}"));
        let script = format!(
            "{}; {}",
            make_orphaned_load_script(wrapper, &done),
            make_wait_script(&done)
        );
        let output = machine
            .gpumon_command(&["run", "--json", "-", "--", "sh", "-c", &script])
            .output()
            .unwrap();
        let cost: Value = serde_json::from_str(&stdout_text(&output))
            .unwrap_or_else(|error| panic!("{error}: {}", stderr_text(&output)));
        assert_eq!(
            (cost["gpus"].as_array().unwrap().len(), &cost["lost"]),
            (1, &json!([])),
            "{wrapper}: {cost}"
        );
        assert!(
            read_number(&cost, "/gpu_s") > 0.0 && read_number(&cost, "/peak_memory_bytes") > 16e6,
            "{wrapper}: {cost}"
        );
    }
}

#[test]
fn run_does_not_wait_for_daemon_of_command() {
    let fake = FakeNvml::new("gpus = 1");
    // Orphans that have ended must not stay as zombies of gpumon, and gpumon must not wait for an
    // orphan that is still running.
    let zombies = "cat /proc/[0-9]*/stat 2>/dev/null | grep -c \"^[0-9]* (sleep) Z $PPID \"";
    let script = format!(
        "for one in 1 2 3 4 5; do ( sleep 0.05 & ); done; sleep 1; {zombies}; ( setsid sleep 600 \
         >/dev/null 2>&1 & echo $! ); exit 7"
    );
    let output = fake
        .gpumon_command(&["run", "--", "sh", "-c", &script])
        .output()
        .unwrap();
    let printed = stdout_text(&output);
    let [zombies, daemon] = printed.lines().collect::<Vec<_>>()[..] else {
        panic!("{printed}")
    };
    assert_eq!(
        (zombies, output.status.code()),
        ("0", Some(7)),
        "{}",
        stderr_text(&output)
    );
    let stat = std::fs::read_to_string(format!("/proc/{daemon}/stat")).unwrap();
    send_signal("-KILL", daemon.parse().unwrap());
    assert!(
        stat.contains("(sleep)") || stat.contains("(setsid)"),
        "the daemon must still be running: {stat}"
    );
}

#[test]
fn orphaned_worker_of_measured_process_is_found() {
    let machine = FakeMachine::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    // In the first case, the worker is found through its session, whose leader is the measured
    // process. In the second case, the measured process takes the role of a Jupyter kernel. The
    // worker has left the session, and is found because its environment names the same Jupyter
    // server and notebook as the kernel's.
    for (wrapper, is_kernel) in [("", false), ("setsid", true)] {
        let [go, done] = ["go", "done"].map(|name| machine.nvml.path(&format!("{name}{wrapper}")));
        let script = format!(
            "{}; {}; sleep 600",
            make_wait_script(&go),
            make_orphaned_load_script(wrapper, &done)
        );
        let mut root = machine.gpumon_command(&[]);
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
        let mut root = start_command(root);
        let mut measuring = MeasureProcess::start(machine.gpumon_command(&["measure"]));
        measuring.send(&json!({ "begin": 1, "pid": root.id() }));
        measuring.send_and_receive(&json!({ "id": 1, "snapshot": true }));
        std::fs::write(&go, "").unwrap();
        wait_for_condition("the worker has ended", || done.exists());
        measuring.send(&json!({ "end": 1 }));
        let cost = measuring.send_and_receive(&json!({ "id": 2, "cost": 1 }))["cost"].clone();
        measuring.assert_ends_soon();
        send_signal("-KILL", root.id());
        root.wait().unwrap();
        assert_eq!(
            (cost["gpus"].as_array().unwrap().len(), &cost["lost"]),
            (1, &json!([])),
            "{wrapper}: {cost}"
        );
        assert!(
            read_number(&cost, "/peak_memory_bytes") > 16e6,
            "{wrapper}: {cost}"
        );
    }
}

#[test]
fn orphan_of_unknown_origin_is_missing_from_report() {
    let machine = FakeMachine::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    let mut root = start_sleeper();
    let mut measuring = MeasureProcess::start(machine.gpumon_command(&["measure"]));
    measuring.send(&json!({ "begin": 1, "pid": root.id() }));
    measuring.send_and_receive(&json!({ "id": 1, "snapshot": true }));
    // Start times have a resolution of one second. The pause makes sure that the load's process has
    // a later start time than the other processes.
    std::thread::sleep(Duration::from_secs(2));
    let done = machine.nvml.path("done");
    let environment = machine.gpumon_command(&[]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &make_orphaned_load_script("setsid", &done)])
        .stderr(Stdio::null());
    shell.envs(
        environment
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    assert!(shell.status().unwrap().success());
    wait_for_condition("the worker has ended", || done.exists());
    measuring.send(&json!({ "end": 1 }));
    let cost = measuring.send_and_receive(&json!({ "id": 2, "cost": 1 }))["cost"].clone();
    measuring.assert_ends_soon();
    root.kill().unwrap();
    root.wait().unwrap();
    assert_eq!(cost["gpus"], json!([]), "{cost}");
    let lost = cost["lost"][0].as_str().unwrap_or_else(|| panic!("{cost}"));
    assert!(
        lost.contains("not counted: process") && lost.ends_with(" is an ancestor is unknown"),
        "{lost}"
    );
}

#[test]
fn command_without_driver_runs_and_report_has_reason() {
    let fake = FakeNvml::without_functions("gpus = 1", &["nvmlInit_v2"]);
    let output = fake
        .gpumon_command(&["run", "--", "sleep", "0.5"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let report = stderr_text(&output);
    let (_, cost) = report
        .split_once("gpumon: sleep 0.5: ")
        .unwrap_or_else(|| panic!("{report}"));
    let (duration, reason) = cost.split_once('\n').unwrap();
    // On a busy machine, the command may take a second or more.
    let milliseconds = duration.strip_suffix(" ms").map(str::parse::<u32>);
    assert!(
        milliseconds.is_none_or(|number| number.unwrap() >= 500),
        "{report}"
    );
    assert!(reason.contains("cannot load NVIDIA's"), "{report}");
}

#[test]
fn marks_of_command_are_in_report_and_charts() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    let script = "sleep 0.3; echo epoch 1 > $GPUMON_MARKS; echo epoch 2 > $GPUMON_MARKS; sleep 0.5";
    let output = fake
        .gpumon_command(&["run", "--mark", "--json", "-", "--", "sh", "-c", script])
        .output()
        .unwrap();
    let cost: Value = serde_json::from_str(&stdout_text(&output))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr_text(&output)));
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
        let output = fake.gpumon_command(&last).output().unwrap();
        assert!(
            stdout_text(&output).contains(r#""text":"last""#),
            "a mark just before the end is in the report: {}",
            stdout_text(&output)
        );
    }
    wait_for_condition("the server has both marks", || {
        let events = server.get("/api/v1/history").body;
        events.contains("epoch 1") && events.contains("epoch 2")
    });
}

/// A running `gpumon measure`, with its input and output.
struct MeasureProcess {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl MeasureProcess {
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
    fn read_until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(
                self.answers.read_line(&mut line).unwrap() > 0,
                "the process has ended"
            );
            let line: Value = serde_json::from_str(&line).unwrap();
            if is_it(&line) {
                return line;
            }
        }
    }

    fn send_and_receive(&mut self, request: &Value) -> Value {
        self.send(request);
        self.read_until(|line| line["id"] == request["id"])
    }

    fn assert_ends_soon(mut self) {
        drop(self.requests);
        let begun = Instant::now();
        assert!(self.child.wait().unwrap().success());
        assert!(
            begun.elapsed() < TEST_TIMEOUT,
            "the process must end soon after its input is closed"
        );
    }
}

fn start_sleeper() -> Child {
    let mut sleep = Command::new("sleep");
    sleep.arg("600");
    start_command(sleep)
}

#[test]
fn measurement_continues_after_killed_server() {
    let mut sleepers = [start_sleeper(), start_sleeper()];
    let [one, other] = [&sleepers[0], &sleepers[1]].map(Child::id);
    let fake = FakeNvml::new(&format!(
        "[[gpu]]\nindex = 0\npower_watts = 300\n[[gpu]]\nindex = 1\npower_watts = 200\n\
         [[process]]\ngpu = 0\npid = {one}\nmemory = \"2 GiB\"\nsm_percent = 50\n\
         [[process]]\ngpu = 1\npid = {one}\nmemory = \"1 GiB\"\nsm_percent = 30\n\
         [[process]]\ngpu = 1\npid = {other}\nmemory = \"1 GiB\"\nsm_percent = 10\n"
    ));
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    let mut measuring = MeasureProcess::start(fake.gpumon_command(&["measure"]));
    let snapshot = measuring.send_and_receive(&json!({ "id": 1, "snapshot": true }));
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
    let so_far = measuring.send_and_receive(&json!({ "id": 2, "cost": 5 }))["cost"].clone();
    assert!(
        is_near(read_number(&so_far, "/duration_s"), 2.0, 0.2),
        "{so_far}"
    );
    std::thread::sleep(Duration::from_secs(2));
    let ended_ms = begun_ms + 4000.0;
    measuring.send(&json!({ "end": 5, "at_ms": ended_ms }));
    let answer = measuring.send_and_receive(&json!({ "id": 3, "cost": 5 }));
    let cost = &answer["cost"];
    assert_eq!(
        (
            read_number(cost, "/duration_s"),
            &cost["shared"],
            &cost["lost"]
        ),
        (4.0, &json!(true), &json!([])),
        "{cost}"
    );
    assert_eq!(
        (
            read_number(cost, "/peak_memory_bytes"),
            read_number(cost, "/memory_change_bytes")
        ),
        (3.0 * 1_073_741_824.0, 0.0)
    );
    let alone = &cost["gpus"][0]["energy_joules"];
    assert!(
        is_near(read_number(alone, "/estimate"), 1200.0, 0.03) && alone["least"] == alone["most"],
        "{cost}"
    );
    assert!(
        is_near(read_number(cost, "/gpus/0/held_s"), 4.0, 0.01),
        "{cost}"
    );
    let shared = &cost["gpus"][1]["energy_joules"];
    assert!(
        is_near(read_number(shared, "/most"), 800.0, 0.03)
            && read_number(shared, "/least") < read_number(shared, "/most"),
        "{cost}"
    );
    assert_eq!(cost["marks"].as_array().unwrap().len(), 1, "{cost}");
    let stored = &answer["stored"];
    assert_eq!(
        (
            read_number(stored, "/duration_s"),
            stored["gpus"].as_array().unwrap().len()
        ),
        (4.0, 2),
        "{stored}"
    );

    measuring.send(&json!({ "begin": 6, "pid": one }));
    std::thread::sleep(Duration::from_secs(1));
    drop(server);
    measuring.read_until(|line| {
        line["remark"]
            .as_str()
            .is_some_and(|remark| remark.contains("reading the driver directly"))
    });
    std::thread::sleep(Duration::from_secs(2));
    measuring.send(&json!({ "end": 6 }));
    let cost = measuring.send_and_receive(&json!({ "id": 4, "cost": 6 }))["cost"].clone();
    assert!(
        cost["lost"][0]
            .as_str()
            .unwrap()
            .contains("the server has ended"),
        "{cost}"
    );
    let seconds = read_number(&cost, "/duration_s");
    assert!(
        is_near(
            read_number(&cost, "/gpus/0/energy_joules/estimate"),
            300.0 * seconds,
            0.1
        ),
        "{cost}"
    );

    measuring.send(&json!({ "forget": 6 }));
    let forgotten = measuring.send_and_receive(&json!({ "id": 5, "cost": 6 }));
    assert!(
        forgotten["error"]
            .as_str()
            .unwrap()
            .contains("measurement 6 is unknown"),
        "{forgotten}"
    );
    measuring.assert_ends_soon();
    for sleeper in &mut sleepers {
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}

#[test]
fn history_without_server_is_refused_with_reason() {
    let fake = FakeNvml::new("gpus = 1");
    let mut measuring = MeasureProcess::start(fake.gpumon_command(&["measure"]));
    let none = measuring.send_and_receive(&json!({ "id": 1, "history": {} }));
    assert!(
        none["error"].as_str().unwrap().contains("gpumon serve"),
        "{none}"
    );
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    wait_for_condition("the server has a history", || {
        let span = measuring.send_and_receive(
            &json!({ "id": 2, "history": { "metrics": "power.draw_watts", "points": 100 } }),
        );
        span["history"]["gpus"]
            .as_array()
            .is_some_and(|gpus| !gpus.is_empty())
    });
    let wrong =
        measuring.send_and_receive(&json!({ "id": 3, "history": { "metrics": "power.watts" } }));
    assert!(
        wrong["error"]
            .as_str()
            .unwrap()
            .contains("power.draw_watts"),
        "{wrong}"
    );
    measuring.send(&json!({ "began": 1 }));
    let reported = measuring.read_until(|line| line["remark"].is_string());
    assert!(
        reported["remark"]
            .as_str()
            .unwrap()
            .contains("unknown field `began`"),
        "{reported}"
    );
    measuring.send(&json!({ "stream": 200 }));
    let [first, second] = [0; 2].map(|_| {
        measuring.read_until(|line| line["sample"].is_object())["sample"]["at_ms"].clone()
    });
    let apart = second.as_u64().unwrap() - first.as_u64().unwrap();
    assert!((150..=450).contains(&apart), "{apart} ms");
    measuring.assert_ends_soon();
    drop(server);
}
