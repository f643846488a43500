//! What stands where a value should: nvidia-smi's words for NVML's return codes.

use gpumon_probe::vendor::nvml::query::Code;

/// As `-q` and its XML write it: `N/A`, `Insufficient Permissions`, `Unknown Error`.
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

/// As a query's cells write it: the same in brackets.
pub(crate) fn bracketed(code: Code) -> String {
    format!("[{}]", plain(code))
}
