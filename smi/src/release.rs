//! The driver's release, which determines the format of the output, and the output of `--version`.

use std::{num::ParseIntError, ops::Range, str::FromStr};

use gpumon_probe::vendor::nvml::query::{QueryBackend, SystemQuery};

use crate::{Context, error_messages::format_text_answer};

/// The first two components of a driver version, such as 580.159 for `580.159.04`.
///
/// nvidia-smi's output changes between releases. The code states the first or the last release that
/// uses a format. Drivers newer than [`NEWEST_KNOWN`] therefore get the newest known format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release(pub(crate) u32, pub(crate) u32);

/// The releases of the 590 branch, which lack some features that both older and newer releases
/// have.
pub(crate) const BRANCH_590: Range<Release> = Release(590, 0)..Release(595, 0);
pub(crate) const BRANCH_595: Range<Release> = Release(595, 0)..Release(610, 0);

/// The first release that labels the driver's version “KMD version” and CUDA's version “CUDA UMD
/// version”.
pub(crate) const VERSIONS_RENAMED: Release = Release(610, 0);

/// The oldest driver branch that gpumon has been tested with. Its format is also used for older
/// branches.
pub const OLDEST_KNOWN: u32 = 580;

/// The newest driver branch whose nvidia-smi output has been compared with gpumon's.
pub const NEWEST_KNOWN: u32 = 610;

impl FromStr for Release {
    type Err = ParseIntError;

    fn from_str(version: &str) -> Result<Self, Self::Err> {
        let (major, rest) = version.split_once('.').unwrap_or((version, "0"));
        let minor = rest.split_once('.').map_or(rest, |(minor, _)| minor);
        Ok(Self(major.parse()?, minor.parse()?))
    }
}

impl Release {
    pub(crate) const NEWEST_KNOWN: Self = Self(NEWEST_KNOWN, 0);

    /// Returns the installed driver's release, or the newest known release if the driver does not
    /// report its version.
    pub(crate) fn from_driver(driver: &dyn QueryBackend) -> Self {
        let version = driver.answer_system(SystemQuery::DriverVersion).ok();
        let release = version
            .as_ref()
            .and_then(|version| version.text()?.parse().ok());
        release.unwrap_or(Self::NEWEST_KNOWN)
    }
}

impl Context<'_> {
    pub(crate) fn release(&self) -> Release {
        Release::from_driver(self.driver)
    }
}

/// Returns the version of nvidia-smi that belongs to the library. NVML's version is the same,
/// preceded by CUDA's major version. Under WSL, the version of the Windows driver is different.
pub(crate) fn tool_version(context: &Context<'_>) -> Option<String> {
    let library = context.run_system_query(SystemQuery::NvmlVersion).ok()?;
    let (_, version) = library.text()?.split_once('.')?;
    Some(version.to_owned())
}

/// Returns the output for `--version`.
pub(crate) fn render_version(context: &Context<'_>) -> String {
    let driver = format_text_answer(&context.run_system_query(SystemQuery::DriverVersion));
    let tool = tool_version(context).unwrap_or_else(|| driver.clone());
    // This line shows only the first two components of the version.
    let mut parts = tool.split('.');
    let nvml = match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) => format!("{major}.{minor}"),
        _ => format_text_answer(&context.run_system_query(SystemQuery::NvmlVersion)),
    };
    let cuda = context.cuda_version().unwrap_or_else(|_| "N/A".to_owned());
    let head = format!("NVIDIA-SMI version  : {tool}\nNVML version        : {nvml}\n");
    let versions = if context.release() < VERSIONS_RENAMED {
        format!("DRIVER version      : {driver}\nCUDA Version        : {cuda}\n")
    } else {
        format!(
            "DRIVER version      : Deprecated, see \"KMD version\" instead\n\
             CUDA version        : Deprecated, see \"CUDA UMD version\" instead\n\
             KMD version         : {driver}\nCUDA UMD version    : {cuda}\n"
        )
    };
    head + &versions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_numerically() {
        let release = |version: &str| version.parse::<Release>().unwrap();
        assert_eq!(release("580.159.04"), Release(580, 159));
        assert!(release("580.65.06") < Release(580, 82) && release("595.80") > Release(580, 159));
        assert_eq!(release("610"), Release(610, 0));
        assert!("of its own".parse::<Release>().is_err());
    }
}
