//! The locations in which drivers are searched for.

use std::{ffi::OsString, path::PathBuf};

/// The root folders and the library name that are used to find drivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// The NVML library's file name, if it is not the default.
    pub nvml_lib: Option<OsString>,
    /// The path of `/sys`, which is replaced in tests.
    pub sys: PathBuf,
    /// The path of `/proc`, which is replaced in tests and in containers that mount the host's
    /// `/proc` elsewhere.
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
