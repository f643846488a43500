//! What was recorded, block by block.

use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use crate::{BadRecording, Kind, Line, block::Head, error::shown, index::Index, line::lines};

/// A file, with those that it was rotated into.
#[derive(Debug)]
pub struct Recording {
    /// The oldest first.
    files: Vec<Index>,
    blocks: Vec<Block>,
    cuts: Vec<Cut>,
}

#[derive(Debug)]
struct Block {
    file: usize,
    number: usize,
    head: Head,
    /// How many samples are before it.
    first_sample: usize,
}

/// A part of a file that cannot be read: its recorder was killed, or the disk was full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The file's path, as it can be shown.
    pub file: String,
    /// The time of the last sample before it, in milliseconds since 1970; 0 where there is none.
    pub after_ms: u64,
    /// How much is missing.
    pub bytes: u64,
    /// Whether nothing can be read behind it.
    pub is_at_end: bool,
}

/// The records of a block.
#[derive(Debug)]
pub struct Lines {
    text: String,
    records: Vec<Line>,
    /// The places of the samples among the lines.
    samples: Vec<usize>,
}

impl Lines {
    /// All of them, in the order in which they were recorded.
    pub fn lines(&self) -> &[Line] {
        &self.records
    }

    /// The record itself, as JSON.
    pub fn text(&self, line: &Line) -> &str {
        &self.text[line.range.clone()]
    }

    /// The places of the samples among the lines.
    pub fn samples(&self) -> &[usize] {
        &self.samples
    }
}

impl Recording {
    /// Opens a recording, with the older parts beside it, which [`Files`](crate::Files) has made:
    /// `FILE.1` and so on. Of blocks, only their heads are read.
    ///
    /// # Errors
    /// Where it is none, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, BadRecording> {
        let mut parts = vec![path.to_owned()];
        parts.extend(
            (1..)
                .map(|number| numbered(path, number))
                .take_while(|part| part.is_file()),
        );
        let mut recording = Self {
            files: Vec::new(),
            blocks: Vec::new(),
            cuts: Vec::new(),
        };
        let mut samples = 0;
        for (file, part) in parts.iter().rev().enumerate() {
            let mut index = Index::of(part)?;
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
            return Err(BadRecording::NoSample { file: shown(path) });
        }
        Ok(recording)
    }

    /// How many samples there are.
    pub fn samples(&self) -> usize {
        self.blocks
            .last()
            .map_or(0, |last| last.first_sample + last.head.samples as usize)
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// What a block says of itself.
    pub fn head(&self, block: usize) -> &Head {
        &self.blocks[block].head
    }

    /// The times of the first and the last sample, in milliseconds since 1970.
    pub fn times_ms(&self) -> (u64, u64) {
        let mut with_samples = self.blocks.iter().filter(|block| block.head.samples > 0);
        let first = with_samples.next();
        let last = with_samples.next_back().or(first);
        (
            first.map_or(0, |block| block.head.first_ms),
            last.map_or(0, |block| block.head.last_ms),
        )
    }

    /// What of it cannot be read.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// The block that has this sample, and which of its samples it is.
    pub(crate) fn place(&self, sample: usize) -> (usize, usize) {
        let block = self
            .blocks
            .partition_point(|block| block.first_sample <= sample)
            .saturating_sub(1);
        (block, sample - self.blocks[block].first_sample)
    }

    /// How many samples are before this block.
    pub(crate) fn first_sample(&self, block: usize) -> usize {
        self.blocks[block].first_sample
    }

    /// Reads a block.
    ///
    /// # Errors
    /// Where the file cannot be read, or the block is damaged.
    pub fn read(&self, block: usize) -> io::Result<Lines> {
        let Block {
            file, number, head, ..
        } = &self.blocks[block];
        let damaged = |cause: String| {
            let (first_ms, bytes) = (head.first_ms, head.bytes);
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a block of {bytes} bytes at {first_ms} ms is damaged: {cause}"),
            )
        };
        let text = self.files[*file]
            .text(*number)
            .map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput
                | io::ErrorKind::InvalidData
                | io::ErrorKind::UnexpectedEof => damaged(error.to_string()),
                _ => error,
            })?;
        let text = String::from_utf8(text).map_err(|_| damaged("it is not text".to_owned()))?;
        let lines = lines(&text).map_err(damaged)?;
        let is_sample = |place: &usize| lines[*place].kind == Kind::Sample;
        let samples = (0..lines.len()).filter(is_sample).collect();
        let lines = Lines {
            text,
            records: lines,
            samples,
        };
        if lines.samples.len() != head.samples as usize {
            return Err(damaged("it has not the samples that it says".to_owned()));
        }
        Ok(lines)
    }

    /// The blocks that can have something of this span, in milliseconds since 1970.
    pub fn within(&self, span: &Range<u64>) -> Vec<usize> {
        let is_within = |head: &Head| {
            head.samples > 0 && head.first_ms < span.end && head.last_ms >= span.start
        };
        (0..self.blocks.len())
            .filter(|block| is_within(&self.blocks[*block].head))
            .collect()
    }

    /// The newest inventory before this block, as JSON.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn inventory_before(&self, block: usize) -> io::Result<Option<String>> {
        let Some(block) = (0..block)
            .rev()
            .find(|block| self.blocks[*block].head.has_inventory)
        else {
            return Ok(None);
        };
        let lines = self.read(block)?;
        let newest = lines
            .lines()
            .iter()
            .rfind(|line| line.kind == Kind::Inventory);
        Ok(newest.map(|line| lines.text(line).to_owned()))
    }
}

/// `FILE.1`
pub(crate) fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}
