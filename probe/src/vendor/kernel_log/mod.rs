//! Access to the kernel log, to which drivers write their errors.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read, Seek, SeekFrom},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::Path,
    thread,
    time::Duration,
};

use rustix::fs::OFlags;

use crate::vendor::{ErrorLog, LoggedError};

/// A parser that finds one vendor's driver errors in kernel messages.
pub(super) trait LogParser: Send {
    /// Parses a kernel message, and returns the errors that this message completes. Some errors
    /// consist of several messages.
    fn parse(&mut self, text: &str) -> Vec<LoggedError>;
}

/// The size of the read buffer. Each read of the kernel log returns one record, and fails if the
/// record is larger than the buffer. No record is that large.
const RECORD_BYTES: usize = 8 * 1024;

/// The device number of the kernel log, 1:11. Some containers have `/dev/null` or a terminal in its
/// place. Without a check of the number, these would look like an empty log.
const KERNEL_LOG_DEVICE: u64 = 0x010b;

/// The interval at which an ordinary file is checked for new lines. The real kernel log blocks
/// instead.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A reader for new messages in the kernel log, or in a file or named pipe with the same format.
struct KernelLog {
    file: File,
    parser: Box<dyn LogParser>,
    /// Errors that have been found but not yet returned.
    found: VecDeque<LoggedError>,
    /// The beginning of a line that has not been completely read yet.
    begun: Vec<u8>,
    /// Whether the rest of the current line is being skipped. This is done if the line is too long
    /// for a driver message.
    too_long: bool,
}

impl KernelLog {
    /// Opens the log at its end. If the log is a named pipe, opening does not wait for a writer.
    ///
    /// # Errors
    /// Returns an error if the log cannot be opened.
    fn open(path: &Path, parser: impl LogParser + 'static) -> io::Result<Self> {
        Ok(Self::from_file(open_at_end(path)?, parser))
    }

    fn from_file(file: File, parser: impl LogParser + 'static) -> Self {
        Self {
            file,
            parser: Box::new(parser),
            found: VecDeque::new(),
            begun: Vec::new(),
            too_long: false,
        }
    }

    /// Blocks until a driver logs an error.
    ///
    /// # Errors
    /// Returns an error if the log can no longer be read.
    fn wait(&mut self) -> io::Result<LoggedError> {
        loop {
            if let Some(error) = self.found.pop_front() {
                return Ok(error);
            }
            while let Some(line) = self.take_line() {
                if let Some(text) = parse_kernel_text(&line) {
                    self.found.extend(self.parser.parse(&text));
                }
            }
            if self.found.is_empty() && !self.read_more()? {
                thread::sleep(POLL_INTERVAL);
            }
        }
    }

    /// Reads more of the log into the buffer. Returns `true` if more data may be available
    /// immediately.
    fn read_more(&mut self) -> io::Result<bool> {
        let mut buffer = [0; RECORD_BYTES];
        let read = self.file.read(&mut buffer);
        self.buffer_read_bytes(read.map(|length| &buffer[..length]))
    }

