//! The automatic theme, which follows the background of the terminal.

use std::{process::Command, thread, time::Duration};

use super::{ENTER_ALTERNATE_SCREEN, LEAVE_ALTERNATE_SCREEN, quit, top_command, write_settings};
use crate::support::{FakeNvml, Tty};

const BACKGROUND_QUERY: &str = "\u{1b}]11;?\u{7}";
const LIGHT_RESPONSE: &str = "\u{1b}]11;rgb:ffff/ffff/ffff\u{7}";
const DARK_RESPONSE: &str = "\u{1b}]11;rgb:1e1e/1e1e/2e2e\u{1b}\\";
/// The color sequences of utilization: in the light theme, and in the dark theme.
const LIGHT_THEME_COLOR: &str = "38;5;25;";
const DARK_THEME_COLOR: &str = "38;5;12;";

/// Starts the program and waits until it has queried the terminal's background color. It sends this
/// query together with the first frame.
fn start_and_await_query(fake: &FakeNvml, arguments: &[&str]) -> Tty {
    let terminal = Tty::start(&top_command(fake, arguments), 100, 30);
    terminal.wait_for_sequence(BACKGROUND_QUERY);
    terminal.wait_for_text("WHAT");
    terminal
}

#[test]
fn only_light_terminal_gets_light_theme() {
    let fake = FakeNvml::new("gpus = 1");
    let mut terminal = start_and_await_query(&fake, &["--interval-ms", "60000"]);
    assert!(
        terminal.output_text().contains(DARK_THEME_COLOR),
        "the dark theme is used until the terminal answers"
    );
    terminal.discard_output();
    terminal.press(LIGHT_RESPONSE);
    terminal.wait_for_sequence(LIGHT_THEME_COLOR);
    terminal.press("C");
    terminal.wait_for_text("theme: dark; press W to save it");
    quit(&mut terminal, "q");
    let mut terminal = start_and_await_query(&fake, &["--interval-ms", "60000"]);
    terminal.press(DARK_RESPONSE);
    // The help redraws the screen, so it shows the current theme.
    terminal.press("?");
    terminal.wait_for_text("redraw the screen");
    assert!(!terminal.output_text().contains(LIGHT_THEME_COLOR));
    terminal.press("q");
    terminal.press("C");
    terminal.wait_for_text("theme: light; press W to save it");
    quit(&mut terminal, "q");
}

#[test]
fn late_background_response_is_not_read_as_keys() {
    let fake = FakeNvml::new("gpus = 1");
    write_settings(&fake, "view = \"host\"\n");
    let mut terminal = start_and_await_query(&fake, &["--interval-ms", "60000"]);
    terminal.wait_for_text("Network TX");
    thread::sleep(Duration::from_secs(1));
    for piece in ["\u{1b}]", "11", ";rgb:ffff/ff", "ff/ffff\u{1b}", "\\"] {
        terminal.press(piece);
        thread::sleep(Duration::from_millis(100));
    }
    terminal.wait_for_sequence(LIGHT_THEME_COLOR);
    // The terminal's answer contains the characters `1` and `]`. If the program took `1` for a key,
    // it would show another view. For `]`, it would report that the key is not assigned.
    terminal.wait_for_text("Network TX");
    assert!(!terminal.output_text().contains("assigned"));
    quit(&mut terminal, "q");
}

#[test]
fn missing_background_response_does_not_delay_top() {
    let fake = FakeNvml::new("gpus = 1");
    let mut terminal = start_and_await_query(&fake, &[]);
    thread::sleep(Duration::from_millis(300));
    quit(&mut terminal, "q");
    assert!(!terminal.output_text().contains(LIGHT_THEME_COLOR));
    assert_eq!(terminal.output_text().matches(BACKGROUND_QUERY).count(), 1);
    let mut command = top_command(&fake, &[]);
    command.env("COLORFGBG", "0;15");
    let mut terminal = Tty::start(&command, 100, 30);
    terminal.wait_for_text("WHAT");
    assert!(terminal.output_text().contains(LIGHT_THEME_COLOR));
    quit(&mut terminal, "q");
}

#[test]
fn background_query_is_sent_only_for_automatic_theme() {
    let fake = FakeNvml::new("gpus = 1");
    let check = |command: &Command, keys: &str| {
        let mut terminal = Tty::start(command, 100, 30);
        terminal.wait_for_text("WHAT");
        terminal.press(keys);
        assert!(terminal.wait_for_end().success());
        assert!(!terminal.output_text().contains("\u{1b}]"), "{command:?}");
    };
    check(&top_command(&fake, &["--theme", "dark"]), "q");
    check(&top_command(&fake, &["--once"]), "");
    for (name, value) in [
        ("NO_COLOR", "1"),
        ("TERM", "linux"),
        ("GPUMON_TOP_THEME", "light"),
    ] {
        let mut command = top_command(&fake, &[]);
        command.env(name, value);
        check(&command, "q");
    }
    write_settings(&fake, "theme = \"monochrome\"\n");
    check(&top_command(&fake, &[]), "q");
    // The automatic theme can be selected with a key.
    let mut terminal = Tty::start(&top_command(&fake, &[]), 100, 30);
    terminal.wait_for_text("WHAT");
    terminal.press("C");
    terminal.wait_for_sequence(BACKGROUND_QUERY);
    terminal.press(LIGHT_RESPONSE);
    terminal.wait_for_sequence(LIGHT_THEME_COLOR);
    quit(&mut terminal, "q");
}

#[test]
fn shell_never_receives_query_response() {
    let fake = FakeNvml::new("gpus = 1");
    let mut terminal = super::jobs::start_shell(&fake);
    // In the background, the program sends no query.
    terminal.press("top &\r");
    terminal.press("sleep 2; jobs -r | wc -l | sed 's/^/running: /'\r");
    terminal.wait_for_text("running: 1");
    assert!(!terminal.output_text().contains(BACKGROUND_QUERY));
    for (command, leave) in [("fg", "\u{1a}"), ("fg", "q")] {
        terminal.discard_output();
        terminal.press(&format!("{command}\r"));
        terminal.wait_for_sequence(ENTER_ALTERNATE_SCREEN);
        terminal.wait_for_sequence(BACKGROUND_QUERY);
        terminal.press(leave);
        thread::sleep(Duration::from_millis(20));
        terminal.press(LIGHT_RESPONSE);
        terminal.wait_for_sequence(LEAVE_ALTERNATE_SCREEN);
        terminal.press("\recho the \"end\"\r");
        terminal.wait_for_text("the end");
        // The shell would echo an answer that it received.
        assert!(
            !terminal.output_text().contains("rgb:"),
            "{}",
            terminal.output_text()
        );
    }
}
