//! Values in the files of a folder of sysfs.

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

/// A folder of sysfs with one value in each file.
#[derive(Debug, Clone)]
pub(in crate::vendor) struct Attributes {
    folder: PathBuf,
    /// The open folder, from which its files are opened faster.
    opened: Option<Arc<OwnedFd>>,
}

impl Attributes {
    /// Returns the attributes in `folder`, which need not exist.
    pub(in crate::vendor) fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            opened: None,
        }
    }

    /// Returns the attributes in `folder`, whose files are read often. They are those of the folder
    /// that exists now, and not of one that takes its place later.
    pub(in crate::vendor) fn open(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, &folder, flags, Mode::empty());
        Self {
            folder,
            opened: opened.ok().map(Arc::new),
        }
    }

    /// Returns the folder.
    pub(in crate::vendor) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads a text without the space around it.
    ///
    /// # Errors
    /// The reason why there is none. An empty file means that the hardware lacks the value.
    pub(in crate::vendor) fn read_text(&self, name: &str) -> Result<String, Absence> {
        let text = self.read_bytes(name)?;
        let text = String::from_utf8_lossy(&text);
        // Some drivers end a value with a NUL.
        let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
        if text.is_empty() {
            return Err(Absence::NotSupported);
        }
        Ok(text.to_owned())
    }

    /// Reads a decimal number.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(in crate::vendor) fn read_number<T: FromStr>(&self, name: &str) -> Result<T, Absence> {
        self.read_text(name)?.parse().map_err(|_| Absence::Unknown)
    }

    /// Reads a hexadecimal number, with or without `0x`.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(in crate::vendor) fn read_hex(&self, name: &str) -> Result<u64, Absence> {
        let text = self.read_text(name)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16).map_err(|_| Absence::Unknown)
    }

    /// Reads all bytes, at most a page.
    ///
    /// # Errors
    /// The reason why there are none.
    pub(in crate::vendor) fn read_bytes(&self, name: &str) -> Result<Vec<u8>, Absence> {
        let read = || match &self.opened {
            Some(folder) => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
                let file = openat(folder, name, flags, Mode::empty())?;
                bounded::read_attribute_from(file.into())
            }
            None => bounded::read_attribute(self.folder.join(name)),
        };
        read().map_err(|error| absence_of(&error))
    }
}

/// Returns the reason why a file of sysfs has no value.
fn absence_of(error: &io::Error) -> Absence {
    // The drivers refuse to read a card that sleeps or is being reset: amdgpu with EPERM, or with
    // EBUSY since 2026. A user who may not open a file gets EACCES.
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

/// Returns the entries of a folder whose names are numbers.
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
    fn reasons_of_refusals_differ() {
        let reason = |errno: Errno| absence_of(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert_eq!(reason(Errno::ACCESS), Absence::NoPermission);
        assert_eq!(reason(Errno::PERM), Absence::NoAnswer);
        assert_eq!(reason(Errno::BUSY), Absence::NoAnswer);
        assert_eq!(reason(Errno::NODEV), Absence::GpuLost);
        assert_eq!(reason(Errno::IO), Absence::Unknown);
    }
}
