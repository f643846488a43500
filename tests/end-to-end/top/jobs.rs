//! Job control of `gpumon top`, and its handling of signals.

use std::process::Command;

use super::{ENTERS, LEAVES, quit, top};
use crate::support::{Fake, Tty, eventually, set_variables_of, signal};

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
    eventually("it is stopped", || {
        state_of(&terminal.pid().to_string()) == Some('T')
    });
    assert!(terminal.is_as_before());
    terminal.forget();
    signal("-CONT", terminal.pid());
    terminal.wait_for_sequence(ENTERS);
    terminal.wait_for("WHAT");
    quit(&mut terminal, "q");
}

/// Starts an interactive bash on a terminal, in which `top` is an alias of the command.
pub(super) fn start_shell(fake: &Fake) -> Tty {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-i"])
        .env("PS1", "$ ")
        .env("HISTFILE", "/dev/null");
    let top = top(fake, &[]);
    set_variables_of(&mut bash, &top);
    let mut terminal = Tty::start(&bash, 100, 30);
    let words: Vec<_> = [top.get_program()]
        .into_iter()
        .chain(top.get_args())
        .collect();
    let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
    terminal.press(&format!("alias top='{}'\r", words.join(" ")));
    terminal
}

/// Returns a shell that runs a script with the command as its arguments.
fn in_shell(script: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    set_variables_of(&mut shell, command);
    shell
}

/// Returns the letter for a process's state; `None` if there is no such process.
fn state_of(pid: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ").unwrap().1.chars().next()
}

/// Returns whether the shell's job already handles SIGTERM.
fn handles_requests_to_end(pid: &str) -> bool {
    // SIGTERM is the 15th signal.
    const SIGTERM: u64 = 1 << 14;
    let is_top = std::fs::read_link(format!("/proc/{pid}/exe"))
        .is_ok_and(|program| program.ends_with("gpumon"));
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let handled = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    is_top && handled.is_some_and(|signals| signals & SIGTERM != 0)
}

/// Ends the job with `kill`. The shell must report that it is done.
fn end_job(terminal: &mut Tty) {
    let pid = terminal.pid().to_string();
    eventually("the job handles signals", || handles_requests_to_end(&pid));
    terminal.forget();
    terminal.press("kill %1\r");
    eventually("the job ends", || state_of(&pid).is_none());
    // The shell reports this before the next prompt.
    terminal.press("\r");
    terminal.wait_for("Done");
}

#[test]
fn a_terminal_that_is_closed_ends_it_quietly() {
    let fake = Fake::new("gpus = 1");
    let complaints = fake.path("complaints");
    // The cases are: with the signal; without the signal but with something to draw; without both.
    for (in_session, interval_ms) in [(true, "60000"), (false, "100"), (false, "60000")] {
        for into_file in [false, true] {
            let mut command = top(&fake, &["--interval-ms", interval_ms]);
            if into_file {
                command = in_shell(&format!("exec \"$@\" 2>{}", complaints.display()), &command);
            }
            let start = if in_session {
                Tty::start
            } else {
                Tty::of_no_session
            };
            let mut terminal = start(&command, 100, 30);
            terminal.wait_for("WHAT");
            terminal.hang_up();
            let status = terminal.ended();
            assert!(
                status.success(),
                "{status}, in session: {in_session}, {interval_ms} ms"
            );
            if into_file {
                assert_eq!(std::fs::read_to_string(&complaints).unwrap(), "");
            }
        }
    }
}

#[test]
fn a_stopped_job_can_be_ended_and_brought_back() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = start_shell(&fake);
    // Typed text is echoed, so the shell builds the expected text from two parts.
    terminal.press("top\r");
    terminal.wait_for("WHAT");
    terminal.press("\u{1a}");
    terminal.wait_for("Stopped");
    end_job(&mut terminal);
    // In the background, the program leaves the terminal alone. In the foreground, it continues.
    terminal.press("top\r");
    terminal.wait_for("WHAT");
    terminal.press("\u{1a}");
    terminal.wait_for("Stopped");
    terminal.forget();
    terminal.press("bg\r");
    terminal.press("sleep 1; jobs -r | wc -l | sed 's/^/running: /'\r");
    terminal.wait_for("running: 1");
    assert!(
        !terminal.written().contains(ENTERS),
        "{}",
        terminal.written()
    );
    terminal.press("fg\r");
    terminal.wait_for_sequence(ENTERS);
    terminal.wait_for("WHAT");
    terminal.press("q");
    terminal.wait_for_sequence(LEAVES);
    terminal.press("echo \"left with \"$?\r");
    terminal.wait_for("left with 0");
}

#[test]
fn a_job_that_was_stopped_or_started_behind_can_be_ended() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = start_shell(&fake);
    terminal.press("top &\r");
    terminal.press("sleep 2; jobs -r | wc -l | sed 's/^/running: /'\r");
    terminal.wait_for("running: 1");
    end_job(&mut terminal);
    // SIGSTOP from another process leaves the program no time to restore the terminal.
    terminal.press("top\r");
    terminal.wait_for("WHAT");
    signal("-STOP", terminal.pid());
    terminal.wait_for("Stopped");
    end_job(&mut terminal);
    terminal.wait_for_sequence(LEAVES);
}

#[test]
fn a_job_that_nobody_can_bring_back_ends() {
    let fake = Fake::new("gpus = 1");
    let mut terminal = start_shell(&fake);
    let pid_file = fake.path("pid");
    // The inner shell exits while its job waits in the background. The outer shell never had that
    // job.
    let inner = format!(
        "set -m; eval \"$TOP &\"; echo $! > {}; sleep 2; kill -0 $!; echo \"waits: \"$?",
        pid_file.display()
    );
    terminal.press("export TOP=\"${BASH_ALIASES[top]}\"\r");
    terminal.press(&format!("bash --norc --noprofile -c '{inner}'\r"));
    terminal.wait_for("waits: 0");
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    eventually(
        "it has ended",
        || !matches!(state_of(pid.trim()), Some(state) if state != 'Z'),
    );
}

#[test]
fn a_deadly_signal_is_died_of_after_the_terminal_is_given_back() {
    for (name, number) in [
        ("-QUIT", 3),
        ("-USR1", 10),
        ("-USR2", 12),
        ("-ALRM", 14),
        ("-XCPU", 24),
    ] {
        let fake = Fake::new("gpus = 1");
        // Signals with a core dump must not write one.
        let command = in_shell("ulimit -c 0; exec \"$@\"", &top(&fake, &[]));
        let mut terminal = Tty::start(&command, 80, 24);
        terminal.wait_for("WHAT");
        signal(name, terminal.pid());
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&terminal.ended()),
            Some(number),
            "{name}"
        );
        terminal.wait_for_sequence(LEAVES);
        assert!(terminal.is_as_before(), "{name}");
    }
}
