//! Errors that can occur while reading a recording.

use std::{io, path::Path};

use gpumon_probe::untrusted::escape_untrusted;
use thiserror::Error;

use crate::block::{MAX_COMPRESSION_RATIO, MAX_TEXT_BYTES};

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
        "{file} has format {format}, but this gpumon reads formats up to {known}: use the gpumon \
         that recorded it, or a newer one"
    )]
    Newer {
        file: String,
        format: u8,
        /// The newest format that this gpumon can read.
        known: u8,
    },
    /// The blocks would need more memory or time than any real recording.
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
