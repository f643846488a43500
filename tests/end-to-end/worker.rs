//! The worker process: one at a time on each GPU. It does not disturb other users, and never
//! outlives its parent.

use std::{
    fs,
    io::{Read, Write},
    os::unix::{net::UnixListener, process::CommandExt},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::{
    Fake, FakeCuda, FakeMachine, PATIENCE, eventually, json_lines, lines_of, refused, refused_with,
    signal, started, stderr, stdout,
};

/// A delay per kernel that lets a test observe the run.
const SLOW: &str = "kernel_ms = 200";
const UUID: &str = "GPU-00000000-0000-0000-0000-000000000000";

/// Returns the PID of the process that has locked the only GPU.
fn worker_of(cuda: &FakeCuda) -> Option<u32> {
    fs::read_to_string(cuda.folder().join(format!("gpumon-run-{UUID}.lock")))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Starts a long run. Returns it, and the PID of its worker as soon as that has started to work.
fn long_run(cuda: &FakeCuda, arguments: &[&str]) -> (Child, u32) {
    let child = started(
        cuda.gpumon(
            &[
                &["bench", "copy", "scale", "add", "--size", "1000"],
                arguments,
            ]
            .concat(),
        ),
    );
    eventually("the worker works", || {
        cuda.counters()["kernels"].as_u64() > Some(2)
    });
    (child, worker_of(cuda).unwrap())
}

/// Returns whether the process is gone or a zombie.
fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_none_or(|rest| rest.is_empty() || rest.trim_start().starts_with('Z'))
}

#[test]
fn a_second_run_on_a_gpu_is_refused_with_the_pid_of_the_first() {
    let cuda = FakeCuda::new(SLOW);
    let (mut first, worker) = long_run(&cuda, &[]);
    let second = [
        &["bench", "copy", "--quick", "--size", "100"][..],
        &["burn", "--mem", "0.2%", "--time", "1s"],
    ];
    for command in second {
        let words = [&format!("process {worker} already runs"), "GPU 0"];
        assert_eq!(refused_with(cuda.gpumon(command), 5, &words), "");
    }
    // The CPU is not locked.
    let on_cpu = cuda
        .gpumon(&[
            "bench",
            "copy",
            "--backend",
            "cpu",
            "--quick",
            "--size",
            "100",
        ])
        .output()
        .unwrap();
    assert_eq!(on_cpu.status.code(), Some(0), "{}", stderr(&on_cpu));
    signal("-INT", first.id());
    assert_eq!(first.wait().unwrap().code(), Some(130));
    assert!(has_ended(worker));
    let next = cuda
        .gpumon(&["burn", "--mem", "0.2%", "--time", "1s"])
        .output()
        .unwrap();
    assert_eq!(
        next.status.code(),
        Some(0),
        "the lock ends with its process: {}",
        stderr(&next)
    );
}

#[test]
fn a_lock_that_is_a_link_is_not_followed() {
    let cuda = FakeCuda::new("");
    let precious = cuda.folder().join("precious");
    fs::write(&precious, "text").unwrap();
    std::os::unix::fs::symlink(
        &precious,
        cuda.folder().join(format!("gpumon-run-{UUID}.lock")),
    )
    .unwrap();
    refused(
        cuda.gpumon(&["bench", "copy", "--quick", "--size", "100"]),
        1,
        "remove it",
    );
    assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
}

#[test]
fn a_worker_that_is_killed_is_told_and_leaves_nothing() {
    let cuda = FakeCuda::new(SLOW);
    let (first, worker) = long_run(&cuda, &["--json"]);
    signal("-KILL", worker);
    let output = first.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(
        (output.status.code(), said.lines().count()),
        (Some(1), 1),
        "{said}"
    );
    assert!(
        said.contains("signal 9") && said.contains("gpumon doctor"),
        "{said}"
    );
}

#[test]
fn the_process_that_works_is_listed_as_what_was_typed() {
    let machine = FakeMachine::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    for words in [
        &["burn", "--mem", "0.2%", "--time", "1m"][..],
        &["bench", "copy", "matmul", "--size", "1000"],
    ] {
        let mut run = machine
            .gpumon(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let names = words
            .iter()
            .take_while(|word| !word.starts_with('-'))
            .copied()
            .collect::<Vec<_>>()
            .join(" ");
        let command = format!("gpumon {names}");
        eventually("it is in the table", || {
            let table = stdout(
                &machine
                    .with_state(machine.nvml.gpumon(&[]))
                    .output()
                    .unwrap(),
            );
            table
                .lines()
                .any(|line| line.contains(&command) && !line.contains("work"))
        });
        // The worker ends before this process, and releases the lock that the next run takes.
        signal("-INT", run.id());
        run.wait().unwrap();
    }
}

#[test]
fn a_worker_ends_with_its_parent() {
    let cuda = FakeCuda::new(SLOW);
    let (mut first, worker) = long_run(&cuda, &[]);
    assert!(!has_ended(worker));
    // A stopped worker cannot notice that its parent has ended.
    signal("-STOP", worker);
    first.kill().unwrap();
    first.wait().unwrap();
    eventually("the worker is gone", || has_ended(worker));
    let late = cuda
        .gpumon(&["work", "--parent", "1", r#"{"kind":"bench"}"#])
        .output()
        .unwrap();
    assert!(
        late.status.code() == Some(1) && stderr(&late).contains("process 1"),
        "{}",
        stderr(&late)
    );
}

#[test]
fn work_that_takes_too_long_is_ended_and_so_is_what_does_not_obey() {
    for is_stopped in [false, true] {
        let cuda = FakeCuda::new(SLOW);
        let begun = Instant::now();
        let (first, worker) = long_run(&cuda, &["--time-limit", "2s"]);
        if is_stopped {
            signal("-STOP", worker);
        }
        let output = first.wait_with_output().unwrap();
        let (said, took) = (stderr(&output), begun.elapsed());
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("time limit of 2s") && said.contains("--time-limit"),
            "{said}"
        );
        assert_eq!(said.contains("was killed"), is_stopped, "{said}");
        assert!(
            !is_stopped || took > Duration::from_secs(10),
            "it had time to obey: {took:?}"
        );
        assert!(has_ended(worker));
        if !is_stopped {
            assert_eq!(cuda.counters()["held_bytes"], 0, "it gave its memory back");
        }
    }
}

/// A process of another user, which is killed when this value is dropped.
struct Stranger(Option<Child>);

impl Stranger {
    fn new() -> Self {
        // Only root can start a process of another user. Other users use root's first process
        // instead.
        Self(Command::new("sleep").arg("600").uid(65_534).spawn().ok())
    }

    fn pid(&self) -> u32 {
        self.0.as_ref().map_or(1, Child::id)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns both libraries with the same GPU, which these processes use.
fn occupied(processes: &str) -> (Fake, FakeCuda) {
    let nvml = Fake::new(&format!(
        "[[gpu]]\nindex = 0\nprofile = \"idle\"\n{processes}"
    ));
    let uuid = nvml.json()["inventory"]["gpus"][0]["uuid"]
        .as_str()
        .unwrap()
        .to_owned();
    let cuda = FakeCuda::new(&format!("uuids = [\"{uuid}\"]\nkernel_ms = 20"));
    (nvml, cuda)
}

#[test]
fn a_gpu_on_which_another_user_computes_is_left_alone_unless_told_to_share() {
    let stranger = Stranger::new();
    let pid = stranger.pid();
    let (nvml, cuda) = occupied(&format!(
        "[[process]]\ngpu = 0\npid = {pid}\nmemory = \"1 GiB\""
    ));
    let alone = [
        &["bench", "copy", "--quick", "--size", "100"][..],
        &["burn", "--mem", "0.2%", "--time", "1s"],
    ];
    for command in alone {
        refused_with(
            cuda.gpumon_with(&nvml, command),
            5,
            &[&pid.to_string(), "--share"],
        );
        assert!(
            cuda.counters().is_null(),
            "nothing was begun: {}",
            cuda.counters()
        );
    }
    // With `--share`, the limit is a quarter of the 2 GiB.
    let shared = ["bench", "copy", "--share", "--quick", "--json", "--size"];
    let (code, lines, said) =
        lines_of(cuda.gpumon_with(&nvml, &[&shared[..], &["300MiB"]].concat()));
    assert!(
        code == Some(5) && said.contains("1.5 GiB stay free for others"),
        "{code:?} {lines:?} {said}"
    );
    let (code, lines, said) = lines_of(cuda.gpumon_with(&nvml, &[&shared[..], &["1MiB"]].concat()));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(lines[0]["load"]["others"][0]["pid"], pid, "{}", lines[0]);
    let table = cuda
        .gpumon_with(
            &nvml,
            &["bench", "copy", "--share", "--quick", "--size", "1MiB"],
        )
        .output()
        .unwrap();
    assert!(
        stdout(&table).contains("shared with "),
        "{}",
        stdout(&table)
    );
}

#[test]
fn own_processes_and_those_that_only_draw_are_in_nobodys_way() {
    let stranger = Stranger::new();
    let (own, other) = (std::process::id(), stranger.pid());
    let (nvml, cuda) = occupied(&format!(
        "[[process]]\ngpu = 0\npid = {own}\nmemory = \"1 GiB\"\n[[process]]\ngpu = 0\npid = {other}\nkind = \"graphics\""
    ));
    let (code, lines, said) = lines_of(cuda.gpumon_with(
        &nvml,
        &["bench", "copy", "--quick", "--json", "--size", "1000"],
    ));
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let others = lines[0]["load"]["others"].as_array().unwrap();
    assert_eq!(
        (others.len(), &others[0]["pid"]),
        (1, &own.into()),
        "{}",
        lines[0]
    );
}

#[test]
fn energy_clocks_and_power_stand_beside_the_times() {
    let (nvml, cuda) = occupied("");
    let (code, lines, said) =
        lines_of(cuda.gpumon_with(&nvml, &["bench", "copy", "--json", "--size", "1000"]));
    assert_eq!(code, Some(0), "{said}");
    let load = &lines[0]["load"];
    let environment = &lines[0]["environment"];
    let seconds = (environment["to_ms"].as_f64().unwrap()
        - environment["from_ms"].as_f64().unwrap())
        / 1000.0;
    let watts = load["joules"].as_f64().unwrap() / seconds;
    let mean = load["watts"]["mean"].as_f64().unwrap();
    assert!(
        (watts - mean).abs() < mean / 2.0,
        "{watts} W by the counter, {mean} W by readings"
    );
    let text = stdout(
        &cuda
            .gpumon_with(&nvml, &["bench", "copy", "--size", "1000"])
            .output()
            .unwrap(),
    );
    assert!(text.contains(" W ") && text.contains(" MHz "), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 120),
        "{text}"
    );
}

#[test]
fn a_job_is_taken_as_json_and_answered_line_by_line() {
    let cuda = FakeCuda::new("");
    let job = r#"{"kind":"bench","ids":["copy"],"size":{"count":1000},"quick":true}"#;
    let mut child = cuda
        .gpumon(&["work", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(job.as_bytes())
        .unwrap();
    let text = stdout(&child.wait_with_output().unwrap());
    let lines = json_lines(&text);
    let said: Vec<_> = lines
        .iter()
        .map(|line| line["report"].as_str().unwrap())
        .collect();
    assert_eq!(
        (
            said[0],
            said[said.len() - 1],
            &lines[said.len() - 1]["code"]
        ),
        ("begun", "ended", &0.into())
    );
    let phases: Vec<_> = lines
        .iter()
        .filter_map(|line| line["phase"].as_str())
        .collect();
    assert_eq!(
        phases,
        [
            "preparing",
            "checking",
            "warming_up",
            "measuring",
            "verifying",
            "giving_back"
        ]
    );
    assert!(
        lines
            .windows(2)
            .all(|pair| pair[0]["at_ms"].as_u64() <= pair[1]["at_ms"].as_u64()),
        "{text}"
    );
    for (job, words) in [
        ("{}", "invalid job"),
        (
            r#"{"kind":"bench","ids":["traid"]}"#,
            "did you mean 'triad'?",
        ),
    ] {
        let output = cuda.gpumon(&["work", job]).output().unwrap();
        let text = format!("{}{}", stdout(&output), stderr(&output));
        assert!(
            output.status.code() == Some(2) && text.contains(words),
            "{text}"
        );
    }
}

#[test]
fn a_server_is_told_of_a_run_and_one_that_does_not_listen_delays_nothing() {
    let (nvml, cuda) = occupied("");
    let listener = UnixListener::bind(nvml.control()).unwrap();
    let server = thread::spawn(move || {
        let mut told = String::new();
        let (mut stream, _) = listener.accept().unwrap();
        // The stream ends with the request, because the client does not wait for the answer.
        stream.read_to_string(&mut told).unwrap();
        (listener, told)
    });
    let run = [
        "bench",
        "copy",
        "--quick",
        "--size",
        "1000",
        "--backend",
        "cpu",
    ];
    assert_eq!(
        cuda.gpumon_with(&nvml, &run).status().unwrap().code(),
        Some(0)
    );
    let (_listener, told) = server.join().unwrap();
    let (head, body) = told.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /api/v1/runs/announced HTTP/1.1\r\n")
            && head.contains("\r\nX-Gpumon-Run: "),
        "{head}"
    );
    // The body is chunked: each chunk has its length in hexadecimal digits and then one line.
    let lines: Vec<Value> = body
        .split("\r\n")
        .filter_map(|part| serde_json::from_str(part.trim_end()).ok())
        .collect();
    let reports: Vec<_> = lines
        .iter()
        .filter_map(|line| line["report"].as_str())
        .collect();
    assert_eq!(
        (reports.first(), reports.last()),
        (Some(&"begun"), Some(&"ended")),
        "{told}"
    );
    assert!(
        reports.contains(&"result") && body.ends_with("0\r\n\r\n"),
        "{told}"
    );
    // The server still listens, but reads nothing.
    let begun = Instant::now();
    assert_eq!(
        cuda.gpumon_with(&nvml, &run).status().unwrap().code(),
        Some(0)
    );
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}
