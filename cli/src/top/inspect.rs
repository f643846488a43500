//! Details of a single process from `/proc`: command line, working directory, threads, memory,
//! environment.
//!
//! If a process hangs in the driver, reading its files may block, so the files are read on a
//! separate thread.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::mpsc::SyncSender,
};

use gpumon_probe::{bounded, model::now_ms, process_stat::ProcessStat};

use super::{input::Input, text::make_printable};
use crate::background::spawn_detached_thread;

pub(super) struct Inspection {
    pub(super) pid: u32,
    /// The details, or the reason why they could not be read.
    pub(super) found: Result<ProcessAttributes, String>,
}

/// A detail of the process, or the reason why it is unknown.
type ReadAttribute<T> = Result<T, String>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessAttributes {
    pub(super) at_ms: u64,
    pub(super) started_ms: Option<u64>,
    /// The state in words, such as `running` or `sleeping`.
    pub(super) state: String,
    pub(super) parent: u32,
    pub(super) threads: u32,
    /// CPU time used so far in user and kernel mode, in milliseconds.
    pub(super) cpu_ms: u64,
    /// The maximum resident memory so far, in bytes.
    pub(super) most_resident_bytes: Option<u64>,
    /// The number of bytes read from and written to disks so far.
    pub(super) disk_bytes: ReadAttribute<u64>,
    pub(super) program: ReadAttribute<String>,
    /// The command line, split into arguments.
    pub(super) arguments: ReadAttribute<Vec<String>>,
    pub(super) folder: ReadAttribute<String>,
    /// Environment variables as `NAME=value`, sorted by name.
    pub(super) environment: ReadAttribute<Vec<String>>,
}

/// Starts to read the details of a process. The result arrives as [`Input::Inspected`].
pub(super) fn request_attributes(
    pid: u32,
    started_ms: Option<u64>,
    missing: &'static str,
    inputs: SyncSender<Input>,
) {
    let body = move || {
        let found = read_attributes(Path::new("/proc"), pid, started_ms, missing);
        let _ = inputs.send(Input::Inspected(Box::new(Inspection { pid, found })));
    };
    // If the thread cannot be started, the screen shows no details.
    let _ = spawn_detached_thread("inspect", body);
}

/// Reads the details of a process below `root`, which is `/proc` except in tests.
fn read_attributes(
    root: &Path,
    pid: u32,
    started_ms: Option<u64>,
    missing: &str,
) -> Result<ProcessAttributes, String> {
    let stat = ProcessStat::read(root, pid).map_err(|_| format!("the process {missing}"))?;
    if !stat.may_have_started_at(started_ms) {
        return Err(format!(
            "the process {missing}; in this PID namespace, its PID belongs to another process"
        ));
    }
    let folder = root.join(pid.to_string());
    let status = bounded::read_text(folder.join("status"), bounded::STAT_LIMIT).unwrap_or_default();
    let bytes = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    let disk_bytes =
        describe_attribute_error(bounded::read_text(folder.join("io"), bounded::STAT_LIMIT)).map(
            |io| {
                let of = |name: &str| {
                    io.lines()
                        .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
                };
                of("read_bytes:").unwrap_or(0) + of("write_bytes:").unwrap_or(0)
            },
        );
    let link = |name: &str| {
        describe_attribute_error(fs::read_link(folder.join(name)))
            .map(|path: PathBuf| path.display().to_string())
    };
    let list = |name: &str, limit: usize| {
        let bytes = describe_attribute_error(bounded::read(folder.join(name), limit))?;
        let text = String::from_utf8_lossy(&bytes);
        let entries = text
            .trim_end_matches('\0')
            .split('\0')
            .filter(|entry| !entry.is_empty());
        Ok(entries.map(make_printable).collect::<Vec<_>>())
    };
    let mut environment: ReadAttribute<Vec<String>> = list("environ", bounded::ENVIRONMENT_LIMIT);
    if let Ok(entries) = &mut environment {
        entries.sort();
    }
    Ok(ProcessAttributes {
        at_ms: now_ms(),
        started_ms: stat.birth.started_ms,
        state: describe_state(stat.state).to_owned(),
        parent: stat.parent,
        threads: stat.threads,
        cpu_ms: stat.cpu_ms,
        most_resident_bytes: bytes("VmHWM"),
        disk_bytes,
        program: link("exe").map(|path| make_printable(&path)),
        arguments: list("cmdline", bounded::COMMAND_LINE_LIMIT),
        folder: link("cwd").map(|path| make_printable(&path)),
        environment,
    })
}

fn describe_attribute_error<T>(result: io::Result<T>) -> ReadAttribute<T> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "readable only by the user of the process and root".to_owned()
        }
        io::ErrorKind::NotFound => "not there".to_owned(),
        _ => error.to_string(),
    })
}

/// Describes a process state, which `proc_pid_stat(5)` defines by a letter.
fn describe_state(letter: char) -> &'static str {
    match letter {
        'R' => "running",
        'S' => "sleeping",
        'D' => "waiting for a device (not interruptible)",
        'T' => "stopped",
        't' => "stopped by a debugger",
        'Z' => "ended, but not yet reaped by its parent",
        'I' => "idle",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_attributes_of_current_process_are_read() {
        let own = std::process::id();
        let facts = read_attributes(Path::new("/proc"), own, None, "").unwrap();
        assert!(
            facts.arguments.as_ref().unwrap()[0].contains("gpumon"),
            "{facts:?}"
        );
        assert!(facts.threads >= 1 && facts.most_resident_bytes.unwrap() > 1 << 20);
        assert_eq!(
            facts.folder.unwrap(),
            std::env::current_dir().unwrap().display().to_string()
        );
        assert!(
            facts
                .environment
                .unwrap()
                .iter()
                .any(|entry| entry.starts_with("PATH="))
        );
        let again = read_attributes(Path::new("/proc"), own, facts.started_ms, "").unwrap();
        assert_eq!(again.started_ms, facts.started_ms);
    }

    #[test]
    fn process_with_reused_pid_is_not_described() {
        let wrong = read_attributes(
            Path::new("/proc"),
            std::process::id(),
            Some(1_000_000_000_000),
            "has ended",
        )
        .unwrap_err();
        assert!(
            wrong.contains("its PID belongs to another process"),
            "{wrong}"
        );
        assert!(
            read_attributes(Path::new("/proc"), u32::MAX, None, "has ended")
                .unwrap_err()
                .contains("ended")
        );
    }

    #[test]
    fn unreadable_attribute_has_reason() {
        let refused: ReadAttribute<()> =
            describe_attribute_error(Err(io::ErrorKind::PermissionDenied.into()));
        assert!(refused.unwrap_err().contains("root"));
    }
}
