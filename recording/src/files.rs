//! The files of a recording: the current file, and older parts that were rotated.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read, Seek, Write},
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gpumon_probe::{bounded::open_regular, safe_file};
use thiserror::Error;

use crate::{
    block::{BlockHead, HEAD_BYTES, ParsedHead},
    recording::{numbered_path, printable_path},
};

/// Limits for the size, duration and number of files.
#[derive(Debug, Clone, Copy, Default)]
pub struct RotationLimits {
    /// The maximum size of a file in bytes. A file exceeds it only if a block does not fit into a
    /// new file.
    pub bytes: Option<u64>,
    /// The time after which a new file is started.
    pub time: Option<Duration>,
    /// The number of older files to keep; `None` keeps all of them.
    pub keep: Option<usize>,
}

impl RotationLimits {
    /// Returns an error if the size or the time of files is limited. At the limit, a new file would
    /// be started, which is impossible if the output is a pipe or a device.
    fn check_not_rotated(&self, path: &Path) -> Result<(), FilesError> {
        if self.bytes.is_some() || self.time.is_some() {
            return Err(FilesError::NotRotated(printable_path(path)));
        }
        Ok(())
    }
}

/// The reason why recording to a file is not possible.
#[derive(Debug, Error)]
pub enum FilesError {
    /// A file with this name already exists.
    #[error("{0} exists: choose another file, or overwrite it with --force")]
    Exists(String),
    /// A file that is not a recording has the name of an older part of this recording.
    #[error("{0} exists and is not a recording: move it away, or choose another file")]
    NotOurs(String),
    /// Another gpumon records to the same file.
    #[error("{0} is being recorded by another gpumon: choose another file, or stop that recording")]
    Busy(String),
    /// A pipe or a device cannot be rotated, because it has no size.
    #[error("{0} is not a regular file, and cannot be rotated: remove --size, --every and --keep")]
    NotRotated(String),
    /// Any other system error.
    #[error("cannot write {file}: {cause}{}", suggest_remedy(cause))]
    Other { file: String, cause: io::Error },
}

fn suggest_remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::NotFound => "; create its folder first",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a folder that you may write to"
        }
        io::ErrorKind::StorageFull => {
            "; free some space, or limit the recording with --size and --keep"
        }
        io::ErrorKind::QuotaExceeded => {
            "; free some of your quota, or limit the recording with --size and --keep"
        }
        io::ErrorKind::FileTooLarge => {
            "; raise the file size limit (ulimit -f), or rotate with --size"
        }
        _ => "",
    }
}

impl FilesError {
    fn new_other(file: &Path, cause: io::Error) -> Self {
        let file = printable_path(file);
        Self::Other { file, cause }
    }
}

/// The files that blocks are written to.
pub struct Files {
    path: PathBuf,
    file: File,
    limits: RotationLimits,
    /// The size of the current file, which contains whole blocks only.
    bytes: u64,
    begun: Instant,
    /// The block at the start of every file, which makes each file readable without the others.
    opening: Vec<u8>,
    /// The number of bytes written to all files.
    total_bytes: u64,
    /// Whether the output is a pipe or a device.
    is_stream: bool,
}

impl Files {
    /// Checks that a recording can be started at `path`.
    ///
    /// # Errors
    /// Returns a [`FilesError`] with a remedy.
    pub fn check_path(
        path: &Path,
        limits: RotationLimits,
        overwrite: bool,
    ) -> Result<(), FilesError> {
        let name = || printable_path(path);
        let existing = fs::metadata(path).ok();
        if existing.as_ref().is_some_and(is_stream) {
            return limits.check_not_rotated(path);
        }
        if existing.is_some() && !overwrite {
            return Err(FilesError::Exists(name()));
        }
        // Existing files with these names would be mistaken for older parts of this recording.
        for part in older_parts(path) {
            if !overwrite {
                return Err(FilesError::Exists(printable_path(&part)));
            }
            if !is_recording(&part) {
                return Err(FilesError::NotOurs(printable_path(&part)));
            }
        }
        Ok(())
    }