    fn buffer_read_bytes(&mut self, read: io::Result<&[u8]>) -> io::Result<bool> {
        match read {
            Ok([]) => return Ok(false),
            Ok(bytes) => self.begun.extend_from_slice(bytes),
            // EPIPE means that records were overwritten before they could be read. The next read
            // continues after the gap.
            Err(error)
                if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Takes the next complete line from the buffer, if there is one.
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

/// Opens the log at its end, and returns a reader for new errors that `parser` finds. Returns an
/// empty vector if the log cannot be opened.
pub(super) fn open_error_log(
    path: &Path,
    parser: impl LogParser + 'static,
) -> Vec<Box<dyn ErrorLog>> {
    let log = KernelLog::open(path, parser).ok();
    log.into_iter().map(|log| Box::new(log) as _).collect()
}

/// Returns the GPU drivers' messages logged so far. Each starts with its time in microseconds since
/// boot.
///
/// # Errors
/// Returns an error if the log cannot be opened or read. The error is `NotFound` if the device is
/// not a kernel log.
pub(super) fn read_driver_messages(path: &Path) -> io::Result<Vec<String>> {
    read_past_lines(path, parse_driver_message)
}

/// Returns the kernel messages logged so far. A named pipe has no past messages.
///
/// # Errors
/// Returns an error if the log cannot be opened or read.
pub(super) fn read_past_messages(path: &Path) -> io::Result<Vec<String>> {
    if path.metadata()?.file_type().is_fifo() {
        return Ok(Vec::new());
    }
    read_past_lines(path, parse_kernel_text)
}

fn read_past_lines(
    path: &Path,
    parse: impl Fn(&[u8]) -> Option<String>,
) -> io::Result<Vec<String>> {
    let mut log = KernelLog::from_file(open_file(path, OFlags::NONBLOCK)?, NoErrors);
    let mut messages = Vec::new();
    while log.read_more()? {
        while let Some(line) = log.take_line() {
            messages.extend(parse(&line));
        }
    }
    Ok(messages)
}

/// A parser that ignores all messages.
struct NoErrors;

impl LogParser for NoErrors {
    fn parse(&mut self, _text: &str) -> Vec<LoggedError> {
        Vec::new()
    }
}

impl ErrorLog for KernelLog {
    fn wait_for_error(&mut self) -> Option<LoggedError> {
        Self::wait(self).ok()
    }
}

/// Opens the log at its end.
///
/// # Errors
/// Returns an error if the log cannot be opened.
pub(super) fn open_at_end(path: &Path) -> io::Result<File> {
    let mut file = open_file(path, OFlags::empty())?;
    // A pipe is not seekable, but it has no old messages to skip.
    if let Err(error) = file.seek(SeekFrom::End(0))
        && error.kind() != ErrorKind::NotSeekable
    {
        return Err(error);
    }
    Ok(file)
}

/// Opens the log. If the log is a named pipe, it is also opened for writing: then opening does not
/// wait for a writer, and the log does not end when the last writer closes the pipe.
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

/// The maximum length of a driver message, in characters. Longer messages are truncated, because
/// every message is sent to all clients.
const MAX_MESSAGE_CHARS: usize = 512;

/// The prefixes by which the GPU drivers' messages are recognized.
const DRIVER_PREFIXES: [&str; 8] = [
    "NVRM: ",
    "nvidia",
    "[drm] [nvidia",
    "amdgpu",
    "[drm:amdgpu",
    "i915 ",
    "xe ",
    "[drm:xe",
];

/// If the line is a GPU driver's message, returns the time in microseconds since boot, followed by
/// the message.
fn parse_driver_message(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let (time, text) = split_kmsg_line(line.trim_end())?;
    let is_of_driver = DRIVER_PREFIXES
        .iter()
        .any(|beginning| text.starts_with(beginning));
    is_of_driver.then(|| time.map_or_else(|| text.to_owned(), |time| format!("{time} {text}")))
}

/// Returns the text of a line, or `None` if the line was not written by the kernel.
pub(super) fn parse_kernel_text(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    split_kmsg_line(line.trim_end()).map(|(_, text)| text.to_owned())
}

/// Removes control characters from a message and truncates it, so that it can be sent to clients.
pub(super) fn make_printable(message: &str) -> String {
    let letters = message.trim().chars().filter(|letter| !letter.is_control());
    letters.take(MAX_MESSAGE_CHARS).collect()
}

/// Splits a line of `/dev/kmsg`, such as `4,1234,567890,-;text`, into its time and its text. The
/// prefix consists of priority, sequence number, time and flags.
///
/// Returns `None` for lines that programs have written. In the kernel's own lines, the facility in
/// the priority is 0.
fn split_kmsg_line(line: &str) -> Option<(Option<u64>, &str)> {
    let Some((prefix, text)) = line.split_once(';') else {
        return Some((None, line));
    };
    let mut fields = prefix.split(',');
    match (fields.next().map(str::parse::<u32>), fields.nth(1)) {
        (Some(Ok(priority)), Some(time)) => (priority < 8).then_some((time.parse().ok(), text)),
        _ => Some((None, line)),
    }
}

#[cfg(test)]
mod tests;
