//! Processes in `gpumon top`: signals, details, and the process tree.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use super::{quit, top_command, write_settings};
use crate::support::{FakeNvml, Tty, send_signal, stdout_text, wait_for_condition};

#[test]
fn signal_needs_confirmation() {
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = sleeper.id();
    let fake = FakeNvml::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n"
    ));
    let mut terminal = Tty::start(&top_command(&fake, &[]), 120, 30);
    terminal.wait_for_text(&pid.to_string());
    terminal.press("\u{1b}[B");
    terminal.press("T");
    terminal.wait_for_text("Send SIGTERM to process");
    assert!(
        sleeper.try_wait().unwrap().is_none(),
        "the signal must not be sent before the confirmation"
    );
    terminal.press("y");
    let ended = sleeper.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&ended),
        Some(15)
    );
    terminal.wait_for_text("has ended");
    quit(&mut terminal, "q");
}

#[test]
fn tagged_processes_get_signal_after_one_confirmation() {
    let mut sleepers: Vec<_> = (0..3)
        .map(|_| Command::new("sleep").arg("600").spawn().unwrap())
        .collect();
    let processes = sleepers.iter().enumerate().map(|(gpu, sleeper)| {
        format!(
            "[[process]]\ngpu = {gpu}\npid = {}\nmemory = \"12 GiB\"\n",
            sleeper.id()
        )
    });
    let fake = FakeNvml::new(&format!("gpus = 3\n{}", processes.collect::<String>()));
    let mut terminal = Tty::start(&top_command(&fake, &[]), 120, 30);
    terminal.wait_for_text(&sleepers[2].id().to_string());
    // Tagging a process moves the cursor to the next one. So the first two processes of the list
    // are tagged.
    terminal.press("\u{1b}[B");
    terminal.press("  K");
    terminal.wait_for_text("to 2 processes?");
    terminal.press("y");
    terminal.wait_for_text("2 processes have ended");
    assert!(sleepers[2].try_wait().unwrap().is_none());
    quit(&mut terminal, "q");
    for sleeper in &mut sleepers {
        let _ = sleeper.kill();
        sleeper.wait().unwrap();
    }
}

#[test]
fn process_details_hide_secrets_of_environment() {
    let mut sleeper = Command::new("sleep")
        .arg("600")
        .env_clear()
        .env("API_KEY", "hidden")
        .spawn()
        .unwrap();
    let pid = sleeper.id();
    let fake = FakeNvml::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n"
    ));
    let mut terminal = Tty::start(&top_command(&fake, &[]), 120, 40);
    terminal.wait_for_text(&pid.to_string());
    terminal.press("\u{1b}[B\r");
    terminal.wait_for_text("API_KEY=********");
    for chart in ["Host memory", "Disk I/O", "GPU memory", "Power share"] {
        terminal.wait_for_text(chart);
    }
    assert!(!terminal.output_text().contains("hidden"));
    terminal.press("s");
    terminal.wait_for_text("API_KEY=hidden");
    quit(&mut terminal, "qq");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn disabled_signals_are_not_offered() {
    let fake = FakeNvml::new("gpus = 1\n[[process]]\ngpu = 0\npid = 1\nmemory = \"12 GiB\"\n");
    let mut terminal = Tty::start(&top_command(&fake, &["--readonly"]), 120, 30);
    terminal.wait_for_text("12.0 GiB");
    terminal.press("\u{1b}[B");
    terminal.press("T");
    terminal.wait_for_text("no signal can be sent: gpumon was started with --readonly");
    quit(&mut terminal, "q");
}

#[test]
fn process_in_other_namespace_is_not_considered_ended() {
    let fake =
        FakeNvml::new("gpus = 1\n[[process]]\ngpu = 0\npid = 4194305\nmemory = \"12 GiB\"\n");
    let mut terminal = Tty::start(&top_command(&fake, &[]), 120, 30);
    terminal.wait_for_text("4194305");
    terminal.press("\u{1b}[B");
    terminal.press("T");
    terminal.wait_for_text("runs in another PID namespace");
    quit(&mut terminal, "q");
}

#[test]
fn host_usage_is_shown_for_all_users() {
    use std::os::unix::process::CommandExt;
    let mut busy = Command::new("sh");
    // The limit of CPU time ends the process, even if the test fails.
    busy.args(["-c", "ulimit -t 20; while :; do :; done"]);
    // Only root can start a process of another user.
    if rustix::process::geteuid().is_root() {
        busy.uid(65534);
    }
    let mut busy = busy.spawn().unwrap();
    let pid = busy.id();
    let fake = FakeNvml::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n[[process]]\ngpu = \
         0\npid = 4194305\nmemory = \"1 GiB\"\n"
    ));
    let row = |pid: u32| {
        let screen = stdout_text(&top_command(&fake, &["--once"]).output().unwrap());
        screen
            .lines()
            .find(|line| line.contains(&format!(" {pid} ")))
            .unwrap_or_default()
            .to_owned()
    };
    wait_for_condition("the CPU use of the process is shown", || {
        let row = row(pid);
        let words: Vec<_> = row.split_whitespace().collect();
        // The columns are GPU, PID, USER, MEMORY in GiB, GPU use, SM, ..., CPU, HOST MEM, TIME,
        // WHAT.
        let host = words
            .iter()
            .rposition(|word| *word == "GiB")
            .filter(|at| *at > 6);
        host.is_some_and(|at| {
            words[at - 2] == "%"
                && words[at - 3]
                    .parse::<f64>()
                    .is_ok_and(|percent| percent > 0.0)
        })
    });
    assert!(
        row(4_194_305).contains("-          -"),
        "{}",
        row(4_194_305)
    );
    let mut terminal = Tty::start(&top_command(&fake, &[]), 120, 30);
    terminal.wait_for_text("HOST MEM");
    terminal.press("\u{1b}[B\u{1b}[B\r");
    terminal.wait_for_text(
        "the process runs in another PID namespace (a container or the host), or has ended",
    );
    quit(&mut terminal, "qq");
    busy.kill().unwrap();
    busy.wait().unwrap();
}

#[test]
fn process_tree_contains_parent_shell() {
    // The process ends after a minute, even if the test fails.
    let mut shell = Command::new("sh");
    let mut shell = shell
        .args(["-c", "sleep 60 & echo $!; wait"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let pid = line.trim();
    let fake = FakeNvml::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n"
    ));
    write_settings(&fake, "tree = true\n");
    let screen = stdout_text(&top_command(&fake, &["--once"]).output().unwrap());
    let rows: Vec<_> = screen
        .lines()
        .skip_while(|line| !line.starts_with("GPU      PID"))
        .collect();
    let at = rows
        .iter()
        .position(|row| row.contains("12.0 GiB"))
        .unwrap();
    assert!(
        rows[at].contains(pid) && rows[at].contains("└ sleep 60"),
        "{screen}"
    );
    let above = rows[at - 1];
    assert!(
        above.contains(&format!(" {} ", shell.id())) && above.trim_end().ends_with("─ sh"),
        "{screen}"
    );
    assert!(rows[0].ends_with("tree  1 process"), "{screen}");
    send_signal("-KILL", pid.parse().unwrap());
    shell.wait().unwrap();
}
