//! Frameworks that ran a workload for comparison.

use anstyle::Style;
use gpumon_probe::untrusted::escaped;
use gpumon_workload::protocol::FrameworkRun;

use crate::terminal::{
    columns::format_number,
    style::{DIM, NOTICE},
};

/// Formats the name and version, such as `CuPy 14.0`.
pub(crate) fn framework(run: &FrameworkRun) -> String {
    let version = run.version.split('+').next().unwrap_or_default();
    escaped(format!("{} {version}", run.name).trim_end())
}

/// Returns how gpumon compares with the framework, and the style of the text.
pub(crate) fn comparison(run: &FrameworkRun) -> Option<(Style, String)> {
    let ratio = run.ratio?;
    Some((
        if ratio < 1.0 { NOTICE } else { DIM },
        format!("gpumon is {}", factor(ratio)),
    ))
}

/// Formats a ratio of the other's time to gpumon's, such as `1.10x faster`.
pub(crate) fn factor(ratio: f64) -> String {
    let (ratio, word) = if ratio < 1.0 {
        (1.0 / ratio, "slower")
    } else {
        (ratio, "faster")
    };
    format!("{}x {word}", format_number(ratio, 2))
}
