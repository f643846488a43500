//! `gpumon top`, on a terminal.

use std::{io::Write, process::Command, time::Duration};

use crate::support::{Fake, Server, Tty, complains_of_nothing, eventually, gpumon, signal, stderr, stdout};

const ENTERS: &str = "\u{1b}[?1049h";
const LEAVES: &str = "\u{1b}[?1049l";

/// `top` over fake GPUs, with nothing of this machine's settings.
fn top(fake: &Fake, arguments: &[&str]) -> Command {
    let mut command = fake.gpumon(&[&["top"], arguments].concat());
    command
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8")
        .env("XDG_CONFIG_HOME", fake.path("config"))
        .env_remove("NO_COLOR");
    command
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
    // Another size is drawn anew.
    terminal.resize(140, 40);
    terminal.wait_for("Charts");
    terminal.press("q");
    assert!(terminal.ended().success());
    terminal.wait_for_sequence(LEAVES);
    terminal.wait_for_sequence("\u{1b}[?25h");
    assert!(terminal.is_as_before());
}

#[test]
fn a_signal_ends_it_and_the_terminal_is_as_before() {
    for name in ["-TERM", "-INT", "-HUP"] {
        let fake = Fake::new("gpus = 1");
        let mut terminal = Tty::start(&top(&fake, &[]), 80, 24);
        terminal.wait_for("WHAT");
        signal(name, terminal.pid());
        assert!(terminal.ended().success(), "{name}");
        terminal.wait_for_sequence(LEAVES);
        assert!(terminal.is_as_before(), "{name}");
    }
}

#[test]
fn it_stops_as_other_programs_do_and_goes_on() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = Tty::start(&top(&fake, &[]), 80, 24);
    terminal.wait_for("WHAT");
    terminal.press("\u{1a}");
    terminal.wait_for_sequence(LEAVES);
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", terminal.pid())).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next()
    };
    eventually("it is stopped", || state() == Some('T'));
    assert!(terminal.is_as_before());
    terminal.forget();
    signal("-CONT", terminal.pid());
    terminal.wait_for_sequence(ENTERS);
    terminal.wait_for("WHAT");
    terminal.press("q");
    assert!(terminal.ended().success());
}

#[test]
fn a_hung_gpu_is_shown_as_hung_and_keys_still_work() {
    let fake = Fake::new("gpus = 2\n[[fault]]\nkind = \"hang\"\ngpu = 1\nfrom_s = 2\n");
    let mut terminal = Tty::start(&top(&fake, &["--interval-ms", "200"]), 140, 30);
    terminal.wait_for("hung for");
    terminal.press("?");
    terminal.wait_for("everything anew");
    terminal.press("qq");
    assert!(terminal.ended().success());
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
    let _again = serve();
    terminal.wait_for("live from server");
    terminal.press("q");
    assert!(terminal.ended().success());
}

#[test]
fn a_process_gets_a_signal_after_a_question() {
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = sleeper.id();
    let fake = Fake::new(&format!("gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n"));
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    terminal.wait_for(&pid.to_string());
    terminal.press("\u{1b}[B");
    terminal.press("k");
    terminal.wait_for("Send SIGTERM to process");
    assert!(sleeper.try_wait().unwrap().is_none(), "a question is not an answer");
    terminal.press("y");
    let ended = sleeper.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(15));
    terminal.wait_for("has ended");
    terminal.press("q");
    assert!(terminal.ended().success());
}

#[test]
fn a_recording_of_collect_is_played() {
    let fake = Fake::new("gpus = 2");
    let recording = fake.path("recording.ndjson");
    let recorded = fake.gpumon(&["collect", "--count", "5", "--interval-ms", "100"]).output().unwrap();
    std::fs::write(&recording, &recorded.stdout).unwrap();
    let path = recording.to_str().unwrap();
    let mut terminal = Tty::start(&top(&fake, &["--replay", path]), 120, 30);
    terminal.wait_for("replay");
    terminal.wait_for("at its end");
    terminal.press("q");
    assert!(terminal.ended().success());
    // What is no recording is refused before the screen is taken over.
    let mut file = std::fs::OpenOptions::new().append(true).open(&recording).unwrap();
    file.write_all(b"{\"type\":\"sample\"}\n").unwrap();
    let mut terminal = Tty::start(&top(&fake, &["--replay", path]), 120, 30);
    assert_eq!(terminal.ended().code(), Some(2));
    let line = stdout(&recorded).lines().count() + 1;
    terminal.wait_for(&format!("line {line} is not a record"));
    assert!(!terminal.written().contains(ENTERS));
}

#[test]
fn where_there_is_no_terminal_it_says_what_to_use() {
    let output = gpumon(&["--source", "sim:1", "top"]).env("TERM", "xterm").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(
        message.contains("--watch") && message.contains("gpumon collect") && message.lines().count() == 1,
        "{message}"
    );
    let fake = Fake::new("gpus = 1");
    let mut dumb = top(&fake, &[]);
    dumb.env("TERM", "dumb");
    let mut terminal = Tty::start(&dumb, 80, 24);
    assert_eq!(terminal.ended().code(), Some(2));
    terminal.wait_for("TERM is dumb");
    assert!(!terminal.written().contains('\u{1b}'), "{}", terminal.written());
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
fn settings_are_read_and_a_mistake_is_named() {
    let fake = Fake::new("gpus = 1");
    std::fs::create_dir_all(fake.path("config/gpumon")).unwrap();
    let settings = fake.path("config/gpumon/top.toml");
    std::fs::write(&settings, "view = \"host\"\ntheme = \"monochrome\"\n").unwrap();
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    terminal.wait_for("Network sent");
    terminal.press("q");
    assert!(terminal.ended().success());
    assert!(!terminal.written().contains("\u{1b}[38;5;"), "no colours");
    std::fs::write(&settings, "view = \"host\"\nthem = \"light\"\n").unwrap();
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    assert_eq!(terminal.ended().code(), Some(2));
    terminal.wait_for("line 2: unknown setting 'them': did you mean 'theme'?");
}

#[test]
fn nothing_is_drawn_while_nothing_changes() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = Tty::start(&top(&fake, &["--interval-ms", "60000"]), 80, 24);
    terminal.wait_for("WHAT");
    complains_of_nothing(|| {
        terminal.forget();
        std::thread::sleep(Duration::from_secs(2));
        if terminal.written().is_empty() { Vec::new() } else { vec!["something is drawn".to_owned()] }
    });
    terminal.press("q");
    assert!(terminal.ended().success());
}
