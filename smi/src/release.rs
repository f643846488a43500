//! The driver's release, which decides the format of the output.

use std::num::ParseIntError;
use std::ops::Range;
use std::str::FromStr;

use gpumon_probe::vendor::nvml::query::{QueryBackend, SystemQuery};

use crate::Context;

/// The first two numbers of a driver's version, such as 580.159 for `580.159.04`.
///
/// nvidia-smi's output changes between releases, and the code names the first or the last release
/// with a format. Drivers newer than [`NEWEST_KNOWN`] therefore get the format of that release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release(pub(crate) u32, pub(crate) u32);

/// The range of releases that lack some features that older and newer releases have.
pub(crate) const BRANCH_590: Range<Release> = Release(590, 0)..Release(595, 0);
pub(crate) const BRANCH_595: Range<Release> = Release(595, 0)..Release(610, 0);

/// The first release that writes “KMD version” and “CUDA UMD version” for the driver's and CUDA's
/// versions.
pub(crate) const VERSIONS_RENAMED: Release = Release(610, 0);

/// The oldest driver branch that gpumon was tested with. Older branches are printed in its format.
pub const OLDEST_KNOWN: u32 = 580;

/// The newest driver branch whose nvidia-smi was compared with gpumon's output.
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

    /// Returns the release of the running driver, or the newest known release if the driver does
    /// not report its version.
    pub(crate) fn running(driver: &dyn QueryBackend) -> Self {
        let version = driver.system(SystemQuery::DriverVersion).ok();
        let release = version
            .as_ref()
            .and_then(|version| version.text()?.parse().ok());
        release.unwrap_or(Self::NEWEST_KNOWN)
    }
}

impl Context<'_> {
    pub(crate) fn release(&self) -> Release {
        Release::running(self.driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let release = |version: &str| version.parse::<Release>().unwrap();
        assert_eq!(release("580.159.04"), Release(580, 159));
        assert!(release("580.65.06") < Release(580, 82) && release("595.80") > Release(580, 159));
        assert_eq!(release("610"), Release(610, 0));
        assert!("of its own".parse::<Release>().is_err());
    }
}
