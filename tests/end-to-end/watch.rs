//! The repeated table of `gpumon --watch`.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::{Child, Stdio},
};

use serde_json::Value;

use crate::support::{FakeNvml, Server, Terminal, gpumon_command, send_signal, wait_for_condition};

/// A child process that is killed when this value is dropped, even if the test fails.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn make_frame_count_check(count: usize) -> impl Fn(&str) -> bool {
    move |text| text.matches("\u{1b}[?2026l").count() >= count
}

#[test]
fn terminal_redraws_in_place_and_keeps_last_table() {
    let mut terminal = Terminal::start(
        gpumon_command(&["--source", "sim:2", "--watch", "0.1"]),
        80,
        8,
    );
    terminal.wait_until(make_frame_count_check(3));
    for frame in terminal.frames() {
        assert!(
            frame.len() <= 7,
            "a line must be left for the cursor: {frame:?}"
        );
        assert!(
            frame[0].contains("simulated") && frame.last().unwrap().contains("more row"),
            "{frame:?}"
        );
    }
    send_signal("-INT", terminal.child.id());
    let (text, code) = terminal.wait_for_end();
    assert_eq!(code, Some(0));
    assert!(
        text.ends_with("\u{1b}[?2026l\r\u{1b}[K"),
        "there must be no output after the last table: {text:?}"
    );
    // The output must not change modes that would have to be restored: another screen, a hidden
    // cursor, a keyboard mode.
    for mode in ["\u{1b}[?1049", "\u{1b}[?25", "\u{1b}[?1h"] {
        assert!(!text.contains(mode), "{mode:?}");
    }
}

#[test]
fn terminal_of_unknown_height_gets_all_lines() {
    let mut terminal = Terminal::start(
        gpumon_command(&["--source", "sim:8", "--watch", "0.1"]),
        100,
        0,
    );
    terminal.wait_until(make_frame_count_check(2));
    for frame in terminal.frames() {
        assert!(
            frame.len() > 12 && !frame.iter().any(|line| line.contains("more row")),
            "{frame:?}"
        );
    }
}

#[test]
fn notes_appear_and_disappear_without_moving_values() {
    let scenario = "gpus = 1\n[[gpu]]\nindex = 0\nutilization_percent = 50\n\
                    memory_used = [[0, \"139.9 GiB\"], [6, \"139.9 GiB\"], [6, \"1 GiB\"]]\n";
    let fake = FakeNvml::new(scenario);
    let mut terminal = Terminal::start(fake.gpumon_command(&["--watch", "0.2"]), 80, 30);
    terminal.wait_until(|text| text.contains("memory: "));
    terminal.wait_until(|text| text.contains("1.0/140 GiB"));
    let lines: Vec<String> = terminal
        .frames()
        .concat()
        .iter()
        .map(|line| anstream::adapter::strip_str(line).to_string())
        .filter(|line| line.contains("/700 W"))
        .collect();
    let place = |line: &String, mark: &str| line.find(mark).map(|end| line[..end].chars().count());
    for line in &lines {
        for mark in ["/140 GiB", "/700 W"] {
            assert_eq!(place(line, mark), place(&lines[0], mark), "{lines:#?}");
        }
        assert!(
            !line.contains(" 1.0/140 GiB") || !line.contains("left"),
            "there must be no warning with enough memory: {line}"
        );
    }
}

#[test]
fn resized_terminal_is_redrawn() {
    let mut terminal = Terminal::start(
        gpumon_command(&["--source", "sim:2", "--watch", "600"]),
        60,
        30,
    );
    terminal.wait_until(make_frame_count_check(1));
    terminal.resize(150, 30);
    terminal.wait_until(make_frame_count_check(2));
    let frames = terminal.frames();
    let width = |frame: &Vec<String>| {
        let line = anstream::adapter::strip_str(&frame[0]).to_string();
        line.trim_end_matches(['\r', '\n']).chars().count()
    };
    assert_eq!(
        (width(&frames[0]), width(&frames[1])),
        (60, 150),
        "{frames:?}"
    );
}

