//! Tests of `gpumon top` on a terminal.

mod jobs;
mod processes;
mod theme;

use std::{io::Write, process::Command, time::Duration};

use crate::support::{
    Fake, Server, Tty, complains_of_nothing, eventually, gpumon, signal, stderr, stdout,
};

const ENTERS: &str = "\u{1b}[?1049h";
const LEAVES: &str = "\u{1b}[?1049l";

/// Returns `top` over fake GPUs, without the settings of this machine.
fn top(fake: &Fake, arguments: &[&str]) -> Command {
    let mut command = fake.gpumon(&[&["top"], arguments].concat());
    command
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8")
        .env("XDG_CONFIG_HOME", fake.path("config"))
        .env_remove("NO_COLOR");
    command
}

/// Ends the program with these keys.
#[track_caller]
fn quit(terminal: &mut Tty, keys: &str) {
    terminal.press(keys);
    assert!(terminal.ended().success());
}

/// Writes the settings file of the program.
fn configure(fake: &Fake, settings: &str) {
    std::fs::create_dir_all(fake.path("config/gpumon")).unwrap();
    std::fs::write(
        fake.path("config/gpumon/config.toml"),
        format!("[top]\n{settings}"),
    )
    .unwrap();
}

#[test]
fn it_shows_gpus_takes_keys_and_gives_the_terminal_back() {
    let fake = Fake::new("gpus = 3");
    let mut terminal = Tty::start(&top(&fake, &[]), 100, 30);
    terminal.wait_for_sequence(ENTERS);
    for text in ["Charts", "H200", "GiB", "WHAT"] {
        terminal.wait_for(text);
    }
    assert!(!terminal.is_as_before(), "keys are read one by one");
    terminal.press("?");
    terminal.wait_for("everything anew");
    terminal.press("\u{1b}");
    terminal.forget();
    // The view is redrawn after a change of size.
    terminal.resize(140, 40);
    terminal.wait_for("Charts");
    quit(&mut terminal, "q");
    terminal.wait_for_sequence(LEAVES);
    terminal.wait_for_sequence("\u{1b}[?25h");
    assert!(terminal.is_as_before());
}

#[test]
fn a_hung_gpu_is_shown_as_hung_and_keys_still_work() {
    let fake = Fake::new("gpus = 2\n[[fault]]\nkind = \"hang\"\ngpu = 1\nfrom_s = 2\n");
    let mut terminal = Tty::start(&top(&fake, &["--interval-ms", "200"]), 140, 30);
    terminal.wait_for("hung for");
    terminal.press("?");
    terminal.wait_for("everything anew");
    quit(&mut terminal, "qq");
}

#[test]
fn a_server_that_runs_is_asked_and_found_again_after_a_restart() {
    let fake = Fake::new("gpus = 2");
    let control = fake.control();
    let serve = || Server::over(&fake, &["--control", control.to_str().unwrap()]);
    let mut server = serve();
    eventually("the server has its local socket", || control.exists());
    let mut terminal = Tty::start(&top(&fake, &[]), 140, 30);
    terminal.wait_for("live from server");
    terminal.wait_for("WHAT");
    server.terminate();
    terminal.wait_for("no connection to the server");
    terminal.wait_for("reading the driver directly: no connection to the server");
    terminal.wait_for("live from driver");
    terminal.forget();
    let _again = serve();
    terminal.wait_for("live from server");
    quit(&mut terminal, "q");
}

#[test]
fn charts_begin_with_all_that_a_server_remembers() {
    let fake = Fake::new("gpus = 1");
    let control = fake.control();
    let _server = Server::over(&fake, &["--control", control.to_str().unwrap()]);
    configure(&fake, "metrics = [\"sm-clock\"]\nrange_s = 60\n");
    // A server does not send the clock unless it is requested.
    eventually("a frame has a line of several seconds", || {
        let frame = stdout(&top(&fake, &["--once"]).output().unwrap());
        let chart = frame
            .lines()
            .skip_while(|line| !line.starts_with("SM clock"))
            .skip(1);
        let bottom = chart
            .take_while(|line| !line.starts_with("GPU "))
            .filter(|line| line.trim_start().starts_with("0 MHz"));
        bottom
            .flat_map(str::chars)
            .filter(|symbol| *symbol == '⣿')
            .count()
            >= 3
    });
}

