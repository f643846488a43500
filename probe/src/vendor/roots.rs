//! The file locations in which drivers are searched.

use std::{ffi::OsString, path::PathBuf};

/// The file locations in which drivers are searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// The file name of the NVML library, if not the default.
    pub nvml_lib: Option<OsString>,
    /// The path of `/sys`, which differs in tests.
    pub sys: PathBuf,
    /// The path of `/proc`, which differs in tests and in containers that mount the host's `/proc`
    /// elsewhere.
    pub proc: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            nvml_lib: None,
            sys: "/sys".into(),
            proc: "/proc".into(),
        }
    }
}
