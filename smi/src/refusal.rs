//! Errors that end the process without output, in nvidia-smi's words.

use std::fmt;

use super::switches::UsageError;

/// A message and an exit code. The message goes to standard output, where nvidia-smi writes its
/// errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The complete message, including its line endings.
    pub(crate) text: String,
    pub(crate) code: u8,
    /// Whether NVIDIA's own nvidia-smi, which may have the feature, is run instead.
    pub(crate) is_left_to_nvidia_smi: bool,
}

impl Refusal {
    pub(crate) fn new(code: u8, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            code,
            is_left_to_nvidia_smi: false,
        }
    }

    pub(crate) fn left_to_nvidia_smi(self) -> Self {
        Self {
            is_left_to_nvidia_smi: true,
            ..self
        }
    }

    /// Creates the refusal of a feature that only NVIDIA's own nvidia-smi has.
    fn not_done(text: impl Into<String>) -> Self {
        Self::new(3, text).left_to_nvidia_smi()
    }

    /// Creates a refusal in the usual form of nvidia-smi: `ERROR: ` before the text and an ending
    /// after it.
    pub(crate) fn error(code: u8, text: &str, ending: &str) -> Self {
        Self::new(code, format!("ERROR: {text}{ending}"))
    }

    pub(crate) fn no_devices() -> Self {
        Self::new(6, "No devices were found\n")
    }

    /// Creates the refusal of a request that changes the GPU. gpumon does not start such a change,
    /// because half of it would be worse than none. `form` is the switch, with its subcommand.
    pub(crate) fn changes_the_gpu(form: &str) -> Self {
        Self::not_done(format!(
            "gpumon: '{form}' changes the GPU, which gpumon never does; use NVIDIA's own nvidia-smi for it\n"
        ))
    }

    /// Creates the refusal of a feature that only NVIDIA's own tool has. `form` is the switch, with
    /// its subcommand.
    pub(crate) fn handed_over(form: &str) -> Self {
        Self::not_done(format!(
            "gpumon: '{form}' is not part of gpumon; use NVIDIA's own nvidia-smi for it\n"
        ))
    }
}

impl From<UsageError<'_>> for Refusal {
    fn from(fault: UsageError<'_>) -> Self {
        Self::new(2, format!("{fault}\n"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
