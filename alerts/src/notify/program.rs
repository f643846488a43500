//! Programs as receivers of notifications: their execution within limits, and the values for their
//! arguments and environment variables. A program that exceeds its time limit is killed with all of
//! its child processes.

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

use gpumon_probe::{child, model::GpuRef};
use rustix::process::{Pid, Signal, kill_process_group};

use super::{DeliveryError, Notification};
use crate::{
    rules::file::{PLACEHOLDER_NAMES, split_placeholders},
    wording,
};

/// The maximum number of output bytes that are kept.
const MAX_OUTPUT_BYTES: u64 = 4096;
/// The maximum time to wait for child processes that keep the output open after the program has
/// ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);
/// The maximum number of attempts. The limit is low because a program that fails may already have
/// done its work, and would repeat it with each attempt.
const MAX_ATTEMPTS: u32 = 3;
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The exit status and output of a program.
#[derive(Debug)]
pub(super) struct ProgramOutput {
    program: String,
    status: ExitStatus,
    /// Standard output and standard error together.
    pub(super) text: String,
}

impl ProgramOutput {
    /// Checks that the program succeeded.
    ///
    /// # Errors
    /// Returns the exit status and the last line of output if the program failed.
    pub(super) fn check_success(&self) -> Result<(), DeliveryError> {
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
        Err(DeliveryError {
            message: format!("{} failed ({}){said}", self.program, self.status),
            attempts: MAX_ATTEMPTS,
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
pub(super) fn run_program<'v>(
    program: &str,
    arguments: impl Iterator<Item = String>,
    variables: impl Iterator<Item = (String, &'v str)>,
    input: &str,
    timeout: Duration,
) -> Result<ProgramOutput, DeliveryError> {
    let cannot_start = |error: io::Error| {
        let cure = if error.kind() == io::ErrorKind::NotFound {
            "install it, or use its full path"
        } else {
            "check it"
        };
        DeliveryError {
            message: format!("cannot start {program}: {error}; {cure}"),
            attempts: 1,
        }
    };
    let (mut output, writer) = io::pipe().map_err(cannot_start)?;
    let mut command = child::new_command(program);
    command
        .args(arguments)
        .envs(variables)
        .stdin(Stdio::piped());
    command
        .stdout(writer.try_clone().map_err(cannot_start)?)
        .stderr(writer);
    // The program gets its own process group, so that it can be killed with its child processes.
    let mut child = command.process_group(0).spawn().map_err(cannot_start)?;
    // Reading from the output pipe ends only after all of its write ends are closed. The command
    // still has some of them, so it is dropped.
    drop(command);
    let (sender, text) = mpsc::channel();
    let input = input.to_owned();
    let stdin = child.stdin.take();
    thread::spawn(move || {
        // Errors are ignored because the program does not have to read its input.
        let _ = stdin.map(|mut stdin| stdin.write_all(input.as_bytes()));
    });
    thread::spawn(move || {
        let mut kept = Vec::new();
        let _ = output
            .by_ref()
            .take(MAX_OUTPUT_BYTES)
            .read_to_end(&mut kept);
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
        let _ = io::copy(&mut output, &mut io::sink());
    });
    let ended = wait_with_timeout(&mut child, timeout).map_err(cannot_start)?;
    let Some(status) = ended else {
        let seconds = timeout.as_secs();
        let message = format!(
            "{program} did not end within {seconds} s and was killed; raise `timeout`, or fix the \
             program"
        );
        return Err(DeliveryError {
            message,
            attempts: MAX_ATTEMPTS,
        });
    };
    let text = text.recv_timeout(OUTPUT_TIMEOUT).unwrap_or_default();
    Ok(ProgramOutput {
        program: program.to_owned(),
        status,
        text,
    })
}

/// Returns `true` if there is an executable program with this name or path.
pub(super) fn program_exists(program: &str) -> bool {
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
fn wait_with_timeout(child: &mut Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
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
        thread::sleep(EXIT_CHECK_INTERVAL);
    }
}

/// The values of one notification. They replace placeholders in a command's arguments, such as
/// `{rule}`, and are passed as environment variables, such as `GPUMON_ALERT_RULE`. They are in the
/// order of `PLACEHOLDER_NAMES`.
pub(super) struct PlaceholderValues([String; PLACEHOLDER_NAMES.len()]);

impl PlaceholderValues {
    pub(super) fn new(notification: &Notification, host: &str) -> Self {
        let alert = &notification.alert.alert;
        let gpu = notification.alert.gpu.as_ref();
        // Neither an argument nor an environment variable can contain a zero byte.
        let without_zeros = |text: String| text.replace('\0', " ");
        let values = [
            notification.status.as_str().to_owned(),
            alert.rule.clone(),
            wording::severity_word(alert.severity).to_owned(),
            wording::alert_text_with_gpu(&notification.alert),
            gpu.map(|gpu| gpu.index.to_string()).unwrap_or_default(),
            gpu.and_then(|GpuRef { uuid, .. }| uuid.clone())
                .unwrap_or_default(),
            host.to_owned(),
            alert.since_ms.to_string(),
        ];
        Self(values.map(without_zeros))
    }

    /// Returns `word` with its placeholders replaced. Placeholders inside the inserted values are
    /// not replaced. If a value would make the word begin with `-`, a space is added before the
    /// word, so that it does not become an option.
    pub(super) fn fill_placeholders(&self, word: &str) -> String {
        let filled = split_placeholders(word).map(|(before, name)| {
            let at =
                name.and_then(|name| PLACEHOLDER_NAMES.iter().position(|known| *known == name));
            format!("{before}{}", at.map_or("", |at| &self.0[at]))
        });
        let filled: String = filled.collect();
        if filled.starts_with('-') && !word.starts_with('-') {
            format!(" {filled}")
        } else {
            filled
        }
    }

    /// Returns the values as environment variables.
    pub(super) fn environment_variables(&self) -> impl Iterator<Item = (String, &str)> {
        PLACEHOLDER_NAMES.iter().zip(&self.0).map(|(name, value)| {
            (
                format!("GPUMON_ALERT_{}", name.to_ascii_uppercase()),
                value.as_str(),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_shell(
        script: &str,
        input: &str,
        timeout_ms: u64,
    ) -> Result<ProgramOutput, DeliveryError> {
        let arguments = ["-c", script].map(str::to_owned).into_iter();
        let variables = [("GPUMON_ALERT_RULE".to_owned(), "hot")].into_iter();
        run_program(
            "/bin/sh",
            arguments,
            variables,
            input,
            Duration::from_millis(timeout_ms),
        )
    }

    #[test]
    fn program_input_is_written_and_output_is_read() {
        let output = run_shell("cat; echo; echo $GPUMON_ALERT_RULE >&2", "{}", 5000).unwrap();
        assert_eq!(
            (output.text.as_str(), output.check_success()),
            ("{}\nhot\n", Ok(()))
        );
        let failure = run_shell("echo first; echo why >&2; exit 3", "", 5000)
            .unwrap()
            .check_success()
            .unwrap_err();
        assert_eq!(failure.attempts, MAX_ATTEMPTS);
        assert!(
            failure.message.contains("exit status: 3") && failure.message.ends_with(": why"),
            "{failure:?}"
        );
        let missing = run_program(
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
    fn hanging_program_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("alive");
        let begun = Instant::now();
        let script = format!("(sleep 2; touch {}) & sleep 60", file.display());
        let failure = run_shell(&script, "", 300).unwrap_err();
        assert!(
            failure.attempts == MAX_ATTEMPTS && failure.message.contains("killed"),
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
    fn endless_output_and_unread_input_do_not_block() {
        let output = run_shell(
            "head -c 1000000 /dev/zero | tr '\\0' x",
            &"y".repeat(1_000_000),
            10_000,
        )
        .unwrap();
        assert_eq!(output.text.len() as u64, MAX_OUTPUT_BYTES);
        let begun = Instant::now();
        let output = run_shell("sleep 30 & echo done", "", 10_000).unwrap();
        assert!(
            output.is_success() && begun.elapsed() < Duration::from_secs(5),
            "{:?}",
            begun.elapsed()
        );
    }
}

#[cfg(test)]
mod placeholder_tests {
    use super::*;
    use crate::notify::webhook::payload_tests::make_notification;

    #[test]
    fn placeholder_value_cannot_become_option_or_contain_nul() {
        let mut notification = make_notification();
        notification.alert.gpu = None;
        notification.alert.alert.text = "--exec=rm\0x".into();
        let values = PlaceholderValues::new(&notification, "gpu1");
        assert_eq!(
            (
                values.fill_placeholders("{text}"),
                values.fill_placeholders("--body={text}")
            ),
            (" --exec=rm x".into(), "--body=--exec=rm x".into())
        );
        assert!(
            values
                .environment_variables()
                .all(|(_, value)| !value.contains('\0'))
        );
    }

    #[test]
    fn placeholders_inside_values_are_not_expanded() {
        let mut notification = make_notification();
        notification.alert.alert.rule = "{text}".into();
        let values = PlaceholderValues::new(&notification, "gpu1");
        assert_eq!(
            values.fill_placeholders("{rule} on {host}: GPU {gpu}"),
            "{text} on gpu1: GPU 3"
        );
        assert_eq!(
            values.fill_placeholders(r#"{"a": {}, "b": {rule"#),
            r#"{"a": {}, "b": {rule"#
        );
        assert_eq!(
            values.fill_placeholders("{status}{severity}"),
            "firingwarning"
        );
        let variables: Vec<_> = values.environment_variables().collect();
        assert!(
            variables.contains(&("GPUMON_ALERT_GPU".into(), "3")),
            "{variables:?}"
        );
    }
}
