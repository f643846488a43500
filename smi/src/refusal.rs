//! Why nothing is shown, in nvidia-smi's words.

use std::fmt;

use super::switches::UsageError;

/// A message for standard output, where nvidia-smi writes its errors, and how the process ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// All of it, ends of lines included.
    pub(crate) text: String,
    pub(crate) code: u8,
    /// Whether NVIDIA's own nvidia-smi may do what gpumon does not.
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

    /// What only NVIDIA's own nvidia-smi does.
    pub(crate) fn not_done(text: impl Into<String>) -> Self {
        Self::new(3, text).left_to_nvidia_smi()
    }

    /// As most of nvidia-smi's refusals begin and end.
    pub(crate) fn error(code: u8, text: &str, ending: &str) -> Self {
        Self::new(code, format!("ERROR: {text}{ending}"))
    }

    pub(crate) fn no_devices() -> Self {
        Self::new(6, "No devices were found\n")
    }

    /// What was asked for changes the GPU, and is not even begun: half of it done would be worse. `form` is the switch,
    /// with its subcommand.
    pub(crate) fn changes_the_gpu(form: &str) -> Self {
        Self::not_done(format!(
            "gpumon: '{form}' changes the GPU, which gpumon never does; use NVIDIA's own nvidia-smi for it\n"
        ))
    }

    /// The summary of several GPUs side by side, of which only NVIDIA's own tool knows how it looks.
    pub(crate) fn no_columns() -> Self {
        Self::not_done(
            "gpumon: '-col' asks for the summary in columns, which gpumon does not draw for several GPUs; leave it out, \
             or use NVIDIA's own nvidia-smi for it\n",
        )
    }

    /// The log that only NVIDIA can read, and only its own tool can write.
    pub(crate) fn no_debug_log(option: &str) -> Self {
        Self::not_done(format!(
            "gpumon: '{option}' asks for an encrypted log of NVIDIA's own, which gpumon cannot write; leave it out, \
                 or use NVIDIA's own nvidia-smi for it\n"
        ))
    }

    /// A group of columns of driver 610, of which only NVIDIA's own tool knows how it looks.
    pub(crate) fn no_mma_stall() -> Self {
        Self::not_done(
            "gpumon: 'dmon -s n' asks for the MMA stall, which gpumon does not show; leave 'n' out, or use NVIDIA's own \
             nvidia-smi for it\n",
        )
    }

    /// What was asked for is nothing that NVML tells. `form` is the switch, with its subcommand.
    pub(crate) fn not_in_nvml(form: &str) -> Self {
        Self::not_done(format!(
            "gpumon: NVML does not tell what '{form}' shows; use NVIDIA's own nvidia-smi for it\n"
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
