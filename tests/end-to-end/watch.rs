//! The repeated table of `gpumon --watch`.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::{Child, Stdio},
};

use serde_json::Value;

use crate::support::{Fake, Server, Terminal, eventually, gpumon, signal};

/// A child process that is killed at the end of the test, even if the test fails.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn has_frames(count: usize) -> impl Fn(&str) -> bool {
    move |text| text.matches("\u{1b}[?2026l").count() >= count
}

#[test]
fn a_terminal_shows_one_picture_after_the_other_in_its_place_and_keeps_the_last() {
    let mut terminal = Terminal::with(gpumon(&["--source", "sim:2", "--watch", "0.1"]), 80, 8);
    terminal.until(has_frames(3));
    for frame in terminal.frames() {
        assert!(frame.len() <= 7, "the cursor has a line, too: {frame:?}");
        assert!(
            frame[0].contains("simulated") && frame.last().unwrap().contains("more row"),
            "{frame:?}"
        );
    }
    signal("-INT", terminal.child.id());
    let (text, code) = terminal.finish();
    assert_eq!(code, Some(0));
    assert!(
        text.ends_with("\u{1b}[?2026l\r\u{1b}[K"),
        "nothing after the last picture: {text:?}"
    );
    // The output must not change modes that would have to be restored: another screen, a hidden
    // cursor, a keyboard mode.
    for mode in ["\u{1b}[?1049", "\u{1b}[?25", "\u{1b}[?1h"] {
        assert!(!text.contains(mode), "{mode:?}");
    }
}

#[test]
fn a_terminal_that_does_not_tell_its_lines_gets_all_of_them() {
    let mut terminal = Terminal::with(gpumon(&["--source", "sim:8", "--watch", "0.1"]), 100, 0);
    terminal.until(has_frames(2));
    for frame in terminal.frames() {
        assert!(
            frame.len() > 12 && !frame.iter().any(|line| line.contains("more row")),
            "{frame:?}"
        );
    }
}

#[test]
fn words_come_and_go_with_what_they_are_about_and_move_no_value() {
    let scenario = "gpus = 1\n[[gpu]]\nindex = 0\nutilization_percent = 50\n\
                    memory_used = [[0, \"139.9 GiB\"], [6, \"139.9 GiB\"], [6, \"1 GiB\"]]\n";
    let fake = Fake::new(scenario);
    let mut terminal = Terminal::with(fake.gpumon(&["--watch", "0.2"]), 80, 30);
    terminal.until(|text| text.contains("memory: "));
    terminal.until(|text| text.contains("1.0/140 GiB"));
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
            "there is more than enough left: {line}"
        );
    }
}

#[test]
fn a_terminal_that_changes_its_size_is_filled_anew() {
    let mut terminal = Terminal::with(gpumon(&["--source", "sim:2", "--watch", "600"]), 60, 30);
    terminal.until(has_frames(1));
    terminal.resize(150, 30);
    terminal.until(has_frames(2));
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
fn a_terminal_without_a_cursor_and_a_pipe_get_one_table_after_the_other() {
    let mut command = gpumon(&["--source", "sim:1", "--watch", "0.1"]);
    command.env("TERM", "dumb").env("CI", "true");
    let mut terminal = Terminal::with(command, 80, 8);
    terminal.until(|text| text.matches("simulated").count() >= 3);
    assert!(!terminal.text.contains('\u{1b}'), "{:?}", terminal.text);

    let mut command = gpumon(&["--source", "sim:1", "--watch", "0.1"]);
    let mut child = Reaped(
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
        "an empty line stands between two tables"
    );
    drop(lines);
    let mut said = String::new();
    assert!(
        child.0.wait().unwrap().success(),
        "whoever read it has seen enough"
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
fn what_happens_is_said_without_a_server_too() {
    let fake = Fake::new("gpus = 1\n[[event]]\nkind = \"xid\"\ngpu = 0\ncode = 79\nat_s = 2\n");
    let mut command = fake.gpumon(&["--watch", "0.2"]);
    let mut child = Reaped(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(
        lines
            .by_ref()
            .take(2000)
            .any(|line| line.contains("Xid 79")),
        "it happens two seconds after the start"
    );
}

#[test]
fn the_driver_is_opened_once_however_often_it_is_read() {
    let fake = Fake::new("gpus = 1");
    let counts = fake.path("counts.json");
    let mut command = fake.gpumon(&["--watch", "0.1", "--csv", "--columns", "time"]);
    command
        .env("GPUMON_FAKE_NVML_COUNTS", &counts)
        .stdout(Stdio::null());
    let _child = Reaped(command.spawn().unwrap());
    let count = |function: &str, of: &str| {
        let counts: Value = serde_json::from_str(&fs::read_to_string(&counts).unwrap_or_default())
            .unwrap_or_default();
        counts[function][of].as_u64().unwrap_or(0)
    };
    eventually("it was read many times", || {
        count("nvmlDeviceGetPowerUsage", "0") >= 10
    });
    assert_eq!(count("nvmlInit_v2", "system"), 1);
    assert_eq!(count("nvmlDeviceGetHandleByIndex_v2", "0"), 1);
}

#[test]
fn rows_have_one_header_and_json_one_object_a_line() {
    let three_lines = |arguments: &[&str]| {
        let mut command = gpumon(&[&["--source", "sim:1", "--watch", "0.1"], arguments].concat());
        let mut child = Reaped(command.stdout(Stdio::piped()).spawn().unwrap());
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
fn a_server_is_followed_at_the_pace_that_was_asked_for_and_done_without_when_it_ends() {
    let fake = Fake::new("gpus = 1\n[[gpu]]\nindex = 0\nutilization_percent = 100");
    let mut server = Server::over(&fake, &[]);
    eventually("it has a sample", || server.get("/readyz").status == 200);
    let counts = fake.path("counts.json");
    let mut command = fake.gpumon(&["--watch", "0.1"]);
    command.env("GPUMON_FAKE_NVML_COUNTS", &counts);
    let mut terminal = Terminal::with(command, 100, 30);
    terminal.until(has_frames(8));
    assert!(!counts.exists(), "the driver is the server's business");
    assert!(
        terminal.text.contains('█'),
        "the past is there: {}",
        terminal.text
    );
    let asked = server.get("/api/v1/snapshot").json();
    assert_eq!(asked["sample"]["interval_ms"], 100);
    server.terminate();
    let so_far = terminal.frames().len();
    terminal.until(has_frames(so_far + 5));
    signal("-INT", terminal.child.id());
    assert_eq!(terminal.finish().1, Some(0));
    eventually("it has read by itself", || counts.exists());
}

#[test]
fn a_server_that_pauses_is_said_to() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &["--interval-ms", "100"]);
    eventually("it has a sample", || server.get("/readyz").status == 200);
    let mut terminal = Terminal::with(fake.gpumon(&["--watch"]), 100, 30);
    terminal.until(has_frames(1));
    assert!(fake.gpumon(&["pause"]).output().unwrap().status.success());
    terminal.until(|text| text.contains("paused: the GPUs are released"));
}