#[test]
fn a_server_that_says_nothing_is_replaced_by_the_driver() {
    let fake = Fake::new("gpus = 2");
    let control = fake.control();
    let server = Server::over(&fake, &["--control", control.to_str().unwrap()]);
    eventually("the server has its local socket", || control.exists());
    let mut terminal = Tty::start(&top(&fake, &[]), 140, 30);
    terminal.wait_for("live from server");
    signal("-STOP", server.child.id());
    terminal.wait_for("reading the driver directly: no connection to the server");
    terminal.wait_for("live from driver");
    terminal.forget();
    signal("-CONT", server.child.id());
    terminal.wait_for("live from server");
    quit(&mut terminal, "q");
}

#[test]
fn one_frame_is_printed_where_it_is() {
    let fake = Fake::new("gpus = 3\n[[process]]\ngpu = 1\npid = 1\nmemory = \"12 GiB\"\n");
    let once = |arguments: &[&str]| {
        top(&fake, &[&["--once"], arguments].concat())
            .output()
            .unwrap()
    };
    let output = once(&["-i", "1,2"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(text.lines().count(), 40, "{text}");
    assert!(
        !text.contains('\u{1b}') && !text.contains("q quit"),
        "{text}"
    );
    assert!(
        text.contains("\n 1 H200") && text.contains("\n 2 H200") && !text.contains("\n 0 H200"),
        "{text}"
    );
    assert!(
        text.contains("2 x H200") && text.contains("12.0 GiB"),
        "{text}"
    );
    assert!(stdout(&once(&["-u", "nobody-at-all"])).contains("no processes of this user"));
    let missing = once(&["-i", "9"]);
    assert_eq!(missing.status.code(), Some(6));
    assert!(
        stderr(&missing).contains("no GPU '9': there are 0 to 2"),
        "{}",
        stderr(&missing)
    );
    // On a terminal, the output has its size and colors, and does not use the alternate screen.
    let mut terminal = Tty::start(&top(&fake, &["--once"]), 100, 30);
    terminal.wait_for("WHAT");
    assert!(terminal.ended().success());
    assert!(!terminal.written().contains(ENTERS) && terminal.written().contains("\u{1b}["));
}

#[test]
fn a_recording_of_collect_is_played() {
    let fake = Fake::new("gpus = 2");
    let recording = fake.path("recording.ndjson");
    let recorded = fake
        .gpumon(&["collect", "--count", "5", "--interval-ms", "100"])
        .output()
        .unwrap();
    std::fs::write(&recording, &recorded.stdout).unwrap();
    let path = recording.to_str().unwrap();
    let mut terminal = Tty::start(&top(&fake, &["--replay", path]), 120, 30);
    terminal.wait_for("replay");
    terminal.wait_for("at its end");
    quit(&mut terminal, "q");
    // An invalid recording is refused before the alternate screen is used.
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&recording)
        .unwrap();
    file.write_all(b"{\"type\":\"sample\"}\n").unwrap();
    let mut terminal = Tty::start(&top(&fake, &["--replay", path]), 120, 30);
    assert_eq!(terminal.ended().code(), Some(2));
    let line = stdout(&recorded).lines().count() + 1;
    terminal.wait_for(&format!("line {line} is not a record"));
    assert!(!terminal.written().contains(ENTERS));
}

#[test]
fn where_there_is_no_terminal_it_says_what_to_use() {
    let output = gpumon(&["--source", "sim:1", "top"])
        .env("TERM", "xterm")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(
        message.contains("--watch")
            && message.contains("gpumon collect")
            && message.lines().count() == 1,
        "{message}"
    );
    let fake = Fake::new("gpus = 1");
    let mut dumb = top(&fake, &[]);
    dumb.env("TERM", "dumb");
    let mut terminal = Tty::start(&dumb, 80, 24);
    assert_eq!(terminal.ended().code(), Some(2));
    terminal.wait_for("TERM is dumb");
    assert!(
        !terminal.written().contains('\u{1b}'),
        "{}",
        terminal.written()
    );
}

#[test]
fn without_a_library_the_reason_is_told_as_by_any_other_command() {
    let fake = Fake::new("gpus = 1");
    let mut command = top(&fake, &[]);
    command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
    let mut terminal = Tty::start(&command, 80, 24);
    assert_eq!(terminal.ended().code(), Some(12));
    terminal.wait_for("/nowhere/libnvidia-ml.so.1");
    assert!(!terminal.written().contains(ENTERS));
}

#[test]
fn settings_are_read_and_a_mistake_is_named_and_left_out() {
    let fake = Fake::new("gpus = 1");
    configure(&fake, "view = \"host\"\ntheme = \"monochrome\"\n");
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    terminal.wait_for("Network TX");
    quit(&mut terminal, "q");
    assert!(!terminal.written().contains("\u{1b}[38;5;"), "no colors");
    configure(&fake, "view = \"host\"\nthem = \"light\"\n");
    let mut terminal = Tty::start(&top(&fake, &[]), 160, 30);
    terminal.wait_for("config.toml:3:1: unknown key `them` in [top]: did you mean `theme`?");
    terminal.wait_for("Network TX");
    quit(&mut terminal, "q");
}

#[test]
fn setup_changes_the_settings_file_and_keeps_the_rest_of_it() {
    let fake = Fake::new("gpus = 1");
    let file = fake.path("config.toml");
    std::fs::write(
        &file,
        "# mine\n[top]\ntheme = \"light\" # at day\nfuture = 1\n\n# other\n[serve]\nlisten = \"127.0.0.1:0\"\n",
    )
    .unwrap();
    let mut terminal = Tty::start(&top(&fake, &["--config", file.to_str().unwrap()]), 100, 30);
    terminal.wait_for("WHAT");
    // Open the setup with F2, and go to the third page.
    terminal.press("\u{1b}OQ");
    terminal.wait_for("[x] memory");
    terminal.press("\t\t");
    terminal.wait_for("refresh interval");
    terminal.press("\u{1b}[C");
    terminal.wait_for("color-blind ▸");
    terminal.press("W");
    terminal.wait_for("saved in");
    quit(&mut terminal, "qq");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with("# mine\n[top]\ntheme = \"color-blind\" # at day\nfuture = 1\n"),
        "{text}"
    );
    assert!(
        text.ends_with("\n# other\n[serve]\nlisten = \"127.0.0.1:0\"\n"),
        "{text}"
    );
}

