//! Parsing of the `--source` option, and opening of the selected source.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use thiserror::Error;

use crate::bounded;

use super::{
    MachineSource, Roots, Source, SourceError,
    amd::AmdSource,
    intel::IntelSource,
    nvml::NvmlSource,
    sim::{self, Scenario},
};

/// The source that `--source` selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceChoice {
    /// The drivers of all vendors that are present on this machine.
    Auto,
    Nvml,
    Amd,
    /// Both kernel drivers for Intel GPUs, `i915` and `xe`.
    Intel,
    /// The given number of simulated GPUs.
    Sim(u32),
    /// The simulated GPUs that a scenario file describes.
    SimScenario(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "unknown source '{0}': use auto, nvml, amd, intel, sim, sim:N with N from 1 to {max}, or \
     sim:FILE.toml",
    max = SourceChoice::SIM_MAX
)]
pub struct BadSource(String);

impl SourceChoice {
    /// The help text of `--source`.
    pub const HELP: &str = "Data source: auto, nvml, amd, intel, sim, sim:N for N simulated GPUs \
                            (1 to 64), or sim:FILE.toml for a scenario";

    /// The values of `--source` that shell completion suggests.
    pub const COMPLETIONS: [&str; 6] = ["auto", "nvml", "amd", "intel", "sim", "sim:8"];

    /// The maximum number of simulated GPUs.
    pub const SIM_MAX: u32 = Scenario::MAX_GPUS;
    const DEFAULT_SIM_GPUS: u32 = 2;
    const SIM_SEED: u64 = 1;

    /// Checks the choice as far as possible without a driver.
    ///
    /// # Errors
    /// Returns [`SourceError::BadScenario`] if the scenario file cannot be read.
    pub fn check_scenario_file(&self) -> Result<(), SourceError> {
        match self {
            Self::SimScenario(path) => read_scenario(path).map(drop),
            Self::Auto | Self::Nvml | Self::Amd | Self::Intel | Self::Sim(_) => Ok(()),
        }
    }

    /// Returns `true` if this choice includes GPUs that are read from kernel driver files.
    pub fn reads_kernel_drivers(&self) -> bool {
        matches!(self, Self::Auto | Self::Amd | Self::Intel)
    }

    /// Opens the selected source.
    ///
    /// # Errors
    /// Returns a [`SourceError`] that states what is missing and how to fix it.
    pub fn open(&self, roots: &Roots) -> Result<Arc<dyn Source>, SourceError> {
        let nvidia = || Ok(Arc::new(NvmlSource::open(roots)?) as Arc<dyn Source>);
        let amd = || Ok(Arc::new(AmdSource::open(roots)?) as Arc<dyn Source>);
        let intel = || Ok(Arc::new(IntelSource::open(roots)?) as Arc<dyn Source>);
        match self {
            Self::Auto => MachineSource::open_all(vec![nvidia(), amd(), intel()]),
            Self::Nvml => nvidia(),
            Self::Amd => amd(),
            Self::Intel => intel(),
            Self::Sim(count) => Ok(Arc::new(sim::start_simulation(Scenario::with_gpus(
                *count,
                Self::SIM_SEED,
            )))),
            Self::SimScenario(path) => Ok(Arc::new(sim::start_simulation(read_scenario(path)?))),
        }
    }
}

/// The maximum size of a scenario file, in bytes. Even a scenario with hundreds of GPUs and all
/// kinds of faults is smaller.
const MAX_SCENARIO_BYTES: usize = 4 << 20;

fn read_scenario(path: &Path) -> Result<Scenario, SourceError> {
    let name = path.display().to_string();
    let text = bounded::read_regular_text(path, MAX_SCENARIO_BYTES).map_err(|error| {
        SourceError::BadScenario(format!(
            "cannot read scenario {name}: {error}; check the path"
        ))
    })?;
    Scenario::from_toml(&text, &name).map_err(|error| SourceError::BadScenario(error.to_string()))
}

impl FromStr for SourceChoice {
    type Err = BadSource;

    fn from_str(text: &str) -> Result<Self, BadSource> {
        let bad = || BadSource(text.to_owned());
        match text.split_once(':') {
            None => match text {
                "auto" => Ok(Self::Auto),
                "nvml" => Ok(Self::Nvml),
                "amd" => Ok(Self::Amd),
                "intel" => Ok(Self::Intel),
                "sim" => Ok(Self::Sim(Self::DEFAULT_SIM_GPUS)),
                _ => Err(bad()),
            },
            Some(("sim", file))
                if Path::new(file)
                    .extension()
                    .is_some_and(|ending| ending == "toml") =>
            {
                Ok(Self::SimScenario(file.into()))
            }
            Some(("sim", count)) => match count.parse() {
                Ok(count @ 1..=Self::SIM_MAX) => Ok(Self::Sim(count)),
                _ => Err(bad()),
            },
            Some(_) => Err(bad()),
        }
    }
}

impl std::fmt::Display for SourceChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Nvml => f.write_str("nvml"),
            Self::Amd => f.write_str("amd"),
            Self::Intel => f.write_str("intel"),
            Self::Sim(count) => write!(f, "sim:{count}"),
            Self::SimScenario(path) => write!(f, "sim:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_name_is_parsed() {
        for (text, choice) in [
            ("auto", SourceChoice::Auto),
            ("nvml", SourceChoice::Nvml),
            ("amd", SourceChoice::Amd),
            ("intel", SourceChoice::Intel),
            ("sim", SourceChoice::Sim(2)),
            ("sim:8", SourceChoice::Sim(8)),
            ("sim:a/b.toml", SourceChoice::SimScenario("a/b.toml".into())),
        ] {
            assert_eq!(text.parse(), Ok(choice), "{text}");
        }
    }

    #[test]
    fn invalid_source_is_rejected_with_valid_names() {
        for text in ["", "cuda", "sim:0", "sim:65", "sim:-1", "sim:", "nvml:2"] {
            let error = text.parse::<SourceChoice>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("sim:N"), "{error}");
        }
    }
}
