//! The kernel's log, in which the drivers report errors.

use std::{
    collections::VecDeque,
    fmt,
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

pub(super) use line::printable;
#[cfg(test)]
pub(super) use line::text;

/// Finds a driver's errors in the messages of the kernel.
pub(super) trait LogParser: Send {
    /// Returns the errors that are complete with this message. Some take several messages.
    fn parse(&mut self, text: &str) -> Vec<LoggedError>;
}

/// The kernel hands out one record per read, and refuses to where the buffer is too small; none is
/// larger.
const RECORD_BYTES: usize = 8 * 1024;

/// Some containers have `/dev/null` or a terminal in its place, and would be taken for a log that
/// is silent: the log is character device 1:11.
const KERNEL_LOG_DEVICE: u64 = 0x010b;

/// An ordinary file has an end, where the kernel's log waits; it is looked at again after this
/// long.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The kernel's log from now on, or a file or named pipe that looks like it.
pub(super) struct KernelLog {
    file: File,
    parser: Box<dyn LogParser>,
    /// Errors that were found and not returned yet.
    found: VecDeque<LoggedError>,
    /// The beginning of a line whose end has not come yet.
    begun: Vec<u8>,
    /// Whether what comes is the rest of a line that is too long to be one of the driver's.
    too_long: bool,
}

impl KernelLog {
    /// Opens the log behind its last message.
    ///
    /// # Errors
    /// The log cannot be opened. This does not wait for the writer of a named pipe.
    pub(super) fn open(path: &Path, parser: impl LogParser + 'static) -> io::Result<Self> {
        Ok(Self::read_from(open_at_end(path)?, parser))
    }

    fn read_from(file: File, parser: impl LogParser + 'static) -> Self {
        Self {
            file,
            parser: Box::new(parser),
            found: VecDeque::new(),
            begun: Vec::new(),
            too_long: false,
        }
    }

    /// Waits until a driver has logged an error.
    ///
    /// # Errors
    /// The log can no longer be read.
    fn wait(&mut self) -> io::Result<LoggedError> {
        loop {
            if let Some(error) = self.found.pop_front() {
                return Ok(error);
            }
            while let Some(line) = self.take_line() {
                if let Some(text) = line::text(&line) {
                    self.found.extend(self.parser.parse(&text));
                }
            }
            if self.found.is_empty() && !self.read_more()? {
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
            // EPIPE: records were overwritten before they were read. The next read goes on behind
            // the gap.
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

/// What the driver has logged until now, each message behind its time in microseconds since the
/// start of the kernel.
///
/// # Errors
/// Where the log cannot be opened or read. What is no log is not found.
pub(super) fn messages(path: &Path) -> io::Result<Vec<String>> {
    read_past(path, line::message)
}

/// Returns the messages of the kernel until now. A named pipe has none.
///
/// # Errors
/// The log cannot be opened or read.
pub(super) fn past_messages(path: &Path) -> io::Result<Vec<String>> {
    if path.metadata()?.file_type().is_fifo() {
        return Ok(Vec::new());
    }
    read_past(path, line::text)
}

fn read_past(path: &Path, parse: impl Fn(&[u8]) -> Option<String>) -> io::Result<Vec<String>> {
    let mut log = KernelLog::read_from(open_file(path, OFlags::NONBLOCK)?, NoErrors);
    let mut messages = Vec::new();
    while log.read_more()? {
        while let Some(line) = log.take_line() {
            messages.extend(parse(&line));
        }
    }
    Ok(messages)
}

/// Finds no errors.
struct NoErrors;

impl LogParser for NoErrors {
    fn parse(&mut self, _text: &str) -> Vec<LoggedError> {
        Vec::new()
    }
}

impl fmt::Debug for KernelLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelLog")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl ErrorLog for KernelLog {
    fn wait(&mut self) -> Option<LoggedError> {
        Self::wait(self).ok()
    }
}

/// Opens the log behind its last message.
///
/// # Errors
/// The log cannot be opened.
pub(super) fn open_at_end(path: &Path) -> io::Result<File> {
    let mut file = open_file(path, OFlags::empty())?;
    // A pipe cannot seek, and has no past.
    if let Err(error) = file.seek(SeekFrom::End(0))
        && error.kind() != ErrorKind::NotSeekable
    {
        return Err(error);
    }
    Ok(file)
}

/// A named pipe is opened for writing too: so it waits neither for its writer nor ends when that
/// one goes.
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