#[test]
fn dumb_terminal_and_pipe_get_consecutive_tables() {
    let mut command = gpumon_command(&["--source", "sim:1", "--watch", "0.1"]);
    command.env("TERM", "dumb").env("CI", "true");
    let mut terminal = Terminal::start(command, 80, 8);
    terminal.wait_until(|text| text.matches("simulated").count() >= 3);
    assert!(!terminal.text.contains('\u{1b}'), "{:?}", terminal.text);

    let mut command = gpumon_command(&["--source", "sim:1", "--watch", "0.1"]);
    let mut child = KilledOnDrop(
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut before = None;
    for _ in 0..3 {
        let head = lines
            .find(|line| {
                line.as_ref()
                    .is_ok_and(|line| line.starts_with("gpumon  simulated"))
            })
            .unwrap();
        assert!(!head.unwrap().contains('\u{1b}'));
        before = Some(lines.by_ref().take(6).map(Result::unwrap).last());
    }
    assert_eq!(
        before.flatten().as_deref(),
        Some(""),
        "there must be an empty line between two tables"
    );
    drop(lines);
    let mut said = String::new();
    assert!(
        child.0.wait().unwrap().success(),
        "a closed pipe must not be an error"
    );
    child
        .0
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(said, "");
}

#[test]
fn events_are_printed_without_server() {
    let fake = FakeNvml::new("gpus = 1\n[[event]]\nkind = \"xid\"\ngpu = 0\ncode = 79\nat_s = 2\n");
    let mut command = fake.gpumon_command(&["--watch", "0.2"]);
    let mut child = KilledOnDrop(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(
        lines
            .by_ref()
            .take(2000)
            .any(|line| line.contains("Xid 79")),
        "the Xid must be printed two seconds after the start"
    );
}

#[test]
fn driver_is_opened_once() {
    let fake = FakeNvml::new("gpus = 1");
    let counts = fake.path("counts.json");
    let mut command = fake.gpumon_command(&["--watch", "0.1", "--csv", "--columns", "time"]);
    command
        .env("GPUMON_FAKE_NVML_COUNTS", &counts)
        .stdout(Stdio::null());
    let _child = KilledOnDrop(command.spawn().unwrap());
    let count = |function: &str, of: &str| {
        let counts: Value = serde_json::from_str(&fs::read_to_string(&counts).unwrap_or_default())
            .unwrap_or_default();
        counts[function][of].as_u64().unwrap_or(0)
    };
    wait_for_condition("the power was read ten times", || {
        count("nvmlDeviceGetPowerUsage", "0") >= 10
    });
    assert_eq!(count("nvmlInit_v2", "system"), 1);
    assert_eq!(count("nvmlDeviceGetHandleByIndex_v2", "0"), 1);
}

#[test]
fn watch_prints_one_csv_header_and_json_lines() {
    let three_lines = |arguments: &[&str]| {
        let mut command =
            gpumon_command(&[&["--source", "sim:1", "--watch", "0.1"], arguments].concat());
        let mut child = KilledOnDrop(command.stdout(Stdio::piped()).spawn().unwrap());
        let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        lines.take(3).map(Result::unwrap).collect::<Vec<_>>()
    };
    let rows = three_lines(&["--csv", "--columns", "index,state"]);
    assert_eq!(rows, ["index,state", "0,ok", "0,ok"]);
    let seqs: Vec<u64> = three_lines(&["--json"])
        .iter()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["sample"]["seq"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(seqs, [0, 1, 2]);
}

#[test]
fn ended_server_is_replaced_by_driver() {
    let fake = FakeNvml::new("gpus = 1\n[[gpu]]\nindex = 0\nutilization_percent = 100");
    let mut server = Server::start_with_fake(&fake, &[]);
    wait_for_condition("the server has a sample", || {
        server.get("/readyz").status == 200
    });
    let counts = fake.path("counts.json");
    let mut command = fake.gpumon_command(&["--watch", "0.1"]);
    command.env("GPUMON_FAKE_NVML_COUNTS", &counts);
    let mut terminal = Terminal::start(command, 100, 30);
    terminal.wait_until(make_frame_count_check(8));
    assert!(
        !counts.exists(),
        "the command must not open the driver while a server is running"
    );
    assert!(
        terminal.text.contains('█'),
        "the chart of earlier readings is shown: {}",
        terminal.text
    );
    let asked = server.get("/api/v1/snapshot").json();
    assert_eq!(asked["sample"]["interval_ms"], 100);
    server.terminate();
    let so_far = terminal.frames().len();
    terminal.wait_until(make_frame_count_check(so_far + 5));
    send_signal("-INT", terminal.child.id());
    assert_eq!(terminal.wait_for_end().1, Some(0));
    wait_for_condition("the command has read the driver itself", || counts.exists());
}

#[test]
fn paused_server_is_reported() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "100"]);
    wait_for_condition("the server has a sample", || {
        server.get("/readyz").status == 200
    });
    let mut terminal = Terminal::start(fake.gpumon_command(&["--watch"]), 100, 30);
    terminal.wait_until(make_frame_count_check(1));
    assert!(
        fake.gpumon_command(&["pause"])
            .output()
            .unwrap()
            .status
            .success()
    );
    terminal.wait_until(|text| text.contains("paused: the GPUs are released"));
}
