//! Descriptions of frameworks that ran a workload for comparison.

use anstyle::Style;
use gpumon_probe::untrusted::escape_untrusted;
use gpumon_workload::protocol::FrameworkRun;

use crate::terminal::{
    columns::format_number,
    line::{DIM, NOTICE},
};

/// Formats a framework's name and version, such as `CuPy 14.0`.
pub(crate) fn format_framework_label(run: &FrameworkRun) -> String {
    let version = run.version.split('+').next().unwrap_or_default();
    escape_untrusted(format!("{} {version}", run.name).trim_end())
}

/// Describes how gpumon compares with the framework. Returns the style and the text, or `None` if
/// there is no ratio.
pub(crate) fn compare_with_framework(run: &FrameworkRun) -> Option<(Style, String)> {
    let ratio = run.ratio?;
    Some((
        if ratio < 1.0 { NOTICE } else { DIM },
        format!("gpumon is {}", format_factor(ratio)),
    ))
}

/// Formats the ratio of another program's time to gpumon's time, such as `1.10x faster`.
pub(crate) fn format_factor(ratio: f64) -> String {
    let (ratio, word) = if ratio < 1.0 {
        (1.0 / ratio, "slower")
    } else {
        (ratio, "faster")
    };
    format!("{}x {word}", format_number(ratio, 2))
}