#[test]
fn the_table_takes_its_thresholds_from_the_settings() {
    let fake = Fake::new("gpus = 1\n[[gpu]]\nindex = 0\nutilization_percent = 50\n");
    let table = |settings: &str| {
        configure(&fake, settings);
        let mut command = fake.gpumon(&["--color", "always"]);
        command
            .env("XDG_CONFIG_HOME", fake.path("config"))
            .output()
            .unwrap()
    };
    let (moderate, heavy) = (
        "\u{1b}[1m\u{1b}[33m50 %",
        "\u{1b}[1m\u{1b}[4m\u{1b}[31m50 %",
    );
    assert!(
        stdout(&table("")).contains(moderate),
        "{:?}",
        stdout(&table(""))
    );
    assert!(stdout(&table("utilization-thresholds = [20, 50]\n")).contains(heavy));
    let mistaken = table("utilization-thresholds = 20\n");
    assert!(mistaken.status.success() && stdout(&mistaken).contains(moderate));
    assert!(stderr(&mistaken).contains(
        "config.toml:2:26: `top.utilization-thresholds` cannot be 20: use a list, as [10, 75]"
    ));
}

#[test]
fn nothing_is_drawn_while_nothing_changes() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = Tty::start(&top(&fake, &["--interval-ms", "60000"]), 80, 24);
    terminal.wait_for("WHAT");
    complains_of_nothing(|_| {
        terminal.forget();
        std::thread::sleep(Duration::from_secs(2));
        if terminal.written().is_empty() {
            Vec::new()
        } else {
            vec!["something is drawn".to_owned()]
        }
    });
    quit(&mut terminal, "q");
}

