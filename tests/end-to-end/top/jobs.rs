//! Job control of `gpumon top`, and its handling of signals.

use std::process::Command;

use super::{ENTER_ALTERNATE_SCREEN, LEAVE_ALTERNATE_SCREEN, quit, top_command};
use crate::support::{FakeNvml, Tty, copy_variables, send_signal, wait_for_condition};

#[test]
fn signal_ends_top_and_restores_terminal() {
    for name in ["-TERM", "-INT", "-HUP"] {
        let fake = FakeNvml::new("gpus = 1");
        let mut terminal = Tty::start(&top_command(&fake, &[]), 80, 24);
        terminal.wait_for_text("WHAT");
        send_signal(name, terminal.pid());
        assert!(terminal.wait_for_end().success(), "{name}");
        terminal.wait_for_sequence(LEAVE_ALTERNATE_SCREEN);
        assert!(terminal.is_restored(), "{name}");
    }
}

#[test]
fn stopped_top_continues() {
    let fake = FakeNvml::new("gpus = 1");
    let mut terminal = Tty::start(&top_command(&fake, &[]), 80, 24);
    terminal.wait_for_text("WHAT");
    terminal.press("\u{1a}");
    terminal.wait_for_sequence(LEAVE_ALTERNATE_SCREEN);
    wait_for_condition("the job is stopped", || {
        process_state(&terminal.pid().to_string()) == Some('T')
    });
    assert!(terminal.is_restored());
    terminal.discard_output();
    send_signal("-CONT", terminal.pid());
    terminal.wait_for_sequence(ENTER_ALTERNATE_SCREEN);
    terminal.wait_for_text("WHAT");
    quit(&mut terminal, "q");
}

/// Starts an interactive bash on a terminal, in which `top` is an alias of the command.
pub(super) fn start_shell(fake: &FakeNvml) -> Tty {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-i"])
        .env("PS1", "$ ")
        .env("HISTFILE", "/dev/null");
    let top = top_command(fake, &[]);
    copy_variables(&mut bash, &top);
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
fn shell_command(script: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    copy_variables(&mut shell, command);
    shell
}

/// Returns the letter for a process's state; `None` if there is no such process.
fn process_state(pid: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ").unwrap().1.chars().next()
}

/// Returns whether gpumon is already running as this process and handles SIGTERM.
fn handles_sigterm(pid: &str) -> bool {
    // SIGTERM has the number 15, so it is bit 14 of the mask.
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
    wait_for_condition("the job handles SIGTERM", || handles_sigterm(&pid));
    terminal.discard_output();
    terminal.press("kill %1\r");
    wait_for_condition("the job has ended", || process_state(&pid).is_none());
    // The shell reports the end of a job before the next prompt.
    terminal.press("\r");
    terminal.wait_for_text("Done");
}

#[test]
fn closed_terminal_ends_top_quietly() {
    let fake = FakeNvml::new("gpus = 1");
    let complaints = fake.path("complaints");
    // In the first case, the program gets a signal. In the others, it gets none: in the second, it
    // soon has something to draw, and in the third, it has nothing to draw.
    for (in_session, interval_ms) in [(true, "60000"), (false, "100"), (false, "60000")] {
        for into_file in [false, true] {
            let mut command = top_command(&fake, &["--interval-ms", interval_ms]);
            if into_file {
                command =
                    shell_command(&format!("exec \"$@\" 2>{}", complaints.display()), &command);
            }
            let start = if in_session {
                Tty::start
            } else {
                Tty::start_without_session
            };
            let mut terminal = start(&command, 100, 30);
            terminal.wait_for_text("WHAT");
            terminal.hang_up();
            let status = terminal.wait_for_end();
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
fn stopped_job_can_be_ended_or_continued() {
    let fake = FakeNvml::new("gpus = 1");
    let mut terminal = start_shell(&fake);
    // The terminal echoes typed text, so the typed text must not contain the text that the test
    // waits for. Therefore the shell composes a text such as `running: 1` from two parts.
    terminal.press("top\r");
    terminal.wait_for_text("WHAT");
    terminal.press("\u{1a}");
    terminal.wait_for_text("Stopped");
    end_job(&mut terminal);
    // In the background, the program does not change the terminal. In the foreground, it continues.
    terminal.press("top\r");
    terminal.wait_for_text("WHAT");
    terminal.press("\u{1a}");
    terminal.wait_for_text("Stopped");
    terminal.discard_output();
    terminal.press("bg\r");
    terminal.press("sleep 1; jobs -r | wc -l | sed 's/^/running: /'\r");
    terminal.wait_for_text("running: 1");
    assert!(
        !terminal.output_text().contains(ENTER_ALTERNATE_SCREEN),
        "{}",
        terminal.output_text()
    );
    terminal.press("fg\r");
    terminal.wait_for_sequence(ENTER_ALTERNATE_SCREEN);
    terminal.wait_for_text("WHAT");
    terminal.press("q");
    terminal.wait_for_sequence(LEAVE_ALTERNATE_SCREEN);
    terminal.press("echo \"left with \"$?\r");
    terminal.wait_for_text("left with 0");
}

#[test]
fn background_job_can_be_ended() {
    let fake = FakeNvml::new("gpus = 1");
    let mut terminal = start_shell(&fake);
    terminal.press("top &\r");
    terminal.press("sleep 2; jobs -r | wc -l | sed 's/^/running: /'\r");
    terminal.wait_for_text("running: 1");
    end_job(&mut terminal);
    // SIGSTOP from another process leaves the program no time to restore the terminal.
    terminal.press("top\r");
    terminal.wait_for_text("WHAT");
    send_signal("-STOP", terminal.pid());
    terminal.wait_for_text("Stopped");
    end_job(&mut terminal);
    terminal.wait_for_sequence(LEAVE_ALTERNATE_SCREEN);
}

#[test]
fn orphaned_stopped_job_ends() {
    let fake = FakeNvml::new("gpus = 1");
    let mut terminal = start_shell(&fake);
    let pid_file = fake.path("pid");
    // The inner shell exits while its job waits in the background. This job was never a job of the
    // outer shell.
    let inner = format!(
        "set -m; eval \"$TOP &\"; echo $! > {}; sleep 2; kill -0 $!; echo \"waits: \"$?",
        pid_file.display()
    );
    terminal.press("export TOP=\"${BASH_ALIASES[top]}\"\r");
    terminal.press(&format!("bash --norc --noprofile -c '{inner}'\r"));
    terminal.wait_for_text("waits: 0");
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    wait_for_condition(
        "the job has ended",
        || !matches!(process_state(pid.trim()), Some(state) if state != 'Z'),
    );
}

#[test]
fn fatal_signal_restores_terminal_before_death() {
    for (name, number) in [
        ("-QUIT", 3),
        ("-USR1", 10),
        ("-USR2", 12),
        ("-ALRM", 14),
        ("-XCPU", 24),
    ] {
        let fake = FakeNvml::new("gpus = 1");
        // Some of these signals cause a core dump. The limit prevents it from being written.
        let command = shell_command("ulimit -c 0; exec \"$@\"", &top_command(&fake, &[]));
        let mut terminal = Tty::start(&command, 80, 24);
        terminal.wait_for_text("WHAT");
        send_signal(name, terminal.pid());
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&terminal.wait_for_end()),
            Some(number),
            "{name}"
        );
        terminal.wait_for_sequence(LEAVE_ALTERNATE_SCREEN);
        assert!(terminal.is_restored(), "{name}");
    }
}
