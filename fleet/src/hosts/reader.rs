//! Conversion of a host's output into records, line by line.

use std::time::Duration;

use super::{complaint, smi::Converter};

/// The maximum length of a line in bytes. A record of gpumon has at most a megabyte of processes
/// and some kilobytes for each GPU.
pub const LONGEST_LINE: usize = 8 << 20;

/// The maximum size of the output before the first record, in bytes. Shells of users may print
/// text, which is skipped.
const MOST_BEFORE: usize = 64 << 10;

/// The maximum output per time window in bytes. Hosts with many GPUs and processes write less at
/// ten samples per second.
const MOST_BYTES: usize = 128 << 20;
const WINDOW_MS: u64 = 10_000;

/// A reader of one host's output.
pub struct Reader {
    host: String,
    interval: Duration,
    state: State,
    window: (u64, usize),
}

enum State {
    /// The remote command has not identified itself.
    Connecting { bytes: usize },
    /// The remote command is gpumon.
    Records,
    /// The remote command is nvidia-smi.
    Csv(Box<Converter>),
}

/// The progress of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The remote command has sent nothing.
    Connecting,
    /// The remote command runs.
    Connected,
}

impl Reader {
    /// Creates a reader for the host of this name, with samples at this interval.
    pub fn new(host: &str, interval: Duration) -> Self {
        Self {
            host: host.to_owned(),
            interval,
            state: State::Connecting { bytes: 0 },
            window: (0, 0),
        }
    }

    pub fn progress(&self) -> Progress {
        match self.state {
            State::Connecting { .. } => Progress::Connecting,
            State::Records | State::Csv(_) => Progress::Connected,
        }
    }

    /// Emits the records of a line: gpumon's records unchanged, which the receiver must decode, or
    /// records converted from nvidia-smi's rows.
    ///
    /// # Errors
    /// Returns a sentence with the reason why the host cannot be read, and a remedy.
    pub fn line(
        &mut self,
        line: &str,
        now_ms: u64,
        mut emit: impl FnMut(&str),
    ) -> Result<(), String> {
        self.count(line.len(), now_ms)?;
        let host = &self.host;
        match &mut self.state {
            State::Connecting { bytes } => {
                *bytes += line.len() + 1;
                if line.starts_with("#records ") {
                    self.state = State::Records;
                } else if let Some(name) = line.strip_prefix("#csv ") {
                    self.state = State::Csv(Box::new(Converter::new(name, self.interval)));
                } else if let Some(version) = line.strip_prefix("#missing") {
                    return Err(complaint::missing(host, version));
                } else if line.contains(complaint::NOLOGIN) {
                    return Err(complaint::sentence(host, line));
                } else if *bytes > MOST_BEFORE {
                    return Err(format!(
                        "{host}: it writes what is not gpumon's; have its shell print nothing where there is no terminal"
                    ));
                }
            }
            State::Records => emit(line),
            State::Csv(converter) => {
                let records = converter
                    .line(line, now_ms)
                    .map_err(|message| format!("{host}: {message}"))?;
                emit_records(&records, emit);
            }
        }
        Ok(())
    }

    /// Emits the records that depend on time alone. This function must be called several times per
    /// second.
    pub fn tick(&mut self, now_ms: u64, emit: impl FnMut(&str)) {
        if let State::Csv(converter) = &mut self.state {
            emit_records(&converter.tick(now_ms), emit);
        }
    }

    /// Returns `true` if the remote command accepts requests, one per line. nvidia-smi does not.
    pub fn takes_requests(&self) -> bool {
        matches!(self.state, State::Records)
    }

    /// Returns `true` if [`Self::tick`] has an effect.
    pub fn ticks(&self) -> bool {
        matches!(self.state, State::Csv(_))
    }

    /// Counts received bytes, because a host with endless output would overload this machine.
    fn count(&mut self, bytes: usize, now_ms: u64) -> Result<(), String> {
        let (since_ms, counted) = &mut self.window;
        if now_ms.saturating_sub(*since_ms) > WINDOW_MS {
            (*since_ms, *counted) = (now_ms, 0);
        }
        *counted += bytes;
        if *counted > MOST_BYTES {
            return Err(format!(
                "{}: it writes more than any machine has to tell; look at what runs there",
                self.host
            ));
        }
        Ok(())
    }
}

fn emit_records(records: &[gpumon_probe::model::Record], mut emit: impl FnMut(&str)) {
    for record in records {
        // Records can always be serialized as JSON.
        if let Ok(line) = serde_json::to_string(record) {
            emit(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(reader: &mut Reader, lines: &[&str]) -> Result<Vec<String>, String> {
        let mut emitted = Vec::new();
        for line in lines {
            reader.line(line, 1_000, |line| emitted.push(line.to_owned()))?;
        }
        Ok(emitted)
    }

    fn reader() -> Reader {
        Reader::new("n1", Duration::from_secs(2))
    }

    #[test]
    fn records_are_handed_on_as_they_are_behind_what_a_shell_prints() {
        let mut reader = reader();
        assert_eq!(
            lines(&mut reader, &["Welcome!", "{\"type\":\"x\"}"]).unwrap(),
            [""; 0]
        );
        assert_eq!(reader.progress(), Progress::Connecting);
        assert_eq!(
            lines(
                &mut reader,
                &["#records gpumon 0.2.0", "{\"type\":\"x\"}", "#"]
            )
            .unwrap(),
            ["{\"type\":\"x\"}", "#"]
        );
        assert_eq!(reader.progress(), Progress::Connected);
    }

    #[test]
    fn what_babbles_is_cut_off_with_a_cure() {
        let line = "x".repeat(1000);
        let babble: Vec<_> = vec![line.as_str(); 70];
        let error = lines(&mut reader(), &babble).unwrap_err();
        assert!(
            error.starts_with("n1: it writes what is not gpumon's; have its shell"),
            "{error}"
        );
        let mut connected = reader();
        lines(&mut connected, &["#records gpumon 0.2.0"]).unwrap();
        let line = "x".repeat(1 << 20);
        let error = lines(&mut connected, &vec![line.as_str(); 129]).unwrap_err();
        assert!(error.contains("more than any machine"), "{error}");
        let mut slow = reader();
        lines(&mut slow, &["#records gpumon 0.2.0"]).unwrap();
        for second in 0..200 {
            slow.line(&line, second * 1000, |_| ()).unwrap();
        }
    }

    #[test]
    fn what_is_missing_there_ends_it() {
        let error = lines(&mut reader(), &["#missing gpumon 0.1.0"]).unwrap_err();
        assert!(
            error.contains("gpumon 0.1.0 there is of another version"),
            "{error}"
        );
    }
}