#[test]
fn a_terminal_of_any_size_is_drawn_on() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = Tty::start(&top(&fake, &[]), u16::MAX, u16::MAX);
    terminal.wait_for_sequence(ENTERS);
    terminal.wait_for_sequence("WHAT");
    terminal.resize(0, 0);
    terminal.resize(80, 24);
    terminal.forget();
    terminal.wait_for("WHAT");
    terminal.forget();
    terminal.resize(u16::MAX, u16::MAX);
    terminal.wait_for_sequence("WHAT");
    let memory = std::fs::read_to_string(format!("/proc/{}/status", terminal.pid())).unwrap();
    let most = memory
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let most_kib: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(most_kib < 500_000, "{most_kib} KiB");
    quit(&mut terminal, "q");
}

#[test]
fn settings_that_cannot_be_read_stop_it_only_where_somebody_named_them() {
    let fake = Fake::new("gpus = 1");
    // A directory is not a valid file.
    std::fs::create_dir_all(fake.path("config/gpumon/config.toml")).unwrap();
    let mut terminal = Tty::start(&top(&fake, &[]), 160, 30);
    terminal.wait_for("is not a regular file");
    quit(&mut terminal, "q");
    // If the named file does not exist, the key W creates it.
    let new = fake.path("new.toml");
    let mut terminal = Tty::start(&top(&fake, &["--config", new.to_str().unwrap()]), 140, 30);
    terminal.wait_for("new.toml does not exist yet; W creates it");
    terminal.press("C");
    terminal.press("W");
    terminal.wait_for("saved in");
    quit(&mut terminal, "q");
    assert!(
        std::fs::read_to_string(&new)
            .unwrap()
            .contains("theme = \"light\"")
    );
    let mut terminal = Tty::start(&top(&fake, &["--config", "/nowhere/new.toml"]), 80, 24);
    assert_eq!(terminal.ended().code(), Some(2));
    terminal.wait_for("cannot read /nowhere/new.toml");
}

#[test]
fn a_recording_of_impossible_times_and_evil_words_does_no_harm() {
    let fake = Fake::new("gpus = 2");
    let recording = fake.path("recording.ndjson");
    let recorded = fake
        .gpumon(&["collect", "--count", "3", "--interval-ms", "100"])
        .output()
        .unwrap();
    let lines = stdout(&recorded);
    let mut late = Vec::new();
    for line in lines.lines() {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["at_ms"] = u64::MAX.into();
        writeln!(late, "{line}").unwrap();
    }
    std::fs::write(&recording, late).unwrap();
    let path = recording.to_str().unwrap();
    let mut terminal = Tty::start(&top(&fake, &["--replay", path]), 120, 30);
    terminal.wait_for("at its end");
    quit(&mut terminal, "123456q");
    std::fs::write(&recording, "{\"type\":\"\\u001b]0;pwn\\u0007x\"}\n").unwrap();
    let mut terminal = Tty::start(&top(&fake, &["--replay", path]), 120, 30);
    assert_eq!(terminal.ended().code(), Some(2));
    terminal.wait_for("pwn");
    assert!(
        !terminal.written().contains(['\u{1b}', '\u{7}']),
        "{:?}",
        terminal.written()
    );
}
