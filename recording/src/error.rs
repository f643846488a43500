//! What is wrong with what should be a recording.

use std::{io, path::Path};

use gpumon_probe::untrusted::escaped;
use thiserror::Error;

use crate::block::{LARGEST_RATIO, LARGEST_TEXT};

/// Why a file cannot be read as a recording, and what to do about it.
#[derive(Debug, Error)]
pub enum BadRecording {
    /// The file cannot be read at all.
    #[error("cannot read {file}: {cause}; check the path")]
    Unreadable {
        /// Its path.
        file: String,
        /// What the system said.
        cause: io::Error,
    },
    /// A line is none of the collector's.
    #[error(
        "{file} is not a recording: line {line} is not a record of gpumon: {cause}; make a recording with `gpumon record FILE`"
    )]
    BadLine {
        /// The file's path.
        file: String,
        /// The line's number, from 1 on.
        line: usize,
        /// What is wrong with it.
        cause: String,
    },
    /// Nothing was recorded, or nothing is left of it.
    #[error(
        "{file} is not a recording: there is no sample in it; make a recording with `gpumon record FILE`"
    )]
    NoSample {
        /// The file's path.
        file: String,
    },
    /// The file begins with a block of a format that is not known yet.
    #[error(
        "{file} has format {format}, and this gpumon reads up to {known}: use the gpumon that recorded it, or a newer one"
    )]
    Newer {
        /// The file's path.
        file: String,
        /// The format of the file.
        format: u8,
        /// The newest that is known.
        known: u8,
    },
    /// Its blocks would take more memory and time than a recording does.
    #[error(
        "{file} is not a recording that gpumon made: its blocks have more than {} MiB of text or {} times their size; make \
         a recording with `gpumon record FILE`",
        LARGEST_TEXT >> 20,
        LARGEST_RATIO
    )]
    TooLarge {
        /// The file's path.
        file: String,
    },
    /// A gzip file of something else.
    #[error(
        "cannot read {file}: it is compressed and cannot be unpacked: {cause}; check it with `gzip -t`"
    )]
    NotUnpacked {
        /// The file's path.
        file: String,
        /// What is wrong with it.
        cause: io::Error,
    },
}

/// A path, as it can be shown.
pub(crate) fn shown(path: &Path) -> String {
    escaped(&path.display().to_string())
}
