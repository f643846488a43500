//! Processes in `gpumon top`: signals, details, and the process tree.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use super::{configure, quit, top};
use crate::support::{Fake, Tty, eventually, signal, stdout};

#[test]
fn a_process_gets_a_signal_after_a_question() {
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = sleeper.id();
    let fake = Fake::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n"
    ));
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    terminal.wait_for(&pid.to_string());
    terminal.press("\u{1b}[B");
    terminal.press("T");
    terminal.wait_for("Send SIGTERM to process");
    assert!(
        sleeper.try_wait().unwrap().is_none(),
        "a question is not an answer"
    );
    terminal.press("y");
    let ended = sleeper.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&ended),
        Some(15)
    );
    terminal.wait_for("has ended");
    quit(&mut terminal, "q");
}

#[test]
fn tagged_processes_get_a_signal_after_one_question() {
    let mut sleepers: Vec<_> = (0..3)
        .map(|_| Command::new("sleep").arg("600").spawn().unwrap())
        .collect();
    let processes = sleepers.iter().enumerate().map(|(gpu, sleeper)| {
        format!(
            "[[process]]\ngpu = {gpu}\npid = {}\nmemory = \"12 GiB\"\n",
            sleeper.id()
        )
    });
    let fake = Fake::new(&format!("gpus = 3\n{}", processes.collect::<String>()));
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    terminal.wait_for(&sleepers[2].id().to_string());
    // Tagging moves the cursor down, so these are the first two processes of the list.
    terminal.press("\u{1b}[B");
    terminal.press("  K");
    terminal.wait_for("to 2 processes?");
    terminal.press("y");
    terminal.wait_for("2 processes have ended");
    assert!(sleepers[2].try_wait().unwrap().is_none());
    quit(&mut terminal, "q");
    for sleeper in &mut sleepers {
        let _ = sleeper.kill();
        sleeper.wait().unwrap();
    }
}

#[test]
fn the_screen_of_a_process_shows_its_environment_without_its_secrets() {
    let mut sleeper = Command::new("sleep")
        .arg("600")
        .env_clear()
        .env("API_KEY", "hidden")
        .spawn()
        .unwrap();
    let pid = sleeper.id();
    let fake = Fake::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n"
    ));
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 40);
    terminal.wait_for(&pid.to_string());
    terminal.press("\u{1b}[B\r");
    terminal.wait_for("API_KEY=********");
    for chart in ["Host memory", "Disk I/O", "GPU memory", "Power share"] {
        terminal.wait_for(chart);
    }
    assert!(!terminal.written().contains("hidden"));
    terminal.press("s");
    terminal.wait_for("API_KEY=hidden");
    quit(&mut terminal, "qq");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn without_signals_none_is_asked_for() {
    let fake = Fake::new("gpus = 1\n[[process]]\ngpu = 0\npid = 1\nmemory = \"12 GiB\"\n");
    let mut terminal = Tty::start(&top(&fake, &["--readonly"]), 120, 30);
    terminal.wait_for("12.0 GiB");
    terminal.press("\u{1b}[B");
    terminal.press("T");
    terminal.wait_for("no signal can be sent: this was started with --readonly");
    quit(&mut terminal, "q");
}

#[test]
fn a_process_that_this_pid_namespace_does_not_have_is_not_said_to_have_ended() {
    let fake = Fake::new("gpus = 1\n[[process]]\ngpu = 0\npid = 4194305\nmemory = \"12 GiB\"\n");
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    terminal.wait_for("4194305");
    terminal.press("\u{1b}[B");
    terminal.press("T");
    terminal.wait_for("runs in another PID namespace");
    quit(&mut terminal, "q");
}

#[test]
fn what_processes_take_of_the_host_is_shown_of_any_user_and_a_dash_has_its_reason() {
    use std::os::unix::process::CommandExt;
    let mut busy = Command::new("sh");
    // The process ends by itself, even if the test fails.
    busy.args(["-c", "ulimit -t 20; while :; do :; done"]);
    // Only root can start a process of another user.
    if rustix::process::geteuid().is_root() {
        busy.uid(65534);
    }
    let mut busy = busy.spawn().unwrap();
    let pid = busy.id();
    let fake = Fake::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n[[process]]\ngpu = 0\npid = 4194305\nmemory = \"1 GiB\"\n"
    ));
    let row = |pid: u32| {
        let screen = stdout(&top(&fake, &["--once"]).output().unwrap());
        screen
            .lines()
            .find(|line| line.contains(&format!(" {pid} ")))
            .unwrap_or_default()
            .to_owned()
    };
    eventually("its CPU time is compared", || {
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
    let mut terminal = Tty::start(&top(&fake, &[]), 120, 30);
    terminal.wait_for("HOST MEM");
    terminal.press("\u{1b}[B\u{1b}[B\r");
    terminal.wait_for(
        "the process runs in another PID namespace (a container or the host), or has ended",
    );
    quit(&mut terminal, "qq");
    busy.kill().unwrap();
    busy.wait().unwrap();
}

#[test]
fn a_tree_has_the_shell_above_the_process() {
    // The process ends by itself, even if the test fails.
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
    let fake = Fake::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"12 GiB\"\n"
    ));
    configure(&fake, "tree = true\n");
    let screen = stdout(&top(&fake, &["--once"]).output().unwrap());
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
    signal("-KILL", pid.parse().unwrap());
    shell.wait().unwrap();
}
