//! Reading of files up to a size limit: files in procfs, sysfs and cgroupfs, and files whose paths
//! users specify.
//!
//! Files in procfs report a size of 0, and processes determine their content: a process that maps 2
//! GB as its arguments has a command line of 2 GB.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// The limit of a single value, such as a sysfs attribute or `comm`.
pub const VALUE_LIMIT: usize = 4 << 10;

/// The limit for `/proc/PID/stat` and `/proc/PID/status`, which can contain long lists of groups
/// and CPU masks.
pub const STAT_LIMIT: usize = 8 << 10;

/// The limit for `/proc/PID/cgroup`, which has one line per hierarchy.
pub const CGROUP_LIMIT: usize = 16 << 10;

/// The limit for `/proc/PID/cmdline`. The arguments that gpumon needs, such as the program and the
/// connection file of a Jupyter kernel, are near the start of the command line.
pub const COMMAND_LINE_LIMIT: usize = 16 << 10;

/// The limit for `/proc/PID/environ`.
pub const ENVIRONMENT_LIMIT: usize = 64 << 10;

/// The limit for a file about the whole machine that has one line per CPU or disk, such as
/// `/proc/stat`.
pub const TABLE_LIMIT: usize = 4 << 20;

/// The number of bytes read at a time. Most of these files are shorter.
const CHUNK_BYTES: usize = 4 << 10;

/// Returns at most the first `limit` bytes of a file.
///
/// # Errors
/// Returns an error if the file cannot be opened or read.
pub fn read(path: impl AsRef<Path>, limit: usize) -> io::Result<Vec<u8>> {
    read_from(File::open(path)?, limit)
}

/// Returns the content of a sysfs attribute, which the kernel returns in one read of at most a
/// page.
///
/// # Errors
/// Returns an error if the file cannot be opened or read.
pub fn read_attribute(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read_attribute_from(File::open(path)?)
}

/// Returns the content of an open sysfs attribute.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn read_attribute_from(mut file: File) -> io::Result<Vec<u8>> {
    let mut page = [0; VALUE_LIMIT];
    let length = loop {
        match file.read(&mut page) {
            Ok(length) => break length,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    Ok(page[..length].to_vec())
}

/// Returns at most the first `limit` bytes of a file as text. Invalid UTF-8 is replaced, because a
/// process's name can consist of any bytes.
///
/// # Errors
/// Returns an error if the file cannot be opened or read.
pub fn read_text(path: impl AsRef<Path>, limit: usize) -> io::Result<String> {
    read(path, limit).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Opens a regular file. Does not block on devices or on pipes without a writer.
///
/// # Errors
/// Returns an error if the file cannot be opened, or is not a regular file.
pub fn open_regular(path: impl AsRef<Path>) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        "the path is a directory, a pipe or a device; use a regular file",
    ))
}

/// Reads a regular file as text.
///
/// # Errors
/// Returns an error if the file cannot be read, is not a regular file, is not UTF-8, or has more
/// than `limit` bytes.
pub fn read_regular_text(path: impl AsRef<Path>, limit: usize) -> io::Result<String> {
    read_text_from(open_regular(path)?, limit)
}

/// Reads an open file or pipe as text.
///
/// # Errors
/// Returns an error if the file cannot be read, is not UTF-8, or has more than `limit` bytes.
pub fn read_text_from(file: impl Read, limit: usize) -> io::Result<String> {
    let bytes = read_from(file, limit.saturating_add(1))?;
    if bytes.len() > limit {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("the file is larger than {limit} bytes"),
        ));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "the file is not UTF-8 text"))
}

/// Returns at most the first `limit` bytes of an open file. The buffer never grows beyond `limit`.
pub(crate) fn read_from(file: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut file = file.take(limit as u64);
    let mut bytes = Vec::new();
    let mut part = [0; CHUNK_BYTES];
    loop {
        match file.read(&mut part) {
            Ok(0) => return Ok(bytes),
            Ok(length) => {
                let needed = bytes.len() + length;
                if bytes.capacity() < needed {
                    let capacity = (2 * bytes.capacity()).clamp(needed, limit.max(needed));
                    bytes.reserve_exact(capacity - bytes.len());
                }
                bytes.extend_from_slice(&part[..length]);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_file_is_read_up_to_limit() {
        let bytes = read("/dev/zero", 10_000).unwrap();
        assert_eq!((bytes.len(), bytes.capacity() <= 10_000), (10_000, true));
    }

    #[test]
    fn pipes_devices_and_long_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        for path in [&*pipe, Path::new("/dev/zero"), folder.path()] {
            assert!(read_regular_text(path, 10).is_err(), "{}", path.display());
        }
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(read_regular_text(&file, 5).unwrap(), "12345");
        assert_eq!(
            read_regular_text(&file, 4).unwrap_err().kind(),
            ErrorKind::FileTooLarge
        );
    }

    #[test]
    fn short_file_is_read_completely() {
        assert_ne!(
            read_text("/proc/self/comm", VALUE_LIMIT)
                .unwrap()
                .trim_end(),
            ""
        );
        assert!(read("/proc/self/none", VALUE_LIMIT).is_err());
    }
}
