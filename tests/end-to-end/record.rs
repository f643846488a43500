//! `gpumon record`, and the commands that read a recording: `replay`, `export` and `compare`.

use std::{
    fs::{self, File},
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use flate2::read::MultiGzDecoder;
use serde_json::Value;

use crate::support::{
    FakeNvml, Server, TEST_TIMEOUT, Tty, assert_refused, assert_refused_with, parse_json_lines,
    send_request, send_signal, start_command, stderr_text, stdout_text, wait_for_condition,
};

const SCENARIO: &str =
    "[[gpu]]\nindex = 0\nutilization_percent = 80\n[[gpu]]\nindex = 1\nutilization_percent = 20\n";

/// Records for this many seconds, with ten samples per second.
#[track_caller]
fn record_seconds(fake: &FakeNvml, name: &str, seconds: u32) -> String {
    let path = fake.path(name);
    let path = path.to_str().unwrap();
    let output = fake
        .gpumon_command(&[
            "record",
            path,
            "--interval-ms",
            "100",
            "--duration",
            &format!("{seconds}s"),
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    path.to_owned()
}

fn read_compressed_file(path: &Path) -> String {
    let mut text = String::new();
    let _ = MultiGzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text);
    text
}

fn read_samples(path: &Path) -> Vec<Value> {
    let mut lines = parse_json_lines(&read_compressed_file(path));
    lines.retain(|line| line["type"] == "sample");
    lines
}

#[test]
fn recording_of_collect_can_be_exported_and_compared() {
    let fake = FakeNvml::new(SCENARIO);
    let [a, b] = ["a.gz", "b.gz"].map(|name| record_seconds(&fake, name, 2));
    let lines = parse_json_lines(&read_compressed_file(Path::new(&a)));
    assert_eq!(lines[0]["type"], "inventory");
    let samples = read_samples(Path::new(&a));
    // On a busy machine, some samples are late.
    assert!((5..=21).contains(&samples.len()), "{}", samples.len());
    assert!(
        lines.iter().all(|line| line["type"] != "trace"),
        "traces are only recorded if they are requested"
    );

    // The CSV has a row for each sample and GPU, with the readings of the samples.
    let run = |arguments: &[&str]| {
        let output = fake.gpumon_command(arguments).output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr_text(&output)
        );
        stdout_text(&output)
    };
    let csv = run(&[
        "export",
        &a,
        "--metrics",
        "power.draw_watts,utilization.gpu_percent",
    ]);
    let mut rows = csv.lines();
    assert_eq!(
        rows.next(),
        Some("time,time_ms,index,uuid,name,power_draw_watts,utilization_gpu_percent")
    );
    let rows: Vec<Vec<_>> = rows.map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), 2 * samples.len());
    let last = samples.last().unwrap();
    let [.., row] = &rows[..] else {
        panic!("there are no rows")
    };
    assert_eq!((row[1], row[2]), (&*last["at_ms"].to_string(), "1"));
    assert_eq!(row[5], last["gpus"][1]["power"]["draw_watts"].to_string());
    assert!(
        row[0].ends_with('Z') && row[0].len() == "2026-11-23T20:00:00.000Z".len(),
        "{row:?}"
    );
    let json = parse_json_lines(&run(&[
        "export",
        &a,
        "--format",
        "ndjson",
        "--metrics",
        "power_draw_watts",
    ]));
    assert_eq!(
        json.last().unwrap()["power_draw_watts"],
        last["gpus"][1]["power"]["draw_watts"]
    );
    assert_eq!(
        (&json[0]["index"], &json[0]["time_ms"]),
        (&0.into(), &samples[0]["at_ms"])
    );
    let first_ms = samples[0]["at_ms"].as_u64().unwrap();
    let is_within =
        |sample: &&Value| (500..1500).contains(&(sample["at_ms"].as_u64().unwrap() - first_ms));
    let part = run(&["export", &a, "--from", "+500ms", "--to", "+1500ms"]);
    assert_eq!(
        part.lines().count(),
        1 + 2 * samples.iter().filter(is_within).count(),
        "{part}"
    );
    assert!(run(&["export", &a, "--metrics", "help"]).contains("power_draw_watts"));

    let table = run(&["compare", &a, &b]);
    assert!(
        table.contains("All GPUs") && table.contains("GPU 1") && table.contains("B - A"),
        "{table}"
    );
    let compared: Value = serde_json::from_str(&run(&["compare", &a, &b, "--json"])).unwrap();
    let figures = &compared["a"]["gpus"][0]["figures"];
    assert_eq!(figures["gpu_utilization_mean_percent"], 80.0, "{figures}");
    let (watts, joules) = (
        figures["power_mean_watts"].as_f64().unwrap(),
        figures["energy_joules"].as_f64().unwrap(),
    );
    let seconds = compared["a"]["duration_ms"].as_f64().unwrap() / 1000.0;
    assert!(
        (joules / (watts * seconds) - 1.0).abs() < 0.2,
        "the energy is {joules} J for {watts} W in {seconds} s"
    );
    let points = compared["b_relative_to_a"]["all"]["gpu_utilization_mean_points"]
        .as_f64()
        .unwrap();
    assert!(points.abs() < 0.1, "{points}");
}

