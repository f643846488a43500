//! Output on a terminal, depending on its size, its capabilities and the user's settings.

use std::process::Command;

use crate::support::{FakeNvml, Terminal, copy_program, gpumon_command, stdout_text};

const ESCAPE: char = '\u{1b}';

/// Returns the output of the command on a terminal of this size.
fn terminal_output(mut command: Command, columns: u16, change: impl Fn(&mut Command)) -> String {
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    change(&mut command);
    let (text, code) = Terminal::start(command, columns, 50).wait_for_end();
    assert_eq!(code, Some(0), "{text}");
    text
}

fn strip_escapes(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn table_fits_terminal_and_keeps_important_columns() {
    for columns in [60_u16, 80, 120, 200] {
        // On a busy machine, some GPUs may be late.
        let table = || {
            strip_escapes(&terminal_output(
                gpumon_command(&["--source", "sim:8"]),
                columns,
                |_| {},
            ))
        };
        let text = (0..5)
            .map(|_| table())
            .find(|text| !text.contains("not responding"))
            .expect("one output must have all GPUs");
        for line in text.lines() {
            assert!(line.chars().count() <= columns.into(), "{columns}: {line}");
        }
        for expected in [" %", "/140 GiB", "°C", "/700 W", "PID", "USER", "WHAT"] {
            assert!(
                text.contains(expected),
                "{expected:?} is missing in {columns} columns:\n{text}"
            );
        }
    }
}

#[test]
fn colors_follow_user_and_terminal_settings() {
    let table = || gpumon_command(&["--source", "sim:2"]);
    assert!(terminal_output(table(), 80, |_| {}).contains(ESCAPE));
    assert!(
        !terminal_output(table(), 80, |command| {
            command.env("NO_COLOR", "1");
        })
        .contains(ESCAPE)
    );
    assert!(
        !terminal_output(table(), 80, |command| {
            command.args(["--color", "never"]);
        })
        .contains(ESCAPE)
    );
    let insisted = |command: &mut Command| {
        command.env("NO_COLOR", "1").args(["--color", "always"]);
    };
    assert!(terminal_output(table(), 80, insisted).contains(ESCAPE));
    let piped = |change: fn(&mut Command)| {
        let mut command = table();
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        change(&mut command);
        stdout_text(&command.output().unwrap())
    };
    assert!(!piped(|_| {}).contains(ESCAPE));
    assert!(
        piped(|command| {
            command.env("CLICOLOR_FORCE", "1");
        })
        .contains(ESCAPE)
    );
    assert!(
        piped(|command| {
            command.args(["--color", "always"]);
        })
        .contains(ESCAPE)
    );
}

#[test]
fn dumb_terminal_gets_plain_text() {
    for (name, value) in [("TERM", "dumb"), ("LC_ALL", "C")] {
        let text = terminal_output(gpumon_command(&["--source", "sim:4"]), 80, |command| {
            command.env(name, value).env("CI", "true");
        });
        assert!(
            strip_escapes(&text).is_ascii() && strip_escapes(&text).contains(" C  "),
            "{name}={value}: {text}"
        );
        assert!(
            name == "LC_ALL" || !text.contains(ESCAPE),
            "{name}={value}: {text}"
        );
    }
}

#[test]
fn wide_letters_keep_lines_aligned() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder
        .path()
        .join("訓練データを長い名前で読み込むプログラム🦀".repeat(2));
    copy_program("/bin/sleep", &odd);
    let mut sleeper = Command::new(&odd).arg("600").spawn().unwrap();
    let fake = FakeNvml::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {}\nmemory = \"1 GiB\"\n",
        sleeper.id()
    ));
    let text = strip_escapes(&terminal_output(fake.gpumon_command(&[]), 60, |_| {}));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let line = text
        .lines()
        .find(|line| line.contains(&sleeper.id().to_string()))
        .unwrap();
    assert!(
        line.ends_with('…') && unicode_width::UnicodeWidthStr::width(line) <= 60,
        "{line}"
    );
}
