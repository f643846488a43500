//! Output on a terminal, depending on its size, its capabilities and the user's settings.

use std::process::Command;

use crate::support::{Fake, Terminal, copy_program, gpumon, stdout};

const ESCAPE: char = '\u{1b}';

/// Returns the output of the command on a terminal of this size.
fn shown(mut command: Command, columns: u16, change: impl Fn(&mut Command)) -> String {
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    change(&mut command);
    let (text, code) = Terminal::with(command, columns, 50).finish();
    assert_eq!(code, Some(0), "{text}");
    text
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn the_table_fits_the_terminal_and_keeps_what_tells_most() {
    for columns in [60_u16, 80, 120, 200] {
        // On a busy machine, some GPUs may be late.
        let table = || plain(&shown(gpumon(&["--source", "sim:8"]), columns, |_| {}));
        let text = (0..5)
            .map(|_| table())
            .find(|text| !text.contains("not responding"))
            .expect("one has all GPUs");
        for line in text.lines() {
            assert!(line.chars().count() <= columns.into(), "{columns}: {line}");
        }
        for expected in [" %", "/140 GiB", "°C", "/700 W", "PID", "USER", "WHAT"] {
            assert!(
                text.contains(expected),
                "{expected} is not there in {columns} columns:\n{text}"
            );
        }
    }
}

#[test]
fn colors_are_as_the_user_and_the_terminal_want_them() {
    let table = || gpumon(&["--source", "sim:2"]);
    assert!(shown(table(), 80, |_| {}).contains(ESCAPE));
    assert!(
        !shown(table(), 80, |command| {
            command.env("NO_COLOR", "1");
        })
        .contains(ESCAPE)
    );
    assert!(
        !shown(table(), 80, |command| {
            command.args(["--color", "never"]);
        })
        .contains(ESCAPE)
    );
    let insisted = |command: &mut Command| {
        command.env("NO_COLOR", "1").args(["--color", "always"]);
    };
    assert!(shown(table(), 80, insisted).contains(ESCAPE));
    let piped = |change: fn(&mut Command)| {
        let mut command = table();
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        change(&mut command);
        stdout(&command.output().unwrap())
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
fn a_terminal_that_can_nothing_gets_plain_text() {
    for (name, value) in [("TERM", "dumb"), ("LC_ALL", "C")] {
        let text = shown(gpumon(&["--source", "sim:4"]), 80, |command| {
            command.env(name, value).env("CI", "true");
        });
        assert!(
            plain(&text).is_ascii() && plain(&text).contains(" C  "),
            "{name}={value}: {text}"
        );
        assert!(
            name == "LC_ALL" || !text.contains(ESCAPE),
            "{name}={value}: {text}"
        );
    }
}

#[test]
fn a_name_of_wide_letters_does_not_break_the_lines() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder
        .path()
        .join("訓練データを長い名前で読み込むプログラム🦀".repeat(2));
    copy_program("/bin/sleep", &odd);
    let mut sleeper = Command::new(&odd).arg("600").spawn().unwrap();
    let fake = Fake::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {}\nmemory = \"1 GiB\"\n",
        sleeper.id()
    ));
    let text = plain(&shown(fake.gpumon(&[]), 60, |_| {}));
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
