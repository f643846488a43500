//! Fake libraries with their scenarios, gpumon commands that use them, and clients of servers.

mod cuda;
mod given;
mod http;
mod pty;
mod records;
mod screen;
mod server;
mod stream;
mod terminal;
mod tls;
mod tty;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) use self::{
    cuda::{
        FakeCuda, FakeMachine, SMALL_BUS_BITS, SMALL_MULTIPROCESSORS, SMALL_SM_MHZ, run_json_lines,
    },
    given::{additional_readings_of_failure, is_at_or_below_reading, readings_of_function},
    http::{HttpResponse, send_get, send_request, send_request_line, send_socket_request},
    records::{AbsentReadings, Records},
    server::{Server, send_signal},
    stream::Stream,
    terminal::Terminal,
    tls::{Authority, TlsClient, replace_file, write_secret},
    tty::{Tty, copy_variables},
};

/// The time after which a test gives up, even on a busy machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(1);

/// A fake NVML library with its scenario in a temporary folder.
pub(crate) struct FakeNvml {
    folder: TempDir,
    library: PathBuf,
}

impl FakeNvml {
    /// Creates a library. `scenario` is TOML in the format of
    /// `tests/fake-nvml/scenarios/example.toml`.
    pub(crate) fn new(scenario: &str) -> Self {
        Self::without_functions(scenario, &[])
    }

    /// Creates a library that lacks these functions.
    pub(crate) fn without_functions(scenario: &str, hidden: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = fake_nvml::install(folder.path(), hidden);
        std::fs::write(folder.path().join("scenario.toml"), scenario).unwrap();
        Self { folder, library }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn control_path(&self) -> PathBuf {
        self.path("control.sock")
    }

    /// Returns `gpumon` with these arguments and this library.
    pub(crate) fn gpumon_command(&self, arguments: &[&str]) -> Command {
        let mut command = gpumon_command(arguments);
        command
            .env("GPUMON_NVML_LIB", &self.library)
            .env("GPUMON_FAKE_NVML_SCENARIO", self.path("scenario.toml"))
            // The command must not find servers of other tests or of this machine.
            .env("GPUMON_CONTROL", self.control_path());
        command
    }

    /// Returns the output of `gpumon --json`.
    pub(crate) fn read_json(&self) -> Value {
        let output = self.gpumon_command(&["--json"]).output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Copies a program with `cp`. If this process wrote the copy itself, a child process of another
/// test could still have it open for writing. The copy could then not be executed ("Text file
/// busy").
pub(crate) fn copy_program(from: impl AsRef<OsStr>, to: &Path) {
    let status = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(status.success(), "{}", to.display());
}

/// Returns `gpumon` with these arguments, without the settings of this machine.
pub(crate) fn gpumon_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpumon"));
    command
        .args(arguments)
        .env_remove("GPUMON_SOURCE")
        .env_remove("GPUMON_ENERGY_PRICE")
        .env_remove("GPUMON_NVML_LIB")
        .env_remove("GPUMON_CONTROL")
        .env_remove("GPUMON_LIBCUDA")
        .env_remove("GPUMON_SMI_TRIED")
        .env_remove("GPUMON_CONFIG")
        .env_remove("GPUMON_DATA_DIR")
        .env("XDG_CONFIG_HOME", "/nonexistent")
        // The command must not find this machine's own service.
        .env("GPUMON_NO_JOIN", "1")
        .env_remove("GPUMON_TOKEN")
        .env_remove("GPUMON_TOKEN_FILE")
        .env_remove("GPUMON_WEB_CONFIG")
        .env_remove("COLORFGBG");
    if arguments.first() == Some(&"smi") {
        // Unsupported commands must not reach this machine's nvidia-smi, which would execute them.
        command.env_remove("PATH");
    }
    command
}

/// Returns the same command without certain capabilities of root. With these, root could open files
/// in spite of `make_file_busy` and `forbid_reads`.
pub(crate) fn drop_capabilities(command: Command) -> Command {
    if !rustix::process::geteuid().is_root() {
        return command;
    }
    let dropped = "-sys_admin,-checkpoint_restore";
    let mut limited = Command::new("setpriv");
    limited.args(["--bounding-set", dropped, "--inh-caps", dropped]);
    limited.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}

pub(crate) fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns whether the message is a refusal: one line of gpumon, or an error in clap's format.
pub(crate) fn is_refusal(message: &str) -> bool {
    let is_own = message.starts_with("gpumon: ") && message.trim_end().lines().count() == 1;
    is_own || (message.starts_with("error: ") && message.trim_end().ends_with("try '--help'."))
}

/// Runs the command and checks that it is refused with this code and these words. Returns its
/// standard output.
#[track_caller]
pub(crate) fn assert_refused(command: Command, code: i32, words: &str) -> String {
    assert_refused_with(command, code, &[words])
}

#[track_caller]
pub(crate) fn assert_refused_with(mut command: Command, code: i32, words: &[&str]) -> String {
    let output = command.output().unwrap();
    let said = stderr_text(&output);
    assert_eq!(
        (output.status.code(), is_refusal(&said)),
        (Some(code), true),
        "{command:?}: {said}"
    );
    for word in words {
        assert!(
            said.contains(word),
            "{command:?}: {word:?} is missing in {said:?}"
        );
    }
    stdout_text(&output)
}

pub(crate) fn stdout_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Parses one JSON object per line.
pub(crate) fn parse_json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Starts a command. Its output can be read when it has ended.
pub(crate) fn start_command(mut command: Command) -> Child {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the state of each GPU.
pub(crate) fn health_states(sample: &Value) -> Vec<&str> {
    sample["gpus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gpu| gpu["health"]["state"].as_str().unwrap())
        .collect()
}

#[track_caller]
pub(crate) fn wait_for_condition(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !condition() {
        assert!(
            begun.elapsed() < TEST_TIMEOUT,
            "the condition was not met within {TEST_TIMEOUT:?}: {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Calls `one` for each item of `all`, on `at_a_time` threads.
pub(crate) fn run_in_parallel<T: Sync>(at_a_time: usize, all: &[T], one: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(item) = all.get(next.fetch_add(1, Relaxed)) {
                    one(item);
                }
            });
        }
    });
}

/// The number of samples to take: in the first attempt, in the second, and so on. Later attempts
/// take more samples, because a busy machine skips some, and some readings need several samples.
const SAMPLE_COUNTS: [u32; 7] = [3, 6, 12, 24, 48, 96, 192];

/// Calls `run` with a growing number of samples, until one of its samples has every reading.
/// Returns the records up to this sample.
pub(crate) fn run_until_complete(run: impl Fn(u32) -> Records) -> Records {
    SAMPLE_COUNTS
        .into_iter()
        .find_map(|samples| run(samples).truncate_after_complete_sample())
        .expect("one of the runs must have a sample with all readings")
}

/// Repeats a check, and fails only if some complaint occurs in every attempt. `check` receives the
/// number of samples.
#[track_caller]
pub(crate) fn assert_no_persistent_complaints(check: impl Fn(u32) -> Vec<String>) {
    let mut complaints = check(SAMPLE_COUNTS[0]);
    for samples in SAMPLE_COUNTS.into_iter().skip(1) {
        if complaints.is_empty() {
            return;
        }
        let again = check(samples);
        complaints.retain(|complaint| again.contains(complaint));
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}