#[test]
fn recording_to_terminal_is_refused() {
    let fake = FakeNvml::new(SCENARIO);
    let path = fake.path("a.gz");
    let arguments = ["record", "-", "--interval-ms", "100", "--duration", "1s"];
    let to_file = fake
        .gpumon_command(&arguments)
        .stdout(File::create(&path).unwrap())
        .output()
        .unwrap();
    assert!(
        to_file.status.success() && stderr_text(&to_file).contains("in standard output"),
        "{}",
        stderr_text(&to_file)
    );
    assert!(!read_samples(&path).is_empty());
    let to_pipe = fake.gpumon_command(&arguments).output().unwrap();
    assert!(to_pipe.status.success() && to_pipe.stdout.starts_with(&[0x1f, 0x8b]));
    assert_refused(
        fake.gpumon_command(&[&arguments[..], &["--size", "1MB"]].concat()),
        2,
        "cannot be rotated",
    );
    let mut terminal = Tty::start(&fake.gpumon_command(&arguments), 80, 20);
    assert_eq!(terminal.wait_for_end().code(), Some(2));
    assert!(
        terminal.output_text().contains("redirect the output"),
        "{}",
        terminal.output_text()
    );
}

#[test]
fn invalid_options_are_refused_with_remedy() {
    let fake = FakeNvml::new(SCENARIO);
    let a = record_seconds(&fake, "a.gz", 1);
    let text = fake.path("text");
    fs::write(&text, "a letter\n").unwrap();
    let text = text.to_str().unwrap();
    let before = fs::read(&a).unwrap();
    for (arguments, words) in [
        (&["record", &a][..], "--force"),
        (&["record", "/nowhere/a.gz"], "create its folder first"),
        (&["record", "x.gz", "--keep", "3"], "--size or --every"),
        (&["record", "x.gz", "--size", "3"], "100MB"),
        (&["replay", text], "line 1 is not a gpumon record"),
        (&["replay", "/nowhere/a.gz"], "check the path"),
        (&["replay", &a, "--speed", "0"], "0.1 to 1000"),
        (
            &["replay", &a, "--from", "2020-01-01"],
            "is not in the recording",
        ),
        (&["replay", &a, "--from", "noon"], "'noon' is not a time"),
        (
            &["export", &a, "--metrics", "powr.draw_watts"],
            "did you mean 'power_draw_watts'?",
        ),
        (
            &["export", &a, "--from", "+10s", "--to", "+20s"],
            "there is no sample in the requested time",
        ),
        (
            &["export", &a, "--from", "+1s", "--to", "+500ms"],
            "give a start before the end",
        ),
        (&["compare", &a, text], "line 1 is not a gpumon record"),
        (
            &["compare", &a, "nix.gz"],
            "give a file written by `gpumon record`",
        ),
        (&["compare", &a, "noon..now"], "'noon' is not a time"),
    ] {
        assert_refused(fake.gpumon_command(arguments), 2, words);
    }
    assert_refused(
        fake.gpumon_command(&["compare", &a, "-1h..now"]),
        1,
        "gpumon serve",
    );
    assert_refused(fake.gpumon_command(&["export"]), 1, "gpumon serve");
    assert_refused(
        fake.gpumon_command(&["export", "--data-dir", "/nowhere"]),
        1,
        "/nowhere/history.db",
    );
    assert_eq!(
        fs::read(&a).unwrap(),
        before,
        "the existing recording must be unchanged"
    );
    let mut newer = before;
    newer[16] = 9;
    let other = fake.path("newer.gz");
    fs::write(&other, newer).unwrap();
    assert_refused(
        fake.gpumon_command(&["export", other.to_str().unwrap()]),
        2,
        "format 9",
    );
}

