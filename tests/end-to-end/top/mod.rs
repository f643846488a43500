//! Tests of `gpumon top` on a terminal.

mod jobs;
mod processes;
mod theme;

use std::{io::Write, process::Command, time::Duration};

use crate::support::{
    FakeNvml, Server, Tty, assert_no_persistent_complaints, gpumon_command, send_signal,
    stderr_text, stdout_text, wait_for_condition,
};

const ENTER_ALTERNATE_SCREEN: &str = "\u{1b}[?1049h";
const LEAVE_ALTERNATE_SCREEN: &str = "\u{1b}[?1049l";

/// Returns the command `gpumon top` for fake GPUs, without the settings of this machine.
fn top_command(fake: &FakeNvml, arguments: &[&str]) -> Command {
    let mut command = fake.gpumon_command(&[&["top"], arguments].concat());
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
    assert!(terminal.wait_for_end().success());
}

/// Writes the settings file of the program.
fn write_settings(fake: &FakeNvml, settings: &str) {
    std::fs::create_dir_all(fake.path("config/gpumon")).unwrap();
    std::fs::write(
        fake.path("config/gpumon/config.toml"),
        format!("[top]\n{settings}"),
    )
    .unwrap();
}

#[test]
fn top_handles_keys_and_restores_terminal() {
    let fake = FakeNvml::new("gpus = 3");
    let mut terminal = Tty::start(&top_command(&fake, &[]), 100, 30);
    terminal.wait_for_sequence(ENTER_ALTERNATE_SCREEN);
    for text in ["Charts", "H200", "GiB", "WHAT"] {
        terminal.wait_for_text(text);
    }
    assert!(!terminal.is_restored(), "the terminal must be in raw mode");
    terminal.press("?");
    terminal.wait_for_text("redraw the screen");
    terminal.press("\u{1b}");
    terminal.discard_output();
    // The view is drawn again after the size of the terminal has changed.
    terminal.resize(140, 40);
    terminal.wait_for_text("Charts");
    quit(&mut terminal, "q");
    terminal.wait_for_sequence(LEAVE_ALTERNATE_SCREEN);
    terminal.wait_for_sequence("\u{1b}[?25h");
    assert!(terminal.is_restored());
}

#[test]
fn hanging_gpu_is_shown_and_keys_work() {
    let fake = FakeNvml::new("gpus = 2\n[[fault]]\nkind = \"hang\"\ngpu = 1\nfrom_s = 2\n");
    let mut terminal = Tty::start(&top_command(&fake, &["--interval-ms", "200"]), 140, 30);
    terminal.wait_for_text("hung for");
    terminal.press("?");
    terminal.wait_for_text("redraw the screen");
    quit(&mut terminal, "qq");
}

#[test]
fn running_server_is_used_again_after_restart() {
    let fake = FakeNvml::new("gpus = 2");
    let control = fake.control_path();
    let serve = || Server::start_with_fake(&fake, &["--control", control.to_str().unwrap()]);
    let mut server = serve();
    wait_for_condition("the server has created its control socket", || {
        control.exists()
    });
    let mut terminal = Tty::start(&top_command(&fake, &[]), 140, 30);
    terminal.wait_for_text("live from server");
    terminal.wait_for_text("WHAT");
    server.terminate();
    terminal.wait_for_text("no connection to the server");
    terminal.wait_for_text("reading the driver directly: no connection to the server");
    terminal.wait_for_text("live from driver");
    terminal.discard_output();
    let _again = serve();
    terminal.wait_for_text("live from server");
    quit(&mut terminal, "q");
}

