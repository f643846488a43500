//! Errors of reading a recording.

use std::{io, path::Path};

use gpumon_probe::untrusted::escaped;
use thiserror::Error;

use crate::block::{LARGEST_RATIO, LARGEST_TEXT};

/// The reason why a file cannot be read as a recording, with a remedy.
#[derive(Debug, Error)]
pub enum BadRecording {
    /// The system cannot read the file.
    #[error("cannot read {file}: {cause}; check the path")]
    Unreadable { file: String, cause: io::Error },
    /// A line is not a record of the collector.
    #[error(
        "{file} is not a recording: line {line} is not a record of gpumon: {cause}; make a recording with `gpumon record FILE`"
    )]
    BadLine {
        file: String,
        /// The line number, starting at 1.
        line: usize,
        cause: String,
    },
    /// The file contains no sample.
    #[error(
        "{file} is not a recording: there is no sample in it; make a recording with `gpumon record FILE`"
    )]
    NoSample { file: String },
    /// The file begins with a block in a newer format.
    #[error(
        "{file} has format {format}, and this gpumon reads up to {known}: use the gpumon that recorded it, or a newer one"
    )]
    Newer {
        file: String,
        format: u8,
        /// The newest format that this gpumon can read.
        known: u8,
    },
    /// The blocks would need more memory and time than a recording does.
    #[error(
        "{file} is not a recording that gpumon made: its blocks have more than {} MiB of text or {} times their size; make \
         a recording with `gpumon record FILE`",
        LARGEST_TEXT >> 20,
        LARGEST_RATIO
    )]
    TooLarge { file: String },
    /// The file is compressed, but cannot be unpacked.
    #[error(
        "cannot read {file}: it is compressed and cannot be unpacked: {cause}; check it with `gzip -t`"
    )]
    NotUnpacked { file: String, cause: io::Error },
}

/// Returns a path with control characters escaped.
pub(crate) fn shown(path: &Path) -> String {
    escaped(&path.display().to_string())
}
