//! Xids from the kernel's log, which has also those that NVML's events leave out, and the driver's own words.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read, Seek, SeekFrom},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::Path,
    thread,
    time::Duration,
};

use rustix::fs::OFlags;

use crate::vendor::{ErrorLog, LoggedError};

mod line;

/// The kernel hands out one record per read, and refuses to where the buffer is too small; none is larger.
const RECORD_BYTES: usize = 8 * 1024;

/// Some containers have `/dev/null` or a terminal in its place, and would be taken for a log that is silent: the log is
/// character device 1:11.
const KERNEL_LOG_DEVICE: u64 = 0x010b;

/// An ordinary file has an end, where the kernel's log waits; it is looked at again after this long.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The kernel's log from now on, or a file or named pipe that looks like it.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
    /// The beginning of a line whose end has not come yet.
    begun: Vec<u8>,
    /// Whether what comes is the rest of a line that is too long to be one of the driver's.
    too_long: bool,
}

impl KernelLog {
    /// Opens the log; what is in it already is left alone.
    ///
    /// # Errors
    /// Where it cannot be opened, at once: it does not wait for a named pipe's writer. What is no log is not found.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = open_file(path, OFlags::empty())?;
        // A pipe cannot seek, and has no past.
        if let Err(error) = file.seek(SeekFrom::End(0))
            && error.kind() != ErrorKind::NotSeekable
        {
            return Err(error);
        }
        Ok(Self::over(file))
    }

    fn over(file: File) -> Self {
        Self {
            file,
            begun: Vec::new(),
            too_long: false,
        }
    }

    /// Blocks until the driver has logged an Xid.
    ///
    /// # Errors
    /// Where nothing more can be read.
    pub fn wait(&mut self) -> io::Result<LoggedError> {
        loop {
            while let Some(line) = self.take_line() {
                if let Some(xid) = line::parse(&line) {
                    return Ok(xid);
                }
            }
            if !self.read_more()? {
                thread::sleep(LOOK_AGAIN);
            }
        }
    }

    /// Whether there may be more to read at once.
    fn read_more(&mut self) -> io::Result<bool> {
        let mut buffer = [0; RECORD_BYTES];
        let read = self.file.read(&mut buffer);
        self.ingest(read.map(|length| &buffer[..length]))
    }

    fn ingest(&mut self, read: io::Result<&[u8]>) -> io::Result<bool> {
        match read {
            Ok([]) => return Ok(false),
            Ok(bytes) => self.begun.extend_from_slice(bytes),
            // EPIPE: records were overwritten before they were read. The next read goes on behind the gap.
            Err(error)
                if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// The next whole line; none where its end has not come yet.
    fn take_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') else {
                if self.begun.len() > RECORD_BYTES {
                    self.begun.clear();
                    self.too_long = true;
                }
                return None;
            };
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            if !std::mem::take(&mut self.too_long) {
                return Some(line);
            }
        }
    }
}

/// What the driver has logged until now, each message behind its time in microseconds since the start of the kernel.
///
/// # Errors
/// Where the log cannot be opened or read. What is no log is not found.
pub fn messages(path: &Path) -> io::Result<Vec<String>> {
    let mut log = KernelLog::over(open_file(path, OFlags::NONBLOCK)?);
    let mut messages = Vec::new();
    while log.read_more()? {
        while let Some(line) = log.take_line() {
            messages.extend(line::message(&line));
        }
    }
    Ok(messages)
}

impl ErrorLog for KernelLog {
    fn wait(&mut self) -> Option<LoggedError> {
        Self::wait(self).ok()
    }
}

/// A named pipe is opened for writing too: so it waits neither for its writer nor ends when that one goes.
fn open_file(path: &Path, flags: OFlags) -> io::Result<File> {
    let metadata = path.metadata()?;
    if metadata.file_type().is_char_device() && metadata.rdev() != KERNEL_LOG_DEVICE {
        return Err(ErrorKind::NotFound.into());
    }
    let is_pipe = metadata.file_type().is_fifo();
    OpenOptions::new()
        .read(true)
        .write(is_pipe)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests;
