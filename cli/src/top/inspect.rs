//! Details of one process from `/proc`: command line, working directory, threads, memory,
//! environment.
//!
//! Reading the files of a process that hangs in the driver can block the reader, so a separate
//! thread reads them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::mpsc::SyncSender,
    thread,
};

use gpumon_probe::{bounded, model::now_ms, process_stat::ProcessStat};

use super::{input::Input, text::printable};

pub(super) struct Inspection {
    pub(super) pid: u32,
    /// The facts, or the reason why they could not be read.
    pub(super) found: Result<Facts, String>,
}

/// A fact, or the reason why it is unknown.
type Fact<T> = Result<T, String>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) at_ms: u64,
    pub(super) started_ms: Option<u64>,
    /// The state in words, such as `running` or `sleeping`.
    pub(super) state: String,
    pub(super) parent: u32,
    pub(super) threads: u32,
    /// Processor time used so far, in user and kernel mode.
    pub(super) cpu_ms: u64,
    /// The peak resident host memory.
    pub(super) most_resident_bytes: Option<u64>,
    /// Bytes read from and written to disks so far.
    pub(super) disk_bytes: Fact<u64>,
    pub(super) program: Fact<String>,
    /// The command line, split into arguments.
    pub(super) arguments: Fact<Vec<String>>,
    pub(super) folder: Fact<String>,
    /// Variables as `NAME=value`, sorted by name.
    pub(super) environment: Fact<Vec<String>>,
}

/// Starts reading the facts of a process. The result arrives as an [`Input::Inspected`].
pub(super) fn ask(
    pid: u32,
    started_ms: Option<u64>,
    missing: &'static str,
    inputs: SyncSender<Input>,
) {
    let body = move || {
        let found = look(Path::new("/proc"), pid, started_ms, missing);
        let _ = inputs.send(Input::Inspected(Box::new(Inspection { pid, found })));
    };
    // If no thread can be started, the screen simply shows no facts.
    let _ = thread::Builder::new()
        .name("inspect".to_owned())
        .spawn(body);
}

/// Reads the facts of a process below `root`, which is `/proc` except in tests.
fn look(root: &Path, pid: u32, started_ms: Option<u64>, missing: &str) -> Result<Facts, String> {
    let stat = ProcessStat::read(root, pid).map_err(|_| format!("the process {missing}"))?;
    if !stat.is_started_at(started_ms) {
        return Err(format!(
            "the process {missing}; its PID is another process's here"
        ));
    }
    let folder = root.join(pid.to_string());
    let status = bounded::text(folder.join("status"), bounded::STAT).unwrap_or_default();
    let bytes = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    let disk_bytes = read(bounded::text(folder.join("io"), bounded::STAT)).map(|io| {
        let of = |name: &str| {
            io.lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
        };
        of("read_bytes:").unwrap_or(0) + of("write_bytes:").unwrap_or(0)
    });
    let link = |name: &str| {
        read(fs::read_link(folder.join(name))).map(|path: PathBuf| path.display().to_string())
    };
    let list = |name: &str, limit: usize| {
        let bytes = read(bounded::read(folder.join(name), limit))?;
        let text = String::from_utf8_lossy(&bytes);
        let entries = text
            .trim_end_matches('\0')
            .split('\0')
            .filter(|entry| !entry.is_empty());
        Ok(entries.map(printable).collect::<Vec<_>>())
    };
    let mut environment: Fact<Vec<String>> = list("environ", bounded::ENVIRONMENT);
    if let Ok(entries) = &mut environment {
        entries.sort();
    }
    Ok(Facts {
        at_ms: now_ms(),
        started_ms: stat.birth.started_ms,
        state: state(stat.state).to_owned(),
        parent: stat.parent,
        threads: stat.threads,
        cpu_ms: stat.cpu_ms,
        most_resident_bytes: bytes("VmHWM"),
        disk_bytes,
        program: link("exe").map(|path| printable(&path)),
        arguments: list("cmdline", bounded::COMMAND_LINE),
        folder: link("cwd").map(|path| printable(&path)),
        environment,
    })
}

fn read<T>(result: io::Result<T>) -> Fact<T> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => "readable only by its user and root".to_owned(),
        io::ErrorKind::NotFound => "not there".to_owned(),
        _ => error.to_string(),
    })
}

/// Describes a process state letter of `proc_pid_stat(5)`.
fn state(letter: char) -> &'static str {
    match letter {
        'R' => "running",
        'S' => "sleeping",
        'D' => "waits for a device and cannot be interrupted",
        'T' => "stopped",
        't' => "stopped by a debugger",
        'Z' => "ended, but its parent has not noticed",
        'I' => "idle",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_process_tells_of_itself() {
        let own = std::process::id();
        let facts = look(Path::new("/proc"), own, None, "").unwrap();
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
        let again = look(Path::new("/proc"), own, facts.started_ms, "").unwrap();
        assert_eq!(again.started_ms, facts.started_ms);
    }

    #[test]
    fn another_process_of_that_number_is_not_described() {
        let wrong = look(
            Path::new("/proc"),
            std::process::id(),
            Some(1_000_000_000_000),
            "has ended",
        )
        .unwrap_err();
        assert!(wrong.contains("another process's"), "{wrong}");
        assert!(
            look(Path::new("/proc"), u32::MAX, None, "has ended")
                .unwrap_err()
                .contains("ended")
        );
    }

    #[test]
    fn what_may_not_be_read_says_why() {
        let refused: Fact<()> = read(Err(io::ErrorKind::PermissionDenied.into()));
        assert!(refused.unwrap_err().contains("root"));
    }
}