#[test]
fn killed_recorder_loses_at_most_ten_seconds() {
    let fake = FakeNvml::new(SCENARIO);
    let path = fake.path("a.gz");
    let mut recorder = start_command(fake.gpumon_command(&[
        "record",
        path.to_str().unwrap(),
        "--interval-ms",
        "200",
    ]));
    wait_for_condition("a block was written", || {
        fs::metadata(&path).is_ok_and(|file| file.len() > 100)
    });
    std::thread::sleep(Duration::from_secs(3));
    let killed_ms = gpumon_probe::model::now_ms();
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let last_ms = read_samples(&path).last().unwrap()["at_ms"]
        .as_u64()
        .unwrap();
    assert!(
        killed_ms - last_ms <= 10_500,
        "{} ms were lost",
        killed_ms - last_ms
    );
    let whole = fs::read(&path).unwrap();
    // If a file ends in the middle of a block, it is read up to the end of the block before.
    fs::write(&path, [&whole[..], &whole[..40]].concat()).unwrap();
    let output = fake
        .gpumon_command(&["export", path.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        output.status.success() && stderr_text(&output).contains("is cut off after"),
        "{}",
        stderr_text(&output)
    );
    assert_eq!(
        stdout_text(&output).lines().count(),
        1 + 2 * read_samples(&path).len()
    );
}

#[test]
fn full_disk_ends_recording_that_stays_readable() {
    let fake = FakeNvml::new(SCENARIO);
    let path = fake.path("a.gz");
    // The shell limits the size of files to 16 KiB. A recording exceeds this in less than half a
    // minute.
    let mut shell = std::process::Command::new("bash");
    let command = fake.gpumon_command(&["record", path.to_str().unwrap(), "--interval-ms", "100"]);
    shell
        .args(["-c", "ulimit -f 16; exec \"$@\"", "bash"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.process_group(0).stdin(Stdio::null());
    let output = shell.output().unwrap();
    let said = stderr_text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("ulimit -f") && said.contains("can be read"),
        "{said}"
    );
    assert!(fs::metadata(&path).unwrap().len() <= 16 * 1024);
    let export = fake
        .gpumon_command(&["export", path.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        export.status.success() && stderr_text(&export).is_empty(),
        "the recording must end with a complete block: {}",
        stderr_text(&export)
    );
    assert!(read_samples(&path).len() > 50);
}

#[test]
fn interrupted_recording_of_server_is_complete() {
    let fake = FakeNvml::new(SCENARIO);
    let control = fake.control_path();
    let _server = Server::start_with_fake(&fake, &["--interval-ms", "100"]);
    wait_for_condition("the server has created its control socket", || {
        control.exists()
    });
    let path = fake.path("a.gz");
    let mut command =
        fake.gpumon_command(&["record", path.to_str().unwrap(), "--interval-ms", "100"]);
    // Without this library, only the server can provide readings.
    command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
    let recorder = start_command(command);
    std::thread::sleep(Duration::from_secs(3));
    send_signal("-INT", recorder.id());
    let begun = Instant::now();
    let output = recorder.wait_with_output().unwrap();
    assert!(
        output.status.success() && begun.elapsed() < TEST_TIMEOUT,
        "{}",
        stderr_text(&output)
    );
    assert!(
        stderr_text(&output).contains("recorded 0:00:0") && stderr_text(&output).contains("2 GPUs"),
        "{}",
        stderr_text(&output)
    );
    assert!(
        read_samples(&path).len() >= 10,
        "{}",
        read_samples(&path).len()
    );
}

#[test]
fn replay_in_terminal_starts_at_requested_time() {
    let fake = FakeNvml::new(SCENARIO);
    let a = record_seconds(&fake, "a.gz", 2);
    let mut command = fake.gpumon_command(&["replay", &a, "--speed", "2", "--from", "+1s"]);
    command
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8");
    let mut terminal = Tty::start(&command, 120, 30);
    terminal.wait_for_text("replay");
    terminal.wait_for_text("speed 2x");
    terminal.wait_for_text("ended, speed 2x");
    terminal.press("q");
    assert!(terminal.wait_for_end().success());
}

#[test]
fn served_recording_is_labeled_and_controllable() {
    let fake = FakeNvml::new(SCENARIO);
    let a = record_seconds(&fake, "a.gz", 3);
    let all = read_samples(Path::new(&a));
    let [first_ms, last_ms] = [0, all.len() - 1].map(|place| all[place]["at_ms"].as_u64().unwrap());
    let server =
        Server::start(fake.gpumon_command(&["replay", &a, "--serve", "--listen", "127.0.0.1:0"]));
    let steer =
        |body: &str| send_request(server.port, "POST /api/v1/replay", &["X-Gpumon: run"], body);
    let paused = steer(&format!(
        "{{\"paused\":true,\"at_ms\":{}}}",
        first_ms + 1000
    ))
    .json();
    assert_eq!(
        (&paused["paused"], &paused["from_ms"], &paused["to_ms"]),
        (&true.into(), &first_ms.into(), &last_ms.into())
    );
    let at_ms = paused["at_ms"].as_u64().unwrap();
    let times = all.iter().map(|sample| sample["at_ms"].as_u64().unwrap());
    assert_eq!(
        Some(at_ms),
        times.rev().find(|time| *time <= first_ms + 1000),
        "{paused}"
    );
    let snapshot = server.get("/api/v1/snapshot").json();
    assert_eq!(snapshot["sample"]["at_ms"], at_ms);
    assert_eq!(
        snapshot["inventory"]["playback"]["paused"], true,
        "all clients are notified of the pause"
    );
    let history = server.get("/api/v1/history").json();
    assert!(
        history["to_ms"].as_u64().unwrap() <= at_ms,
        "the history must not contain future samples: {history}"
    );
    // The replay continues to its end, and can start again.
    assert_eq!(
        steer("{\"paused\":false,\"speed\":100}").json()["speed"],
        100.0
    );
    wait_for_condition("the playback has ended", || {
        server.get("/api/v1/replay").json()["ended"] == true
    });
    assert_eq!(
        server.get("/api/v1/snapshot").json()["sample"]["at_ms"],
        last_ms
    );
    assert_eq!(steer("{\"paused\":false}").json()["ended"], false);
    // A recording is never shown as current data, and a server that replays a recording accepts no
    // changes.
    assert_eq!(server.get("/readyz").status, 503);
    for refused in ["/metrics", "/api/v1/answers"] {
        assert_eq!(server.get(refused).status, 409, "{refused}");
    }
    let mark = send_request(
        server.port,
        "POST /api/v1/marks",
        &["X-Gpumon: run"],
        "{\"text\":\"x\"}",
    );
    assert!(
        mark.status == 409 && mark.body.contains("replays a recording"),
        "{}",
        mark.body
    );
    assert_eq!(
        send_request(server.port, "POST /api/v1/replay", &[], "{\"speed\":2}").status,
        403
    );
    assert!(steer("{\"speed\":-1}").body.contains("0.1 to 1000"));
    let live = Server::start_with_fake(&FakeNvml::new("gpus = 1"), &["--no-control"]);
    assert_eq!(live.get("/api/v1/replay").status, 404);
    assert!(live.get("/api/v1/snapshot").json()["inventory"]["playback"].is_null());
}

#[test]
fn replay_without_terminal_is_refused() {
    let fake = FakeNvml::new(SCENARIO);
    let a = record_seconds(&fake, "a.gz", 1);
    let mut command = fake.gpumon_command(&["replay", &a]);
    command.env("TERM", "xterm");
    assert_refused_with(
        command,
        2,
        &["gpumon replay needs a terminal", "--serve", "gpumon export"],
    );
}