#[test]
fn charts_start_with_history_of_server() {
    let fake = FakeNvml::new("gpus = 1");
    let control = fake.control_path();
    let _server = Server::start_with_fake(&fake, &["--control", control.to_str().unwrap()]);
    write_settings(&fake, "metrics = [\"sm-clock\"]\nrange_s = 60\n");
    // A server does not send the SM clock unless a client requests it.
    wait_for_condition("a chart has a line of several seconds", || {
        let frame = stdout_text(&top_command(&fake, &["--once"]).output().unwrap());
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
fn silent_server_is_replaced_by_driver() {
    let fake = FakeNvml::new("gpus = 2");
    let control = fake.control_path();
    let server = Server::start_with_fake(&fake, &["--control", control.to_str().unwrap()]);
    wait_for_condition("the server has created its control socket", || {
        control.exists()
    });
    let mut terminal = Tty::start(&top_command(&fake, &[]), 140, 30);
    terminal.wait_for_text("live from server");
    send_signal("-STOP", server.child.id());
    terminal.wait_for_text("reading the driver directly: no connection to the server");
    terminal.wait_for_text("live from driver");
    terminal.discard_output();
    send_signal("-CONT", server.child.id());
    terminal.wait_for_text("live from server");
    quit(&mut terminal, "q");
}

#[test]
fn once_option_prints_single_frame() {
    let fake = FakeNvml::new("gpus = 3\n[[process]]\ngpu = 1\npid = 1\nmemory = \"12 GiB\"\n");
    let once = |arguments: &[&str]| {
        top_command(&fake, &[&["--once"], arguments].concat())
            .output()
            .unwrap()
    };
    let output = once(&["-i", "1,2"]);
    let text = stdout_text(&output);
    assert!(output.status.success(), "{}", stderr_text(&output));
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
    assert!(stdout_text(&once(&["-u", "nobody-at-all"])).contains("no processes of this user"));
    let missing = once(&["-i", "9"]);
    assert_eq!(missing.status.code(), Some(6));
    assert!(
        stderr_text(&missing).contains("there is no GPU '9': 0 to 2 are available"),
        "{}",
        stderr_text(&missing)
    );
    // On a terminal, the output of `--once` uses the terminal's size and colors, but not the
    // alternate screen.
    let mut terminal = Tty::start(&top_command(&fake, &["--once"]), 100, 30);
    terminal.wait_for_text("WHAT");
    assert!(terminal.wait_for_end().success());
    assert!(
        !terminal.output_text().contains(ENTER_ALTERNATE_SCREEN)
            && terminal.output_text().contains("\u{1b}[")
    );
}

#[test]
fn limits_are_shown_as_evidence_chart_and_advice() {
    let fake = FakeNvml::new(
        "gpus = 1\n[[gpu]]\nindex = 0\nutilization_percent = 100\ngraphics_percent = 100\n\
         sm_percent = 95\ntensor_percent = 92\npower_watts = 300\n",
    );
    let mut terminal = Tty::start(&top_command(&fake, &["--metrics", "limits"]), 120, 40);
    for text in [
        "   Tensor-bound 100 %: Tensor cores are busy 92 % of the time.",
        "Limited by",
        "TTT",
        "T Tensor-bound",
    ] {
        terminal.wait_for_text(text);
    }
    terminal.press("2");
    terminal.wait_for_text("The GPU is well used. Narrower types such as FP8 are faster.");
    // A smaller terminal has no line for the evidence.
    terminal.press("1");
    terminal.resize(80, 24);
    terminal.wait_for_text(" W  Tensor-bound 100 %");
    quit(&mut terminal, "q");
}

#[test]
fn recording_of_collect_is_played() {
    let fake = FakeNvml::new("gpus = 2");
    let recording = fake.path("recording.ndjson");
    let recorded = fake
        .gpumon_command(&["collect", "--count", "5", "--interval-ms", "100"])
        .output()
        .unwrap();
    std::fs::write(&recording, &recorded.stdout).unwrap();
    let path = recording.to_str().unwrap();
    let mut terminal = Tty::start(&top_command(&fake, &["--replay", path]), 120, 30);
    terminal.wait_for_text("replay");
    terminal.wait_for_text("ended, speed 1x");
    quit(&mut terminal, "q");
    // An invalid recording is refused before the alternate screen is used.
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&recording)
        .unwrap();
    file.write_all(b"{\"type\":\"sample\"}\n").unwrap();
    let mut terminal = Tty::start(&top_command(&fake, &["--replay", path]), 120, 30);
    assert_eq!(terminal.wait_for_end().code(), Some(2));
    let line = stdout_text(&recorded).lines().count() + 1;
    terminal.wait_for_text(&format!("line {line} is not a gpumon record"));
    assert!(!terminal.output_text().contains(ENTER_ALTERNATE_SCREEN));
}

#[test]
fn top_without_terminal_fails_and_names_alternatives() {
    let output = gpumon_command(&["--source", "sim:1", "top"])
        .env("TERM", "xterm")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = stderr_text(&output);
    assert!(
        message.contains("--watch")
            && message.contains("gpumon collect")
            && message.lines().count() == 1,
        "{message}"
    );
    let fake = FakeNvml::new("gpus = 1");
    let mut dumb = top_command(&fake, &[]);
    dumb.env("TERM", "dumb");
    let mut terminal = Tty::start(&dumb, 80, 24);
    assert_eq!(terminal.wait_for_end().code(), Some(2));
    terminal.wait_for_text("TERM is dumb");
    assert!(
        !terminal.output_text().contains('\u{1b}'),
        "{}",
        terminal.output_text()
    );
}

#[test]
fn missing_library_is_reported_like_other_commands() {
    let fake = FakeNvml::new("gpus = 1");
    let mut command = top_command(&fake, &[]);
    command.env("GPUMON_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
    let mut terminal = Tty::start(&command, 80, 24);
    assert_eq!(terminal.wait_for_end().code(), Some(12));
    terminal.wait_for_text("/nowhere/libnvidia-ml.so.1");
    assert!(!terminal.output_text().contains(ENTER_ALTERNATE_SCREEN));
}

#[test]
fn invalid_setting_is_reported_and_ignored() {
    let fake = FakeNvml::new("gpus = 1");
    write_settings(&fake, "view = \"host\"\ntheme = \"monochrome\"\n");
    let mut terminal = Tty::start(&top_command(&fake, &[]), 120, 30);
    terminal.wait_for_text("Network TX");
    quit(&mut terminal, "q");
    assert!(
        !terminal.output_text().contains("\u{1b}[38;5;"),
        "there must be no colors"
    );
    write_settings(&fake, "view = \"host\"\nthem = \"light\"\n");
    let mut terminal = Tty::start(&top_command(&fake, &[]), 160, 30);
    terminal.wait_for_text("config.toml:3:1: unknown key `them` in [top]: did you mean `theme`?");
    terminal.wait_for_text("Network TX");
    quit(&mut terminal, "q");
}

#[test]
fn setup_preserves_other_settings() {
    let fake = FakeNvml::new("gpus = 1");
    let file = fake.path("config.toml");
    std::fs::write(
        &file,
        "# mine\n[top]\ntheme = \"light\" # at day\nfuture = 1\n\n# other\n[serve]\nlisten = \
         \"127.0.0.1:0\"\n",
    )
    .unwrap();
    let mut terminal = Tty::start(
        &top_command(&fake, &["--config", file.to_str().unwrap()]),
        100,
        30,
    );
    terminal.wait_for_text("WHAT");
    // F2 opens the setup, and two tabs lead to its third page.
    terminal.press("\u{1b}OQ");
    terminal.wait_for_text("[x] memory");
    terminal.press("\t\t");
    terminal.wait_for_text("refresh interval");
    terminal.press("\u{1b}[C");
    terminal.wait_for_text("color-blind ▸");
    terminal.press("W");
    terminal.wait_for_text("saved in");
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
fn table_thresholds_come_from_settings() {
    let fake = FakeNvml::new("gpus = 1\n[[gpu]]\nindex = 0\nutilization_percent = 50\n");
    let table = |settings: &str| {
        write_settings(&fake, settings);
        let mut command = fake.gpumon_command(&["--color", "always"]);
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
        stdout_text(&table("")).contains(moderate),
        "{:?}",
        stdout_text(&table(""))
    );
    assert!(stdout_text(&table("utilization-thresholds = [20, 50]\n")).contains(heavy));
    let mistaken = table("utilization-thresholds = 20\n");
    assert!(mistaken.status.success() && stdout_text(&mistaken).contains(moderate));
    assert!(stderr_text(&mistaken).contains(
        "config.toml:2:26: `top.utilization-thresholds` cannot be 20: use a list, such as [10, 75]"
    ));
}

#[test]
fn unchanged_values_are_not_redrawn() {
    let fake = FakeNvml::new("gpus = 1");
    let mut terminal = Tty::start(&top_command(&fake, &["--interval-ms", "60000"]), 80, 24);
    terminal.wait_for_text("WHAT");
    assert_no_persistent_complaints(|_| {
        terminal.discard_output();
        std::thread::sleep(Duration::from_secs(2));
        if terminal.output_text().is_empty() {
            Vec::new()
        } else {
            vec!["something is drawn".to_owned()]
        }
    });
    quit(&mut terminal, "q");
}

#[test]
fn any_terminal_size_is_supported() {
    let fake = FakeNvml::new("gpus = 1");
    let mut terminal = Tty::start(&top_command(&fake, &[]), u16::MAX, u16::MAX);
    terminal.wait_for_sequence(ENTER_ALTERNATE_SCREEN);
    terminal.wait_for_sequence("WHAT");
    terminal.resize(0, 0);
    terminal.resize(80, 24);
    terminal.discard_output();
    terminal.wait_for_text("WHAT");
    terminal.discard_output();
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
fn unreadable_settings_are_fatal_only_if_named() {
    let fake = FakeNvml::new("gpus = 1");
    // There is a directory at the path of the settings file, so no settings can be read.
    std::fs::create_dir_all(fake.path("config/gpumon/config.toml")).unwrap();
    let mut terminal = Tty::start(&top_command(&fake, &[]), 160, 30);
    terminal.wait_for_text("is not a regular file");
    quit(&mut terminal, "q");
    // If the named file does not exist, the key W creates it.
    let new = fake.path("new.toml");
    let mut terminal = Tty::start(
        &top_command(&fake, &["--config", new.to_str().unwrap()]),
        140,
        30,
    );
    terminal.wait_for_text("new.toml does not exist yet; press W to create it");
    terminal.press("C");
    terminal.press("W");
    terminal.wait_for_text("saved in");
    quit(&mut terminal, "q");
    assert!(
        std::fs::read_to_string(&new)
            .unwrap()
            .contains("theme = \"light\"")
    );
    let mut terminal = Tty::start(
        &top_command(&fake, &["--config", "/nowhere/new.toml"]),
        80,
        24,
    );
    assert_eq!(terminal.wait_for_end().code(), Some(2));
    terminal.wait_for_text("cannot read /nowhere/new.toml");
}

#[test]
fn hostile_recording_is_harmless() {
    let fake = FakeNvml::new("gpus = 2");
    let recording = fake.path("recording.ndjson");
    let recorded = fake
        .gpumon_command(&["collect", "--count", "3", "--interval-ms", "100"])
        .output()
        .unwrap();
    let lines = stdout_text(&recorded);
    let mut late = Vec::new();
    for line in lines.lines() {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["at_ms"] = u64::MAX.into();
        writeln!(late, "{line}").unwrap();
    }
    std::fs::write(&recording, late).unwrap();
    let path = recording.to_str().unwrap();
    let mut terminal = Tty::start(&top_command(&fake, &["--replay", path]), 120, 30);
    terminal.wait_for_text("ended, speed 1x");
    quit(&mut terminal, "123456q");
    std::fs::write(&recording, "{\"type\":\"\\u001b]0;pwn\\u0007x\"}\n").unwrap();
    let mut terminal = Tty::start(&top_command(&fake, &["--replay", path]), 120, 30);
    assert_eq!(terminal.wait_for_end().code(), Some(2));
    terminal.wait_for_text("pwn");
    assert!(
        !terminal.output_text().contains(['\u{1b}', '\u{7}']),
        "{:?}",
        terminal.output_text()
    );
}
