//! Reads files of procfs, sysfs and cgroupfs, never more of one than a limit.
//!
//! Such files say that they are empty, and some are as long as a process likes: the command line of one that maps 2 GB
//! as its arguments has 2 GB.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    path::Path,
};

/// One value: a sysfs attribute, `comm`.
pub const VALUE: usize = 4 << 10;

/// `/proc/PID/stat` and `/proc/PID/status`, in which groups and masks of CPUs can be long.
pub const STAT: usize = 8 << 10;

/// `/proc/PID/cgroup`, a line for each hierarchy.
pub const CGROUP: usize = 16 << 10;

/// `/proc/PID/cmdline`; what a process is, and where its kernel's connection file is, stands at its beginning.
pub const COMMAND_LINE: usize = 16 << 10;

/// `/proc/PID/environ`.
pub const ENVIRONMENT: usize = 64 << 10;

/// A table of the whole machine, such as `/proc/stat`, with a line for each of its CPUs or disks.
pub const TABLE: usize = 4 << 20;

/// Bytes read at a time; most of these files are shorter.
const PART: usize = 4 << 10;

/// The first `limit` bytes of a file.
///
/// # Errors
/// Where it cannot be opened or read.
pub fn read(path: impl AsRef<Path>, limit: usize) -> io::Result<Vec<u8>> {
    read_from(File::open(path)?, limit)
}

/// The same as text; what is no UTF-8 is replaced, since a process can call itself any bytes it likes.
///
/// # Errors
/// Where it cannot be opened or read.
pub fn text(path: impl AsRef<Path>, limit: usize) -> io::Result<String> {
    read(path, limit).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The first `limit` bytes of an open file. Its buffer never grows beyond `limit`, either.
pub(crate) fn read_from(file: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut file = file.take(limit as u64);
    let mut bytes = Vec::new();
    let mut part = [0; PART];
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
    fn an_endless_file_ends_at_the_limit_and_takes_no_more_memory() {
        let bytes = read("/dev/zero", 10_000).unwrap();
        assert_eq!((bytes.len(), bytes.capacity() <= 10_000), (10_000, true));
    }

    #[test]
    fn a_short_file_is_read_whole() {
        assert_ne!(text("/proc/self/comm", VALUE).unwrap().trim_end(), "");
        assert!(read("/proc/self/none", VALUE).is_err());
    }
}
