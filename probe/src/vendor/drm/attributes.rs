//! Access to sysfs folders in which each file contains one value.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

use crate::{bounded, model::Absence};

/// A sysfs folder in which each file contains one value.
#[derive(Debug, Clone)]
pub(in crate::vendor) struct Attributes {
    folder: PathBuf,
    /// The open folder. Opening files relative to an open folder is faster.
    opened: Option<Arc<OwnedFd>>,
}

impl Attributes {
    /// Creates a reader for `folder`, which does not have to exist.
    pub(in crate::vendor) fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            opened: None,
        }
    }

    /// Opens `folder` for frequent reads. If the folder is replaced later, reads still refer to the
    /// original.
    pub(in crate::vendor) fn open(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, &folder, flags, Mode::empty());
        Self {
            folder,
            opened: opened.ok().map(Arc::new),
        }
    }

    pub(in crate::vendor) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads a file as text and trims whitespace.
    ///
    /// # Errors
    /// Returns the reason why there is no text. If the file is empty, the hardware lacks the value.
    pub(in crate::vendor) fn read_text(&self, name: &str) -> Result<String, Absence> {
        let text = self.read_bytes(name)?;
        let text = String::from_utf8_lossy(&text);
        // Some drivers terminate values with a NUL character.
        let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
        if text.is_empty() {
            return Err(Absence::NotSupported);
        }
        Ok(text.to_owned())
    }

    /// Reads a decimal number.
    ///
    /// # Errors
    /// Returns the reason why there is no number.
    pub(in crate::vendor) fn read_number<T: FromStr>(&self, name: &str) -> Result<T, Absence> {
        self.read_text(name)?.parse().map_err(|_| Absence::Unknown)
    }

    /// Reads a hexadecimal number, with or without `0x`.
    ///
    /// # Errors
    /// Returns the reason why there is no number.
    pub(in crate::vendor) fn read_hex(&self, name: &str) -> Result<u64, Absence> {
        let text = self.read_text(name)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16).map_err(|_| Absence::Unknown)
    }

    /// Reads all bytes of a file, up to one page.
    ///
    /// # Errors
    /// Returns the reason why the file cannot be read.
    pub(in crate::vendor) fn read_bytes(&self, name: &str) -> Result<Vec<u8>, Absence> {
        let read = || match &self.opened {
            Some(folder) => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
                let file = openat(folder, name, flags, Mode::empty())?;
                bounded::read_attribute_from(file.into())
            }
            None => bounded::read_attribute(self.folder.join(name)),
        };
        read().map_err(|error| absence_from_error(&error))
    }
}

/// Returns the reason why a sysfs file has no value.
fn absence_from_error(error: &io::Error) -> Absence {
    // The drivers refuse to read a card that is asleep or being reset: amdgpu returns EPERM, or
    // EBUSY since 2026. A user without permission to open the file gets EACCES instead.
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::ACCESS) => Absence::NoPermission,
        Some(Errno::PERM | Errno::BUSY | Errno::AGAIN | Errno::TIMEDOUT) => Absence::NoAnswer,
        Some(Errno::NODEV) => Absence::GpuLost,
        Some(Errno::NOENT | Errno::NODATA | Errno::NOTSUP | Errno::NXIO | Errno::NOTDIR) => {
            Absence::NotSupported
        }
        None if error.kind() == ErrorKind::NotFound => Absence::NotSupported,
        _ => Absence::Unknown,
    }
}

/// Returns the file names in a folder that are numbers.
pub(in crate::vendor) fn list_numbers(folder: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_or_absent_with_reason() {
        let folder = tempfile::tempdir().unwrap();
        let attributes = Attributes::new(folder.path());
        for (name, content) in [
            ("number", "42\n"),
            ("nul", "42 \0"),
            ("hex", "0x744c\n"),
            ("empty", "\n"),
            ("garbage", "N/A\n"),
        ] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        assert_eq!(attributes.read_number("number"), Ok(42_u64));
        assert_eq!(attributes.read_number("nul"), Ok(42_i64));
        assert_eq!(attributes.read_hex("hex"), Ok(0x744c));
        assert_eq!(
            attributes.read_number::<u64>("empty"),
            Err(Absence::NotSupported)
        );
        assert_eq!(
            attributes.read_number::<u64>("garbage"),
            Err(Absence::Unknown)
        );
        assert_eq!(
            attributes.read_number::<u64>("missing"),
            Err(Absence::NotSupported)
        );
    }

    #[test]
    fn refused_reads_have_distinct_reasons() {
        let reason =
            |errno: Errno| absence_from_error(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert_eq!(reason(Errno::ACCESS), Absence::NoPermission);
        assert_eq!(reason(Errno::PERM), Absence::NoAnswer);
        assert_eq!(reason(Errno::BUSY), Absence::NoAnswer);
        assert_eq!(reason(Errno::NODEV), Absence::GpuLost);
        assert_eq!(reason(Errno::IO), Absence::Unknown);
    }
}
