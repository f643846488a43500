//! nvidia-smi's messages for errors: refusals (which end the command), warnings about lost GPUs,
//! and the words that replace values.

use std::{fmt, fs};

use gpumon_probe::vendor::{
    SourceError,
    nvml::query::{Answer, Code},
};

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
    pub(crate) fn new_nvidia_only(form: &str) -> Self {
        Self::new_unsupported(format!(
            "gpumon: '{form}' is not part of gpumon; use NVIDIA's own nvidia-smi for it\n"
        ))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<SourceError> for Refusal {
    /// Creates the refusal for a driver that cannot be opened.
    fn from(error: SourceError) -> Self {
        let failed = |what: &str| format!("Failed to initialize NVML: {what}\n");
        match error {
            SourceError::NoLibrary(_) => Self::new(
                12,
                "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make \
                 sure that the NVIDIA Display Driver is properly installed and present in your \
                 system.\nPlease also try adding directory that contains libnvidia-ml.so to your \
                 system PATH.\n",
            ),
            SourceError::NoDriver(_) => Self::new(
                9,
                "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. \
                 Make sure that the latest NVIDIA driver is installed and running.\n\n",
            ),
            SourceError::NoDevice(_) => Self::new_no_devices(),
            SourceError::VersionMismatch(_) => {
                Self::new(18, failed("Driver/library version mismatch"))
            }
            SourceError::NoPermission(_) => Self::new(4, failed("Insufficient Permissions")),
            SourceError::Driver(_) => Self::new(255, failed("Unknown Error")),
            SourceError::NoThread { .. } | SourceError::BadScenario(_) => {
                Self::new(255, format!("{error}\n"))
            }
        }
    }
}

/// Returns the warning about a GPU that cannot be opened while the other GPUs are shown.
pub(crate) fn format_lost_gpu_warning(gpu: u32, count: u32, code: Code) -> String {
    format_lost_gpu(gpu, find_lost_gpu_bus_id(gpu, count), code)
}

/// Returns the message about a GPU that cannot be opened, including its line break.
pub(crate) fn format_lost_gpu(gpu: u32, bus_id: Option<String>, code: Code) -> String {
    let bus_id = bus_id.map(|id| format!(" {id}:")).unwrap_or_default();
    let what = if code == Code::GPU_IS_LOST {
        "GPU is lost.  Reboot the system to recover this GPU".to_owned()
    } else {
        describe_code(code).to_owned()
    };
    format!("Unable to determine the device handle for GPU{gpu}:{bus_id} {what}\n")
}

/// Returns the bus ID of a GPU that cannot be opened. The kernel module lists such GPUs as well,
/// and NVML numbers all GPUs in the order of their bus IDs.
fn find_lost_gpu_bus_id(gpu: u32, count: u32) -> Option<String> {
    let listed = fs::read_dir("/proc/driver/nvidia/gpus").ok()?;
    let mut ids: Vec<String> = listed
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    ids.sort();
    (ids.len() == count as usize).then(|| ids.swap_remove(gpu as usize).to_uppercase())
}

// nvidia-smi's words for NVML return codes, which are printed instead of values.

/// Returns the word used in the output of `-q`, including XML, such as `N/A`, `Insufficient
/// Permissions` or `Unknown Error`.
pub(crate) fn describe_code(code: Code) -> &'static str {
    match code {
        Code::NOT_SUPPORTED => "N/A",
        Code::NO_PERMISSION => "Insufficient Permissions",
        Code::NOT_FOUND => "Not Found",
        Code::FUNCTION_NOT_FOUND => "Function Not Found",
        Code::GPU_IS_LOST => "GPU is lost",
        Code::RESET_REQUIRED => "GPU requires reset",
        Code::DEPRECATED => "Requested functionality has been deprecated",
        _ => "Unknown Error",
    }
}

/// Returns the text in an answer, or the word that replaces it.
pub(crate) fn format_text_answer(answer: &Answer) -> String {
    match answer {
        Ok(value) => value.text().unwrap_or("N/A").to_owned(),
        Err(code) => describe_code(*code).to_owned(),
    }
}

/// Returns the word used in the cells of a query, which is enclosed in brackets.
pub(crate) fn describe_code_in_brackets(code: Code) -> String {
    format!("[{}]", describe_code(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_gpu_is_named_by_number() {
        let text = format_lost_gpu_warning(3, u32::MAX, Code::GPU_IS_LOST);
        let expected = "Unable to determine the device handle for GPU3: GPU is lost.  Reboot the \
                        system to recover this GPU\n";
        assert_eq!(text, expected);
    }
}
