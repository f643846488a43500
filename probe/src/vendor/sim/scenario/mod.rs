//! Scenarios: TOML files that describe simulated GPUs, their workloads, and their faults.

mod answers;
mod check;
mod fault;
mod settings;
mod values;

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;
use toml::Spanned;

use super::hardware::MAX_NVLINKS;
use crate::toml_error::TomlError;
use answers::{Function, GivenAnswers, LatencyKey};
use fault::{EventSettings, FaultSettings, InitError, ReturnCode};
use values::Delay;

pub use answers::GivenAnswer;
pub use fault::ScheduledEvent;
pub use settings::{EncoderSession, Profile};

pub(crate) use settings::{
    AccountedSettings, GpuSettings, MigProfile, MigSettings, ProcessSettings,
};
pub(crate) use values::value_or_zero;

/// A description of simulated GPUs, their workloads, and their faults.
///
/// Times with the suffix `_s` are in seconds since the start of the timeline. The timeline starts
/// when the process loads the scenario, or at [`start_ms`](Self::start_ms).
/// `tests/fake-nvml/scenarios/example.toml` describes all keys.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The number of GPUs, from 0 to 64. The default is the number that the `[[gpu]]` tables
    /// require, but at least one.
    gpus: Option<Spanned<u32>>,
    #[serde(default)]
    pub(crate) seed: u64,
    /// The start of the timeline, in milliseconds since 1970. If this key is set, a restarted
    /// process continues the same timeline.
    pub start_ms: Option<u64>,
    #[serde(default)]
    gpu: Vec<GpuSettings>,
    #[serde(default)]
    process: Vec<ProcessSettings>,
    #[serde(default)]
    accounted: Vec<AccountedSettings>,
    #[serde(default)]
    fault: Vec<FaultSettings>,
    #[serde(default)]
    event: Vec<EventSettings>,
    #[serde(default)]
    latency: BTreeMap<LatencyKey, Delay>,
    #[serde(default)]
    hidden: Vec<Function>,
    init_error: Option<InitError>,
    #[serde(default)]
    returns: BTreeMap<Function, ReturnCode>,
    #[serde(default)]
    answers: GivenAnswers,
    /// The number of `NVLinks` of each GPU whose settings do not specify this number.
    #[serde(skip)]
    pub(crate) usual_nvlinks: u32,
}

impl Scenario {
    /// The maximum number of GPUs.
    pub const MAX_GPUS: u32 = 64;

    /// The start of the timeline for scenarios without a file: 1 January 2025. This is long ago, so
    /// all simulated programs have been running for a long time.
    const SIMPLE_START_MS: u64 = 1_735_689_600_000;

    /// Parses a scenario. `origin` is the file name that error messages show.
    ///
    /// # Errors
    /// Returns a [`TomlError`] with the line, the column, the problem, and the suggested fix.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, TomlError> {
        let scenario: Self = toml::from_str(text)
            .map_err(|error| TomlError::from_parser_error(&error, text, origin))?;
        scenario
            .check()
            .map_err(|(span, message)| TomlError::new_at_span(&span, text, origin, message))?;
        Ok(scenario)
    }

    /// Creates a scenario with up to 64 GPUs that have different workloads. All scenarios created
    /// in this way have the same start time, so all processes that use them share one timeline. If
    /// there are several GPUs, `NVSwitches` link them.
    pub fn with_gpus(gpu_count: u32, seed: u64) -> Self {
        let gpus = Some(Spanned::new(0..0, gpu_count.min(Self::MAX_GPUS)));
        let usual_nvlinks = if gpu_count > 1 { MAX_NVLINKS } else { 0 };
        Self {
            gpus,
            seed,
            start_ms: Some(Self::SIMPLE_START_MS),
            usual_nvlinks,
            ..Self::default()
        }
    }

    /// Returns the number of GPUs, including GPUs that are added later or removed.
    pub fn gpu_count(&self) -> u32 {
        let needed = self
            .gpu
            .iter()
            .map(|gpu| gpu.index.0.get_ref().saturating_add(1))
            .max();
        self.gpus
            .as_ref()
            .map_or(needed.unwrap_or(1), |gpus| *gpus.get_ref())
    }

    /// Returns the functions that the scenario hides, so that the fake library resembles the
    /// library of an older driver.
    pub fn hidden_functions(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.hidden.iter().map(|function| function.0)
    }

    /// Returns how long a call to the NVML function takes.
    pub fn find_latency(&self, function: &str) -> Duration {
        let named = self
            .latency
            .iter()
            .find(|(of, _)| of.matches(function))
            .map(|(_, delay)| delay);
        named
            .or_else(|| self.latency.get(&LatencyKey::DEFAULT))
            .map_or(Duration::ZERO, |delay| delay.0)
    }

    /// Returns the `nvmlReturn_t` with which initialization fails at the given time, or `None` if
    /// it succeeds.
    pub fn init_error_code(&self, seconds: f64) -> Option<u32> {
        self.init_error
            .as_ref()
            .filter(|error| error.is_active(seconds))
            .map(InitError::code)
    }

    fn find_settings(&self, gpu: u32) -> Option<&GpuSettings> {
        self.gpu
            .iter()
            .find(|settings| *settings.index.0.get_ref() == gpu)
    }

    /// Returns the settings of a GPU, or the default settings if it has no `[[gpu]]` table.
    pub(crate) fn settings_or_default(&self, gpu: u32) -> GpuSettings {
        self.find_settings(gpu).cloned().unwrap_or_default()
    }

    pub(crate) fn list_processes(&self, gpu: u32) -> impl Iterator<Item = &ProcessSettings> {
        self.process
            .iter()
            .filter(move |process| *process.gpu.get_ref() == gpu)
    }

    pub(crate) fn list_accounted(&self, gpu: u32) -> impl Iterator<Item = &AccountedSettings> {
        self.accounted
            .iter()
            .filter(move |process| *process.gpu.get_ref() == gpu)
    }
}

#[cfg(test)]
mod tests;
