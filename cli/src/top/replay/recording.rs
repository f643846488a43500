//! The file of a recording, and where each line begins.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use gpumon_probe::model::Record;
use thiserror::Error;

use crate::top::text::printable;

/// A longer line is none of a collector.
const LONGEST_LINE: u64 = 64 << 20;

#[derive(Debug, Error)]
pub(in crate::top) enum BadRecording {
    #[error("cannot read {file}: {cause}; check the path")]
    Unreadable { file: String, cause: io::Error },
    #[error(
        "cannot replay {file}: line {line} is not a record of gpumon: {cause}; make a recording with `gpumon collect > FILE`"
    )]
    BadLine { file: String, line: usize, cause: String },
    #[error("cannot replay {file}: there is no sample in it; make a recording with `gpumon collect > FILE`")]
    NoSample { file: String },
}

/// A recording whose every line has been looked at.
pub(super) struct Recording {
    file: BufReader<File>,
    pub(super) lines: Vec<Line>,
    pub(super) samples: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    offset: u64,
    pub(super) kind: Kind,
    /// When it was recorded; 0 where that does not matter.
    pub(super) at_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Inventory,
    Sample,
    Details(u32),
    Event,
    Trace,
}

impl Recording {
    pub(super) fn open(path: &Path) -> Result<Self, BadRecording> {
        let file = printable(&path.display().to_string());
        let unreadable = |cause| BadRecording::Unreadable { file: file.clone(), cause };
        let mut reader = BufReader::new(File::open(path).map_err(unreadable)?);
        let (mut lines, mut samples) = (Vec::new(), Vec::new());
        let (mut offset, mut number) = (0, 0);
        let mut text = Vec::new();
        loop {
            text.clear();
            let length = (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut text).map_err(unreadable)?;
            if length == 0 {
                break;
            }
            number += 1;
            let is_whole = text.ends_with(b"\n");
            match line(&text, offset) {
                Ok(Some(line)) => {
                    if line.kind == Kind::Sample {
                        samples.push(lines.len());
                    }
                    lines.push(line);
                }
                Ok(None) => {}
                // A recorder that was killed leaves the beginning of a line.
                Err(_) if !is_whole && !samples.is_empty() => break,
                // What is quoted of the line can hold anything.
                Err(cause) => return Err(BadRecording::BadLine { file, line: number, cause: printable(&cause) }),
            }
            offset += length as u64;
        }
        if samples.is_empty() {
            return Err(BadRecording::NoSample { file });
        }
        Ok(Self { file: reader, lines, samples })
    }

    /// Reads one line again.
    pub(super) fn read(&mut self, line: usize) -> io::Result<Record> {
        let offset = self.lines[line].offset;
        // Within what is already in memory where that is near.
        let here = self.file.stream_position()?;
        match i64::try_from(offset).ok().zip(i64::try_from(here).ok()) {
            Some((there, here)) => self.file.seek_relative(there - here)?,
            None => drop(self.file.seek(SeekFrom::Start(offset))?),
        }
        let mut text = Vec::new();
        self.file.read_until(b'\n', &mut text)?;
        let text = String::from_utf8_lossy(&text);
        Record::decode(text.trim_end()).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// `None` where a line is empty.
fn line(text: &[u8], offset: u64) -> Result<Option<Line>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "it is not text".to_owned())?.trim_end();
    if text.is_empty() {
        return Ok(None);
    }
    let (kind, at_ms) = match Record::decode(text).map_err(|error| error.to_string())? {
        Record::Inventory(_) => (Kind::Inventory, 0),
        Record::Sample(sample) => (Kind::Sample, sample.at_ms),
        Record::Details(details) => (Kind::Details(details.index), 0),
        Record::Event(event) => (Kind::Event, event.at_ms),
        Record::Trace(_) | Record::Answers(_) => (Kind::Trace, 0),
    };
    Ok(Some(Line { offset, kind, at_ms }))
}
