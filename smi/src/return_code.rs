//! nvidia-smi's words for NVML's return codes, which are printed instead of a value.

use gpumon_probe::vendor::nvml::query::Code;

/// Returns the word that `-q` and its XML print, such as `N/A`, `Insufficient Permissions` or
/// `Unknown Error`.
pub(crate) fn plain(code: Code) -> &'static str {
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

/// Returns the word that the cells of a query print, which has brackets around it.
pub(crate) fn bracketed(code: Code) -> String {
    format!("[{}]", plain(code))
}
