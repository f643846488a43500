//! Execution of a program with limits of time and output. A program that exceeds its time is killed
//! with all of its child processes.

use std::{
    env,
    io::{self, Read, Write},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use gpumon_probe::child;
use rustix::process::{Pid, Signal, kill_process_group};

use super::Failure;

/// The maximum number of output bytes that are kept.
const LONGEST_OUTPUT: u64 = 4096;
/// The maximum time for which remaining child processes may keep the output open.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);
/// The maximum number of attempts. It is small, because a program that fails may have done its work
/// already, and repeats it with each attempt.
const ATTEMPTS: u32 = 3;
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The exit status and output of a program.
#[derive(Debug)]
pub(super) struct Output {
    program: String,
    status: ExitStatus,
    /// Standard output and standard error together.
    pub(super) text: String,
}

impl Output {
    /// Checks that the program succeeded.
    ///
    /// # Errors
    /// Returns the exit status and the last line of output if the program failed.
    pub(super) fn success(&self) -> Result<(), Failure> {
        if self.status.success() {
            return Ok(());
        }
        let said = self
            .text
            .trim()
            .lines()
            .last()
            .map(|line| format!(": {line}"))
            .unwrap_or_default();
        Err(Failure {
            message: format!("{} failed ({}){said}", self.program, self.status),
            attempts: ATTEMPTS,
        })
    }

    pub(super) fn is_success(&self) -> bool {
        self.status.success()
    }
}

/// Runs a program with the given standard input.
///
/// # Errors
/// Returns an error if the program cannot be started or does not end in time.
pub(super) fn run<'v>(
    program: &str,
    arguments: impl Iterator<Item = String>,
    variables: impl Iterator<Item = (String, &'v str)>,
    input: &str,
    timeout: Duration,
) -> Result<Output, Failure> {
    let cannot_start = |error: io::Error| {
        let cure = if error.kind() == io::ErrorKind::NotFound {
            "install it, or name its path"
        } else {
            "check it"
        };
        Failure {
            message: format!("cannot start {program}: {error}; {cure}"),
            attempts: 1,
        }
    };
    let (mut output, writer) = io::pipe().map_err(cannot_start)?;
    let mut command = child::command(program);
    command
        .args(arguments)
        .envs(variables)
        .stdin(Stdio::piped());
    command
        .stdout(writer.try_clone().map_err(cannot_start)?)
        .stderr(writer);
    // The program gets its own process group, so that it can be killed with its child processes.
    let mut child = command.process_group(0).spawn().map_err(cannot_start)?;
    // The command still has the write ends of the pipe, and reading would not end before they are
    // closed.
    drop(command);
    let (sender, text) = mpsc::channel();
    let input = input.to_owned();
    let stdin = child.stdin.take();
    thread::spawn(move || {
        // The program does not have to read its input.
        let _ = stdin.map(|mut stdin| stdin.write_all(input.as_bytes()));
    });
    thread::spawn(move || {
        let mut kept = Vec::new();
        let _ = output.by_ref().take(LONGEST_OUTPUT).read_to_end(&mut kept);
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
        let _ = io::copy(&mut output, &mut io::sink());
    });
    let ended = wait(&mut child, timeout).map_err(cannot_start)?;
    let Some(status) = ended else {
        let seconds = timeout.as_secs();
        let message = format!(
            "{program} did not end within {seconds} s and was killed; raise `timeout` or mend it"
        );
        return Err(Failure {
            message,
            attempts: ATTEMPTS,
        });
    };
    let text = text.recv_timeout(OUTPUT_TIMEOUT).unwrap_or_default();
    Ok(Output {
        program: program.to_owned(),
        status,
        text,
    })
}

/// Returns `true` if a program with this name or path can be executed.
pub(super) fn is_found(program: &str) -> bool {
    let is_executable = |path: &Path| {
        path.metadata()
            .is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_executable(Path::new(program));
    }
    env::var_os("PATH").is_some_and(|path| {
        env::split_paths(&path).any(|folder| is_executable(&folder.join(program)))
    })
}

/// Waits for the program to exit; returns `None` if it had to be killed.
fn wait(child: &mut Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() >= timeout {
            // The process is not reaped yet, so the process group ID cannot have been reused.
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(CHECK_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &str, timeout_ms: u64) -> Result<Output, Failure> {
        let arguments = ["-c", script].map(str::to_owned).into_iter();
        let variables = [("GPUMON_ALERT_RULE".to_owned(), "hot")].into_iter();
        run(
            "/bin/sh",
            arguments,
            variables,
            input,
            Duration::from_millis(timeout_ms),
        )
    }

    #[test]
    fn it_gets_its_input_and_variables_and_its_output_is_kept() {
        let output = shell("cat; echo; echo $GPUMON_ALERT_RULE >&2", "{}", 5000).unwrap();
        assert_eq!(
            (output.text.as_str(), output.success()),
            ("{}\nhot\n", Ok(()))
        );
        let failure = shell("echo first; echo why >&2; exit 3", "", 5000)
            .unwrap()
            .success()
            .unwrap_err();
        assert_eq!(failure.attempts, ATTEMPTS);
        assert!(
            failure.message.contains("exit status: 3") && failure.message.ends_with(": why"),
            "{failure:?}"
        );
        let missing = run(
            "/no/such",
            [].into_iter(),
            [].into_iter(),
            "",
            Duration::from_secs(1),
        )
        .unwrap_err();
        assert!(
            missing.message.contains("cannot start /no/such"),
            "{missing:?}"
        );
    }

    #[test]
    fn one_that_hangs_is_killed_with_all_that_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("alive");
        let begun = Instant::now();
        let script = format!("(sleep 2; touch {}) & sleep 60", file.display());
        let failure = shell(&script, "", 300).unwrap_err();
        assert!(
            failure.attempts == ATTEMPTS && failure.message.contains("killed"),
            "{failure:?}"
        );
        assert!(
            begun.elapsed() < Duration::from_millis(1500),
            "{:?}",
            begun.elapsed()
        );
        thread::sleep(Duration::from_millis(2200));
        assert!(!file.exists());
    }

    #[test]
    fn neither_endless_output_nor_input_that_nobody_reads_blocks() {
        let output = shell(
            "head -c 1000000 /dev/zero | tr '\\0' x",
            &"y".repeat(1_000_000),
            10_000,
        )
        .unwrap();
        assert_eq!(output.text.len() as u64, LONGEST_OUTPUT);
        let begun = Instant::now();
        let output = shell("sleep 30 & echo done", "", 10_000).unwrap();
        assert!(
            output.is_success() && begun.elapsed() < Duration::from_secs(5),
            "{:?}",
            begun.elapsed()
        );
    }
}
