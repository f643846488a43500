//! Monitoring of hosts over ssh.
//!
//! [`HostList`] parses the list of hosts. [`ssh`] contains the arguments for the system's `ssh`,
//! the remote command, and the meanings of ssh's error messages. [`Reader`] converts the remote
//! command's output into records: gpumon's records stay unchanged, and [`smi`] converts
//! nvidia-smi's CSV.

pub(crate) mod list;
pub mod smi;
pub mod ssh;

use std::time::Duration;

use smi::Converter;

pub use list::{Host, HostList, HostListError, MOST_HOSTS, NamesError, expand_names};
pub use ssh::Ssh;

/// The maximum length of a line, in bytes. A gpumon record contains at most a megabyte of processes
/// and a few kilobytes per GPU.
pub const MAX_LINE_BYTES: usize = 8 << 20;

/// The maximum size of a host's output before the first record, in bytes. This output is skipped: a
/// user's shell may print text at startup.
const MAX_PREAMBLE_BYTES: usize = 64 << 10;

/// The maximum output of a host per time window, in bytes. Even a host with many GPUs and processes
/// sends less at ten samples per second.
const MAX_WINDOW_BYTES: usize = 128 << 20;
const WINDOW_MS: u64 = 10_000;

/// A parser that converts one host's output into records, line by line.
pub struct Reader {
    host: String,
    interval: Duration,
    state: ReaderState,
    window: (u64, usize),
}

enum ReaderState {
    /// The remote command has not yet reported which program it runs. The connection may not be
    /// established yet.
    Connecting { bytes: usize },
    /// The remote command runs gpumon.
    Records,
    /// The remote command runs nvidia-smi.
    Csv(Box<Converter>),
}

impl Reader {
    /// Creates a reader for `host`, which sends samples every `interval`.
    pub fn new(host: &str, interval: Duration) -> Self {
        Self {
            host: host.to_owned(),
            interval,
            state: ReaderState::Connecting { bytes: 0 },
            window: (0, 0),
        }
    }

    /// Returns `true` if the remote command is running.
    pub fn is_connected(&self) -> bool {
        !matches!(self.state, ReaderState::Connecting { .. })
    }

    /// Processes one line of a host's output and emits the resulting records. gpumon's records are
    /// passed on unchanged and must be decoded by the receiver; nvidia-smi's rows are converted.
    ///
    /// # Errors
    /// Returns the reason why the host cannot be read, with a remedy.
    pub fn handle_line(
        &mut self,
        line: &str,
        now_ms: u64,
        mut emit: impl FnMut(&str),
    ) -> Result<(), String> {
        self.check_byte_limit(line.len(), now_ms)?;
        let host = &self.host;
        match &mut self.state {
            ReaderState::Connecting { bytes } => {
                *bytes += line.len() + 1;
                if line.starts_with("#records ") {
                    self.state = ReaderState::Records;
                } else if let Some(name) = line.strip_prefix("#csv ") {
                    self.state = ReaderState::Csv(Box::new(Converter::new(name, self.interval)));
                } else if let Some(version) = line.strip_prefix("#missing") {
                    return Err(ssh::describe_missing_programs(host, version));
                } else if line.contains(ssh::NOLOGIN_MESSAGE) {
                    return Err(ssh::describe_failure(host, line));
                } else if *bytes > MAX_PREAMBLE_BYTES {
                    return Err(format!(
                        "{host}: the host sent output that is not from gpumon; make sure that the \
                         login shell prints nothing when there is no terminal"
                    ));
                }
            }
            ReaderState::Records => emit(line),
            ReaderState::Csv(converter) => {
                let records = converter
                    .handle_line(line, now_ms)
                    .map_err(|message| format!("{host}: {message}"))?;
                emit_records(&records, emit);
            }
        }
        Ok(())
    }

    /// Emits the records that become due as time passes. Callers must call this function several
    /// times per second.
    pub fn tick(&mut self, now_ms: u64, emit: impl FnMut(&str)) {
        if let ReaderState::Csv(converter) = &mut self.state {
            emit_records(&converter.take_due_records(now_ms), emit);
        }
    }

    /// Returns `true` if the remote command accepts requests, one per line. gpumon accepts them;
    /// nvidia-smi does not.
    pub fn accepts_requests(&self) -> bool {
        matches!(self.state, ReaderState::Records)
    }

    /// Returns `true` if [`Self::tick`] can emit records in the current state.
    pub fn needs_ticks(&self) -> bool {
        matches!(self.state, ReaderState::Csv(_))
    }

    /// Counts the received bytes and returns an error if there are too many, because endless output
    /// would overload this machine.
    fn check_byte_limit(&mut self, bytes: usize, now_ms: u64) -> Result<(), String> {
        let (since_ms, counted) = &mut self.window;
        if now_ms.saturating_sub(*since_ms) > WINDOW_MS {
            (*since_ms, *counted) = (now_ms, 0);
        }
        *counted += bytes;
        if *counted > MAX_WINDOW_BYTES {
            return Err(format!(
                "{}: the host sent more data than gpumon accepts; check what runs on the host",
                self.host
            ));
        }
        Ok(())
    }
}

fn emit_records(records: &[gpumon_probe::model::Record], mut emit: impl FnMut(&str)) {
    for record in records {
        // Serializing a record as JSON cannot fail, so an error is ignored.
        if let Ok(line) = serde_json::to_string(record) {
            emit(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_lines(reader: &mut Reader, lines: &[&str]) -> Result<Vec<String>, String> {
        let mut emitted = Vec::new();
        for line in lines {
            reader.handle_line(line, 1_000, |line| emitted.push(line.to_owned()))?;
        }
        Ok(emitted)
    }

    fn new_reader() -> Reader {
        Reader::new("n1", Duration::from_secs(2))
    }

    #[test]
    fn shell_output_before_records_is_skipped() {
        let mut reader = new_reader();
        assert_eq!(
            read_lines(&mut reader, &["Welcome!", "{\"type\":\"x\"}"]).unwrap(),
            [""; 0]
        );
        assert!(!reader.is_connected());
        assert_eq!(
            read_lines(
                &mut reader,
                &["#records gpumon 0.2.0", "{\"type\":\"x\"}", "#"]
            )
            .unwrap(),
            ["{\"type\":\"x\"}", "#"]
        );
        assert!(reader.is_connected());
    }

    #[test]
    fn endless_output_is_refused_with_remedy() {
        let line = "x".repeat(1000);
        let babble: Vec<_> = vec![line.as_str(); 70];
        let error = read_lines(&mut new_reader(), &babble).unwrap_err();
        assert!(
            error.starts_with(
                "n1: the host sent output that is not from gpumon; make sure that the login shell"
            ),
            "{error}"
        );
        let mut connected = new_reader();
        read_lines(&mut connected, &["#records gpumon 0.2.0"]).unwrap();
        let line = "x".repeat(1 << 20);
        let error = read_lines(&mut connected, &vec![line.as_str(); 129]).unwrap_err();
        assert!(error.contains("more data than gpumon accepts"), "{error}");
        let mut slow = new_reader();
        read_lines(&mut slow, &["#records gpumon 0.2.0"]).unwrap();
        for second in 0..200 {
            slow.handle_line(&line, second * 1000, |_| ()).unwrap();
        }
    }

    #[test]
    fn missing_program_ends_connection() {
        let error = read_lines(&mut new_reader(), &["#missing gpumon 0.1.0"]).unwrap_err();
        assert!(
            error.contains(
                "gpumon 0.1.0 is installed, but this machine has a different version of gpumon"
            ),
            "{error}"
        );
    }
}