    /// Starts a recording in a new file. With `overwrite`, replaces an existing recording and all
    /// of its older parts.
    ///
    /// # Errors
    /// Returns a [`FilesError`] with a remedy.
    pub fn create(
        path: &Path,
        limits: RotationLimits,
        overwrite: bool,
    ) -> Result<Self, FilesError> {
        Self::check_path(path, limits, overwrite)?;
        let name = || printable_path(path);
        let other = |cause| FilesError::new_other(path, cause);
        let is_stream = fs::metadata(path).is_ok_and(|existing| is_stream(&existing));
        let file = if is_stream || overwrite {
            safe_file::create(path)
        } else {
            create_new(path)
        };
        let mut file = file.map_err(|cause| match cause.kind() {
            io::ErrorKind::AlreadyExists => FilesError::Exists(name()),
            _ => other(cause),
        })?;
        if !is_stream {
            // Only a lock that another recorder holds is an error. If the file system does not
            // support locks, recording starts without one.
            if matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)) {
                return Err(FilesError::Busy(name()));
            }
            file.set_len(0)
                .and_then(|()| file.rewind())
                .map_err(other)?;
            for part in older_parts(path).collect::<Vec<_>>() {
                fs::remove_file(&part).map_err(|cause| FilesError::new_other(&part, cause))?;
            }
        }
        Ok(Self::new(path, file, limits, is_stream))
    }

    /// Starts a recording to standard output, which may be a file, a pipe or a terminal.
    ///
    /// # Errors
    /// Returns an error if standard output is closed, or if the limits would require rotation.
    pub fn open_standard_output(limits: RotationLimits) -> Result<Self, FilesError> {
        let name = Path::new("standard output");
        limits.check_not_rotated(name)?;
        let handle = io::stdout().as_fd().try_clone_to_owned();
        let handle = handle.map_err(|cause| FilesError::new_other(name, cause))?;
        Ok(Self::new(name, handle.into(), limits, true))
    }

    fn new(path: &Path, file: File, limits: RotationLimits, is_stream: bool) -> Self {
        Self {
            path: path.to_owned(),
            file,
            limits,
            bytes: 0,
            begun: Instant::now(),
            opening: Vec::new(),
            total_bytes: 0,
            is_stream,
        }
    }

    /// Sets the block with which every further file starts.
    pub fn set_first_block(&mut self, block: Vec<u8>) {
        self.opening = block;
    }

    /// Returns the number of bytes written so far, including files that have been deleted.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Writes a block. If the current file has reached a limit, the block is written to a new file.
    ///
    /// # Errors
    /// Returns an error if writing fails. In that case, the file still contains only complete
    /// blocks.
    pub fn write(&mut self, block: &[u8]) -> Result<(), FilesError> {
        let is_full = self
            .limits
            .bytes
            .is_some_and(|most| self.bytes + block.len() as u64 > most)
            || self
                .limits
                .time
                .is_some_and(|longest| self.begun.elapsed() >= longest);
        if is_full && self.bytes > 0 && !self.is_stream {
            self.rotate()?;
        }
        self.append_to_current_file(block)
    }

    fn append_to_current_file(&mut self, block: &[u8]) -> Result<(), FilesError> {
        if let Err(cause) = self.file.write_all(block).and_then(|()| self.file.flush()) {
            if !self.is_stream {
                // A partial block is useless, so the file is truncated. If that fails too, readers
                // stop at the partial block.
                let _ = self.file.set_len(self.bytes);
            }
            return Err(FilesError::new_other(&self.path, cause));
        }
        self.bytes += block.len() as u64;
        self.total_bytes += block.len() as u64;
        Ok(())
    }

    /// Renames the current file, which becomes the newest older part, and starts a new file.
    fn rotate(&mut self) -> Result<(), FilesError> {
        let mut last = older_parts(&self.path).count();
        while self.limits.keep.is_some_and(|keep| last >= keep.max(1)) {
            let oldest = numbered_path(&self.path, last);
            fs::remove_file(&oldest).map_err(|cause| FilesError::new_other(&oldest, cause))?;
            last -= 1;
        }
        for number in (1..=last).rev() {
            let part = numbered_path(&self.path, number);
            fs::rename(&part, numbered_path(&self.path, number + 1))
                .map_err(|cause| FilesError::new_other(&part, cause))?;
        }
        if self.limits.keep == Some(0) {
            fs::remove_file(&self.path)
        } else {
            fs::rename(&self.path, numbered_path(&self.path, 1))
        }
        .map_err(|cause| FilesError::new_other(&self.path, cause))?;
        self.file =
            create_new(&self.path).map_err(|cause| FilesError::new_other(&self.path, cause))?;
        let _ = self.file.try_lock();
        (self.bytes, self.begun) = (0, Instant::now());
        let opening = std::mem::take(&mut self.opening);
        let written = self.append_to_current_file(&opening);
        self.opening = opening;
        written
    }
}

/// Creates a file that must not exist yet. Links are not followed, because a link counts as an
/// existing file.
fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Returns `true` for a pipe or a device.
fn is_stream(file: &Metadata) -> bool {
    !file.is_file() && !file.is_dir()
}

/// Returns the paths of a recording's existing older parts, newest first.
fn older_parts(path: &Path) -> impl Iterator<Item = PathBuf> {
    (1..)
        .map(move |number| numbered_path(path, number))
        .take_while(|part| part.exists())
}

fn is_recording(path: &Path) -> bool {
    let mut first = Vec::new();
    let read =
        open_regular(path).and_then(|file| file.take(HEAD_BYTES as u64).read_to_end(&mut first));
    read.is_ok_and(|length| {
        length == 0
            || matches!(
                BlockHead::parse(&first),
                ParsedHead::Block(_) | ParsedHead::Newer(_)
            )
    })
}
