//! The automatic theme, which follows the background of the terminal.

use std::{process::Command, thread, time::Duration};

use super::{ENTERS, LEAVES, configure, quit, top};
use crate::support::{Fake, Tty};

const QUERY: &str = "\u{1b}]11;?\u{7}";
const LIGHT: &str = "\u{1b}]11;rgb:ffff/ffff/ffff\u{7}";
const DARK: &str = "\u{1b}]11;rgb:1e1e/1e1e/2e2e\u{1b}\\";
/// The color sequences of utilization in the two themes.
const ON_LIGHT: &str = "38;5;25;";
const ON_DARK: &str = "38;5;12;";

/// Starts the program and waits for the query, which is sent with the first frame.
fn start(fake: &Fake, arguments: &[&str]) -> Tty {
    let terminal = Tty::start(&top(fake, arguments), 100, 30);
    terminal.wait_for_sequence(QUERY);
    terminal.wait_for("WHAT");
    terminal
}

#[test]
fn light_terminal_alone_gets_light_theme() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = start(&fake, &["--interval-ms", "60000"]);
    assert!(terminal.written().contains(ON_DARK), "until the answer");
    terminal.forget();
    terminal.press(LIGHT);
    terminal.wait_for_sequence(ON_LIGHT);
    terminal.press("C");
    terminal.wait_for("theme: dark; W saves it");
    quit(&mut terminal, "q");
    let mut terminal = start(&fake, &["--interval-ms", "60000"]);
    terminal.press(DARK);
    // The help redraws the screen, so it shows the current theme.
    terminal.press("?");
    terminal.wait_for("everything anew");
    assert!(!terminal.written().contains(ON_LIGHT));
    terminal.press("q");
    terminal.press("C");
    terminal.wait_for("theme: light; W saves it");
    quit(&mut terminal, "q");
}

#[test]
fn late_answer_is_not_read_as_keys() {
    let fake = Fake::new("gpus = 1");
    configure(&fake, "view = \"host\"\n");
    let mut terminal = start(&fake, &["--interval-ms", "60000"]);
    terminal.wait_for("Network TX");
    thread::sleep(Duration::from_secs(1));
    for piece in ["\u{1b}]", "11", ";rgb:ffff/ff", "ff/ffff\u{1b}", "\\"] {
        terminal.press(piece);
        thread::sleep(Duration::from_millis(100));
    }
    terminal.wait_for_sequence(ON_LIGHT);
    // If a 1 of the answer were read as a key, another view would be shown, and `]` would be
    // reported as not assigned.
    terminal.wait_for("Network TX");
    assert!(!terminal.written().contains("assigned"));
    quit(&mut terminal, "q");
}

#[test]
fn terminal_without_answer_is_not_waited_for() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = start(&fake, &[]);
    thread::sleep(Duration::from_millis(300));
    quit(&mut terminal, "q");
    assert!(!terminal.written().contains(ON_LIGHT));
    assert_eq!(terminal.written().matches(QUERY).count(), 1);
    let mut command = top(&fake, &[]);
    command.env("COLORFGBG", "0;15");
    let mut terminal = Tty::start(&command, 100, 30);
    terminal.wait_for("WHAT");
    assert!(terminal.written().contains(ON_LIGHT));
    quit(&mut terminal, "q");
}

#[test]
fn query_is_sent_only_for_automatic_theme() {
    let fake = Fake::new("gpus = 1");
    let check = |command: &Command, keys: &str| {
        let mut terminal = Tty::start(command, 100, 30);
        terminal.wait_for("WHAT");
        terminal.press(keys);
        assert!(terminal.ended().success());
        assert!(!terminal.written().contains("\u{1b}]"), "{command:?}");
    };
    check(&top(&fake, &["--theme", "dark"]), "q");
    check(&top(&fake, &["--once"]), "");
    for (name, value) in [
        ("NO_COLOR", "1"),
        ("TERM", "linux"),
        ("GPUMON_TOP_THEME", "light"),
    ] {
        let mut command = top(&fake, &[]);
        command.env(name, value);
        check(&command, "q");
    }
    configure(&fake, "theme = \"monochrome\"\n");
    check(&top(&fake, &[]), "q");
    // The automatic theme can be selected with a key.
    let mut terminal = Tty::start(&top(&fake, &[]), 100, 30);
    terminal.wait_for("WHAT");
    terminal.press("C");
    terminal.wait_for_sequence(QUERY);
    terminal.press(LIGHT);
    terminal.wait_for_sequence(ON_LIGHT);
    quit(&mut terminal, "q");
}

#[test]
fn shell_never_gets_an_answer() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = super::jobs::start_shell(&fake);
    // In the background, the program sends no query.
    terminal.press("top &\r");
    terminal.press("sleep 2; jobs -r | wc -l | sed 's/^/running: /'\r");
    terminal.wait_for("running: 1");
    assert!(!terminal.written().contains(QUERY));
    for (command, leave) in [("fg", "\u{1a}"), ("fg", "q")] {
        terminal.forget();
        terminal.press(&format!("{command}\r"));
        terminal.wait_for_sequence(ENTERS);
        terminal.wait_for_sequence(QUERY);
        terminal.press(leave);
        thread::sleep(Duration::from_millis(20));
        terminal.press(LIGHT);
        terminal.wait_for_sequence(LEAVES);
        terminal.press("\recho the \"end\"\r");
        terminal.wait_for("the end");
        // The shell would echo an answer that it received.
        assert!(
            !terminal.written().contains("rgb:"),
            "{}",
            terminal.written()
        );
    }
}
