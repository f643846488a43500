//! A recording that can be read block by block, the lines of its blocks, and the errors that
//! reading can cause.

use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use gpumon_probe::{model::read_type, untrusted::escape_untrusted};
use serde::Deserialize;
use thiserror::Error;

use crate::{
    block::{BlockHead, FORMAT_VERSION, MAX_COMPRESSION_RATIO, MAX_TEXT_BYTES},
    index::FileIndex,
};

/// A recording, consisting of its current file and the older, rotated parts.
#[derive(Debug)]
pub struct Recording {
    /// All files, oldest first.
    files: Vec<FileIndex>,
    blocks: Vec<Block>,
    cuts: Vec<UnreadablePart>,
}

#[derive(Debug)]
struct Block {
    file: usize,
    number: usize,
    head: BlockHead,
    /// The total number of samples in all previous blocks.
    first_sample: usize,
}

/// A part of a file that cannot be read, because the recorder was killed or the disk was full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadablePart {
    /// The path of the file, with control characters escaped.
    pub file: String,
    /// The time of the last sample before the unreadable part, in milliseconds since 1970; 0 if
    /// there is none.
    pub after_ms: u64,
    /// The size of the unreadable part in bytes.
    pub bytes: u64,
    /// Whether the unreadable part extends to the end of the file.
    pub is_at_end: bool,
}

/// The records of a block.
#[derive(Debug)]
pub struct Lines {
    text: String,
    records: Vec<Line>,
    /// The indices of the samples in the list of lines.
    samples: Vec<usize>,
}

impl Lines {
    /// Returns all lines in the order in which they were recorded.
    pub fn lines(&self) -> &[Line] {
        &self.records
    }

    /// Returns the record in a line, as JSON.
    pub fn text(&self, line: &Line) -> &str {
        &self.text[line.range.clone()]
    }

    /// Returns the indices of the samples in the list of lines.
    pub fn sample_indices(&self) -> &[usize] {
        &self.samples
    }
}

impl Recording {
    /// Opens a recording, including the older parts `FILE.1` and so on that [`Files`](crate::Files)
    /// wrote. Only the heads of blocks are read.
    ///
    /// # Errors
    /// Returns an error if the file is not a recording or cannot be read.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let mut parts = vec![path.to_owned()];
        parts.extend(
            (1..)
                .map(|number| numbered_path(path, number))
                .take_while(|part| part.is_file()),
        );
        let mut recording = Self {
            files: Vec::new(),
            blocks: Vec::new(),
            cuts: Vec::new(),
        };
        let mut samples = 0;
        for (file, part) in parts.iter().rev().enumerate() {
            let mut index = FileIndex::from_path(part)?;
            recording.cuts.append(&mut index.cuts);
            for (number, (_, head)) in index.blocks.iter().enumerate() {
                recording.blocks.push(Block {
                    file,
                    number,
                    head: *head,
                    first_sample: samples,
                });
                samples += head.samples as usize;
            }
            recording.files.push(index);
        }
        if samples == 0 {
            return Err(RecordingError::NoSample {
                file: printable_path(path),
            });
        }
        Ok(recording)
    }

    pub fn sample_count(&self) -> usize {
        self.blocks
            .last()
            .map_or(0, |last| last.first_sample + last.head.samples as usize)
    }

    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    pub fn head(&self, block: usize) -> &BlockHead {
        &self.blocks[block].head
    }

    /// Returns the times of the first and the last sample, in milliseconds since 1970.
    pub fn first_and_last_sample_ms(&self) -> (u64, u64) {
        let mut with_samples = self.blocks.iter().filter(|block| block.head.samples > 0);
        let first = with_samples.next();
        let last = with_samples.next_back().or(first);
        (
            first.map_or(0, |block| block.head.first_ms),
            last.map_or(0, |block| block.head.last_ms),
        )
    }

    /// Returns the parts of the recording that cannot be read.
    pub fn unreadable_parts(&self) -> &[UnreadablePart] {
        &self.cuts
    }

    /// Returns the block that contains a sample, and the sample's index within the block.
    pub(crate) fn locate_sample(&self, sample: usize) -> (usize, usize) {
        let block = self
            .blocks
            .partition_point(|block| block.first_sample <= sample)
            .saturating_sub(1);
        (block, sample - self.blocks[block].first_sample)
    }

    /// Returns the index of the block's first sample, which equals the number of samples in all
    /// previous blocks.
    pub(crate) fn first_sample_index(&self, block: usize) -> usize {
        self.blocks[block].first_sample
    }

    /// Reads a block.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or the block is damaged.
    pub fn read_block(&self, block: usize) -> io::Result<Lines> {
        let Block {
            file, number, head, ..
        } = &self.blocks[block];
        let damaged = |cause: String| {
            let (first_ms, bytes) = (head.first_ms, head.bytes);
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "the block that starts at {first_ms} ms ({bytes} bytes) is damaged: {cause}"
                ),
            )
        };
        let text = self.files[*file]
            .read_block_text(*number)
            .map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput
                | io::ErrorKind::InvalidData
                | io::ErrorKind::UnexpectedEof => damaged(error.to_string()),
                _ => error,
            })?;
        let text =
            String::from_utf8(text).map_err(|_| damaged("its text is not UTF-8".to_owned()))?;
        let lines = parse_lines(&text).map_err(damaged)?;
        let is_sample = |place: &usize| lines[*place].kind == RecordKind::Sample;
        let samples = (0..lines.len()).filter(is_sample).collect();
        let lines = Lines {
            text,
            records: lines,
            samples,
        };
        if lines.samples.len() != head.samples as usize {
            return Err(damaged(
                "its number of samples does not match its header".to_owned(),
            ));
        }
        Ok(lines)
    }

    /// Returns the blocks that may contain samples within `span`, in milliseconds since 1970.
    pub fn blocks_in_span(&self, span: &Range<u64>) -> Vec<usize> {
        let is_within = |head: &BlockHead| {
            head.samples > 0 && head.first_ms < span.end && head.last_ms >= span.start
        };
        (0..self.blocks.len())
            .filter(|block| is_within(&self.blocks[*block].head))
            .collect()
    }

    /// Returns the newest inventory in the blocks before `block`, as JSON.
    ///
    /// # Errors
    /// Same as for [`read_block`](Self::read_block).
    pub fn read_inventory_before(&self, block: usize) -> io::Result<Option<String>> {
        let Some(block) = (0..block)
            .rev()
            .find(|block| self.blocks[*block].head.has_inventory)
        else {
            return Ok(None);
        };
        let lines = self.read_block(block)?;
        let newest = lines
            .lines()
            .iter()
            .rfind(|line| line.kind == RecordKind::Inventory);
        Ok(newest.map(|line| lines.text(line).to_owned()))
    }
}

