//! Why nothing is shown, in nvidia-smi's words.

use std::fmt;

/// A message for standard output, where nvidia-smi writes its errors, and how the process ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// All of it, ends of lines included.
    pub(crate) text: String,
    /// The exit code.
    pub(crate) code: u8,
}

impl Refusal {
    /// A refusal with its own text and code.
    pub(crate) fn new(code: u8, text: impl Into<String>) -> Self {
        Self { text: text.into(), code }
    }

    /// No GPU is what was asked for.
    pub(crate) fn no_devices() -> Self {
        Self::new(6, "No devices were found\n")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
