//! Errors that end the command without output, in nvidia-smi's words.

use std::fmt;

use super::switches::UsageError;

/// An error message and an exit code. Like nvidia-smi, gpumon writes the message to standard
/// output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The complete message, including its line breaks.
    pub(crate) text: String,
    pub(crate) code: u8,
    /// Whether NVIDIA's own nvidia-smi, which may support the feature, runs instead.
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

    pub(crate) fn leave_to_nvidia_smi(self) -> Self {
        Self {
            is_left_to_nvidia_smi: true,
            ..self
        }
    }

    /// Creates the refusal for a feature that only NVIDIA's own nvidia-smi supports.
    fn new_unsupported(text: impl Into<String>) -> Self {
        Self::new(3, text).leave_to_nvidia_smi()
    }

    /// Creates a refusal in nvidia-smi's usual form, with `ERROR: ` before the text and `ending`
    /// after it.
    pub(crate) fn new_error(code: u8, text: &str, ending: &str) -> Self {
        Self::new(code, format!("ERROR: {text}{ending}"))
    }

    pub(crate) fn new_no_devices() -> Self {
        Self::new(6, "No devices were found\n")
    }

    /// Creates the refusal for a request that changes the GPU. gpumon never starts such a change,
    /// because an incomplete change would be worse than none. `form` is the subcommand, if any, and
    /// the switch.
    pub(crate) fn new_gpu_change(form: &str) -> Self {
        Self::new_unsupported(format!(
            "gpumon: '{form}' changes the GPU, which gpumon never does; use NVIDIA's own \
             nvidia-smi for it\n"
        ))
    }

    /// Creates the refusal for a feature that only NVIDIA's own nvidia-smi supports. `form` is the
    /// subcommand, if any, and the switch.
    pub(crate) fn new_handed_over(form: &str) -> Self {
        Self::new_unsupported(format!(
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