/// Returns the path of an older part with this number, such as `FILE.1`.
pub(crate) fn numbered_path(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// The reason why a file cannot be read as a recording, with a remedy.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The system cannot read the file.
    #[error("cannot read {file}: {cause}; check the path")]
    Unreadable { file: String, cause: io::Error },
    /// A line is not a record of the collector.
    #[error(
        "{file} is not a recording: line {line} is not a gpumon record: {cause}; make a recording \
         with `gpumon record FILE`"
    )]
    BadLine {
        file: String,
        /// The line number, starting at 1.
        line: usize,
        cause: String,
    },
    /// The file contains no sample.
    #[error(
        "{file} is not a recording: it contains no sample; make a recording with `gpumon record \
         FILE`"
    )]
    NoSample { file: String },
    /// The file begins with a block in a newer format.
    #[error(
        "{file} has format {format}, but this gpumon reads formats up to {FORMAT_VERSION}: use the \
         gpumon that recorded it, or a newer one"
    )]
    Newer { file: String, format: u8 },
    /// The file claims to contain so much text that reading it would need more memory or time than
    /// any real recording.
    #[error(
        "{file} is not a recording that gpumon made: its blocks contain more than {} MiB of text, \
         or expand to more than {} times their size; make a recording with `gpumon record FILE`",
        MAX_TEXT_BYTES >> 20,
        MAX_COMPRESSION_RATIO
    )]
    TooLarge { file: String },
    /// The file is compressed, but cannot be decompressed.
    #[error("cannot decompress {file}: {cause}; check the file with `gzip -t`")]
    NotUnpacked { file: String, cause: io::Error },
}

/// Returns a path with control characters escaped.
pub(crate) fn printable_path(path: &Path) -> String {
    escape_untrusted(&path.display().to_string())
}

/// A line within a text. It is parsed only as far as needed to find a point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The byte range of the line, without its line ending.
    pub range: Range<usize>,
    pub kind: RecordKind,
    /// The time of the record, in milliseconds since 1970; 0 if unknown.
    pub at_ms: u64,
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// The list of GPUs, driver and host.
    Inventory,
    /// The readings of one point in time.
    Sample,
    /// The slowly changing readings of the GPU with this index.
    Details(u32),
    Event,
    /// A record that playback does not need.
    Other,
}

#[derive(Deserialize)]
struct TimeAndIndex {
    #[serde(default)]
    at_ms: u64,
    #[serde(default)]
    index: u32,
}

/// Returns the kind and time of a record without parsing the rest.
///
/// # Errors
/// Returns an error if the text is not a JSON object with a `type`.
pub fn parse_kind_and_time(text: &str) -> Result<(RecordKind, u64), serde_json::Error> {
    let kind = read_type(text)?;
    if matches!(&*kind, "trace" | "answers") {
        return Ok((RecordKind::Other, 0));
    }
    let TimeAndIndex { at_ms, index } = serde_json::from_str(text)?;
    let kind = match &*kind {
        "inventory" => RecordKind::Inventory,
        "sample" => RecordKind::Sample,
        "details" => RecordKind::Details(index),
        "event" => RecordKind::Event,
        _ => RecordKind::Other,
    };
    Ok((kind, at_ms))
}

/// The maximum number of records in a block. A block of ten seconds usually has a few hundred
/// records, or a few thousand if there are many short events.
const MAX_BLOCK_RECORDS: usize = 100_000;

/// Splits a text into lines.
///
/// # Errors
/// Returns the reason if a record is invalid or if there are too many records.
pub(crate) fn parse_lines(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    let mut at = 0;
    for part in text.split_inclusive('\n') {
        let record = part.trim_end();
        if !record.is_empty() {
            if lines.len() == MAX_BLOCK_RECORDS {
                return Err(format!("it has more than {MAX_BLOCK_RECORDS} records"));
            }
            let (kind, at_ms) = parse_kind_and_time(record).map_err(|error| error.to_string())?;
            lines.push(Line {
                range: at..at + record.len(),
                kind,
                at_ms,
            });
        }
        at += part.len();
    }
    Ok(lines)
}
