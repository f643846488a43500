//! The places in which drivers are found.

use std::{ffi::OsString, path::PathBuf};

/// The places in which drivers are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// The name under which NVML's library is looked up, if not the usual one.
    pub nvml_lib: Option<OsString>,
    /// `/sys` except in tests.
    pub sys: PathBuf,
    /// `/proc` except in tests, and in containers with the machine's own.
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
