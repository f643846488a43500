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
    FakeCuda, FakeMachine, FakeNvml, TEST_TIMEOUT, assert_refused, assert_refused_with,
    parse_json_lines, run_json_lines, send_signal, start_command, stderr_text, stdout_text,
    wait_for_condition,
};

/// A delay per kernel that lets a test observe the run.
const SLOW_KERNELS: &str = "kernel_ms = 200";
const GPU_UUID: &str = "GPU-00000000-0000-0000-0000-000000000000";

/// Returns the PID of the process that has locked the only GPU.
fn lock_owner(cuda: &FakeCuda) -> Option<u32> {
    fs::read_to_string(cuda.folder().join(format!("gpumon-run-{GPU_UUID}.lock")))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Starts a long run. Returns the run, and the PID of its worker as soon as the worker has started
/// to work.
fn start_long_run(cuda: &FakeCuda, arguments: &[&str]) -> (Child, u32) {
    let child = start_command(
        cuda.gpumon_command(
            &[
                &["bench", "copy", "scale", "add", "--size", "1000"],
                arguments,
            ]
            .concat(),
        ),
    );
    wait_for_condition("the worker runs kernels", || {
        cuda.read_counters()["kernels"].as_u64() > Some(2)
    });
    (child, lock_owner(cuda).unwrap())
}

/// Returns whether the process is gone or a zombie.
fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_none_or(|rest| rest.is_empty() || rest.trim_start().starts_with('Z'))
}

