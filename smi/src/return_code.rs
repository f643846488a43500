//! nvidia-smi's words for NVML return codes, which are printed instead of values.

use gpumon_probe::vendor::nvml::query::Code;

/// Returns the word used in the output of `-q`, including XML, such as `N/A`, `Insufficient
/// Permissions` or `Unknown Error`.
pub(crate) fn format_plain(code: Code) -> &'static str {
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

/// Returns the word used in the cells of a query, which is enclosed in brackets.
pub(crate) fn format_bracketed(code: Code) -> String {
    format!("[{}]", format_plain(code))
}