#[test]
fn second_run_is_refused_with_pid_of_first() {
    let cuda = FakeCuda::new(SLOW_KERNELS);
    let (mut first, worker) = start_long_run(&cuda, &[]);
    let second = [
        &["bench", "copy", "--quick", "--size", "100"][..],
        &["burn", "--mem", "0.2%", "--time", "1s"],
    ];
    for command in second {
        let words = [&format!("process {worker} already runs"), "GPU 0"];
        assert_eq!(
            assert_refused_with(cuda.gpumon_command(command), 5, &words),
            ""
        );
    }
    // A run on the CPU does not need the GPU's lock.
    let on_cpu = cuda
        .gpumon_command(&[
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
    assert_eq!(on_cpu.status.code(), Some(0), "{}", stderr_text(&on_cpu));
    send_signal("-INT", first.id());
    assert_eq!(first.wait().unwrap().code(), Some(130));
    assert!(has_ended(worker));
    let next = cuda
        .gpumon_command(&["burn", "--mem", "0.2%", "--time", "1s"])
        .output()
        .unwrap();
    assert_eq!(
        next.status.code(),
        Some(0),
        "the lock is released when its process ends: {}",
        stderr_text(&next)
    );
}

#[test]
fn symlinked_lock_is_not_followed() {
    let cuda = FakeCuda::new("");
    let precious = cuda.folder().join("precious");
    fs::write(&precious, "text").unwrap();
    std::os::unix::fs::symlink(
        &precious,
        cuda.folder().join(format!("gpumon-run-{GPU_UUID}.lock")),
    )
    .unwrap();
    assert_refused(
        cuda.gpumon_command(&["bench", "copy", "--quick", "--size", "100"]),
        1,
        "remove the file",
    );
    assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
}

#[test]
fn killed_worker_is_reported_and_leaves_nothing_behind() {
    let cuda = FakeCuda::new(SLOW_KERNELS);
    let (first, worker) = start_long_run(&cuda, &["--json"]);
    send_signal("-KILL", worker);
    let output = first.wait_with_output().unwrap();
    let said = stderr_text(&output);
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
fn worker_is_listed_with_original_command() {
    let machine = FakeMachine::new("[[gpu]]\nindex = 0\nprofile = \"idle\"\n");
    for words in [
        &["burn", "--mem", "0.2%", "--time", "1m"][..],
        &["bench", "copy", "matmul", "--size", "1000"],
    ] {
        let mut run = machine
            .gpumon_command(words)
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
        wait_for_condition("the worker is listed in the table", || {
            let table = stdout_text(
                &machine
                    .set_state_folder(machine.nvml.gpumon_command(&[]))
                    .output()
                    .unwrap(),
            );
            table
                .lines()
                .any(|line| line.contains(&command) && !line.contains("work"))
        });
        // The process only ends after its worker has ended and has released its lock. So the next
        // run can take the lock.
        send_signal("-INT", run.id());
        run.wait().unwrap();
    }
}

#[test]
fn worker_ends_with_parent() {
    let cuda = FakeCuda::new(SLOW_KERNELS);
    let (mut first, worker) = start_long_run(&cuda, &[]);
    assert!(!has_ended(worker));
    // A stopped worker cannot notice that its parent has ended.
    send_signal("-STOP", worker);
    first.kill().unwrap();
    first.wait().unwrap();
    wait_for_condition("the worker has ended", || has_ended(worker));
    let late = cuda
        .gpumon_command(&["work", "--parent", "1", r#"{"kind":"bench"}"#])
        .output()
        .unwrap();
    assert!(
        late.status.code() == Some(1) && stderr_text(&late).contains("process 1"),
        "{}",
        stderr_text(&late)
    );
}

#[test]
fn overlong_or_unresponsive_run_is_ended() {
    for is_stopped in [false, true] {
        let cuda = FakeCuda::new(SLOW_KERNELS);
        let begun = Instant::now();
        let (first, worker) = start_long_run(&cuda, &["--time-limit", "2s"]);
        if is_stopped {
            send_signal("-STOP", worker);
        }
        let output = first.wait_with_output().unwrap();
        let (said, took) = (stderr_text(&output), begun.elapsed());
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("time limit of 2 s") && said.contains("--time-limit"),
            "{said}"
        );
        assert_eq!(said.contains("was killed"), is_stopped, "{said}");
        assert!(
            !is_stopped || took > Duration::from_secs(10),
            "the worker must get time to end: {took:?}"
        );
        assert!(has_ended(worker));
        if !is_stopped {
            assert_eq!(
                cuda.read_counters()["held_bytes"],
                0,
                "all memory was freed"
            );
        }
    }
}

/// A process of another user, which is killed when this value is dropped.
struct OtherUserProcess(Option<Child>);

impl OtherUserProcess {
    fn new() -> Self {
        // Only root can start a process of another user. Without root, `pid` returns PID 1, which
        // belongs to another user.
        Self(Command::new("sleep").arg("600").uid(65_534).spawn().ok())
    }

    fn pid(&self) -> u32 {
        self.0.as_ref().map_or(1, Child::id)
    }
}

impl Drop for OtherUserProcess {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns both libraries with the same GPU, which these processes use.
fn make_occupied_gpu(processes: &str) -> (FakeNvml, FakeCuda) {
    let nvml = FakeNvml::new(&format!(
        "[[gpu]]\nindex = 0\nprofile = \"idle\"\n{processes}"
    ));
    let uuid = nvml.read_json()["inventory"]["gpus"][0]["uuid"]
        .as_str()
        .unwrap()
        .to_owned();
    let cuda = FakeCuda::new(&format!("uuids = [\"{uuid}\"]\nkernel_ms = 20"));
    (nvml, cuda)
}

#[test]
fn gpu_of_other_user_is_refused_unless_shared() {
    let stranger = OtherUserProcess::new();
    let pid = stranger.pid();
    let (nvml, cuda) = make_occupied_gpu(&format!(
        "[[process]]\ngpu = 0\npid = {pid}\nmemory = \"1 GiB\""
    ));
    let alone = [
        &["bench", "copy", "--quick", "--size", "100"][..],
        &["burn", "--mem", "0.2%", "--time", "1s"],
    ];
    for command in alone {
        assert_refused_with(
            cuda.gpumon_command_with(&nvml, command),
            5,
            &[&pid.to_string(), "--share"],
        );
        assert!(
            cuda.read_counters().is_null(),
            "no kernels may be run: {}",
            cuda.read_counters()
        );
    }
    // With `--share`, a run may use at most a quarter of the device's 2 GiB of memory.
    let shared = ["bench", "copy", "--share", "--quick", "--json", "--size"];
    let (code, lines, said) =
        run_json_lines(cuda.gpumon_command_with(&nvml, &[&shared[..], &["300MiB"]].concat()));
    assert!(
        code == Some(5) && said.contains("1.5 GiB must stay free for others"),
        "{code:?} {lines:?} {said}"
    );
    let (code, lines, said) =
        run_json_lines(cuda.gpumon_command_with(&nvml, &[&shared[..], &["1MiB"]].concat()));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(lines[0]["load"]["others"][0]["pid"], pid, "{}", lines[0]);
    let table = cuda
        .gpumon_command_with(
            &nvml,
            &["bench", "copy", "--share", "--quick", "--size", "1MiB"],
        )
        .output()
        .unwrap();
    assert!(
        stdout_text(&table).contains("shared with "),
        "{}",
        stdout_text(&table)
    );
}

#[test]
fn own_and_graphics_processes_do_not_block_runs() {
    let stranger = OtherUserProcess::new();
    let (own, other) = (std::process::id(), stranger.pid());
    let (nvml, cuda) = make_occupied_gpu(&format!(
        "[[process]]\ngpu = 0\npid = {own}\nmemory = \"1 GiB\"\n[[process]]\ngpu = 0\npid = \
         {other}\nkind = \"graphics\""
    ));
    let (code, lines, said) = run_json_lines(cuda.gpumon_command_with(
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
fn results_contain_energy_clocks_and_power() {
    let (nvml, cuda) = make_occupied_gpu("");
    let (code, lines, said) = run_json_lines(
        cuda.gpumon_command_with(&nvml, &["bench", "copy", "--json", "--size", "1000"]),
    );
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
        "{watts} W according to the counter, {mean} W according to readings"
    );
    let text = stdout_text(
        &cuda
            .gpumon_command_with(&nvml, &["bench", "copy", "--size", "1000"])
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
fn worker_reports_json_job_line_by_line() {
    let cuda = FakeCuda::new("");
    let job = r#"{"kind":"bench","ids":["copy"],"size":{"count":1000},"quick":true}"#;
    let mut child = cuda
        .gpumon_command(&["work", "-"])
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
    let text = stdout_text(&child.wait_with_output().unwrap());
    let lines = parse_json_lines(&text);
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
        let output = cuda.gpumon_command(&["work", job]).output().unwrap();
        let text = format!("{}{}", stdout_text(&output), stderr_text(&output));
        assert!(
            output.status.code() == Some(2) && text.contains(words),
            "{text}"
        );
    }
}

#[test]
fn run_is_announced_to_unresponsive_server_without_delay() {
    let (nvml, cuda) = make_occupied_gpu("");
    let listener = UnixListener::bind(nvml.control_path()).unwrap();
    let server = thread::spawn(move || {
        let mut reported = String::new();
        let (mut stream, _) = listener.accept().unwrap();
        // The stream ends after the request, because the client closes it without waiting for an
        // answer.
        stream.read_to_string(&mut reported).unwrap();
        (listener, reported)
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
        cuda.gpumon_command_with(&nvml, &run)
            .status()
            .unwrap()
            .code(),
        Some(0)
    );
    let (_listener, reported) = server.join().unwrap();
    let (head, body) = reported.split_once("\r\n\r\n").unwrap();
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
        "{reported}"
    );
    assert!(
        reports.contains(&"result") && body.ends_with("0\r\n\r\n"),
        "{reported}"
    );
    // The server still listens, but reads nothing.
    let begun = Instant::now();
    assert_eq!(
        cuda.gpumon_command_with(&nvml, &run)
            .status()
            .unwrap()
            .code(),
        Some(0)
    );
    assert!(begun.elapsed() < TEST_TIMEOUT, "{:?}", begun.elapsed());
}
