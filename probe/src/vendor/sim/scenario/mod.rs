//! The scenario: what the simulated GPUs are, do and suffer, as a TOML file says it.

mod check;
mod curve;
mod event;
mod fault;
mod faults;
mod function;
mod given;
mod mig;
mod quantity;
mod settings;
mod steps;

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;
use toml::Spanned;

pub use event::Report;
pub use given::Given;
pub use settings::Profile;

pub(crate) use curve::Curve;
pub(crate) use mig::{MigProfile, MigSettings};
pub(crate) use quantity::Percent;
pub(crate) use settings::{AccountedSettings, GpuSettings, ProcessSettings};

use super::nvlink::MAX_NVLINKS;
use crate::toml_error::TomlError;
use event::EventSettings;
use fault::{FaultSettings, InitError, ReturnCode};
use function::{Function, LatencyOf};
use quantity::Delay;

/// What the simulated GPUs are, do and suffer.
///
/// Times named `_s` are seconds since the start of the timeline: the moment when the process loaded
/// the scenario, or [`start_ms`](Self::start_ms). Every key of the file is described in
/// `tests/fake-nvml/scenarios/example.toml`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// How many GPUs, 0 to 64. Without it: as many as the `[[gpu]]` tables need, and at least one.
    gpus: Option<Spanned<u32>>,
    #[serde(default)]
    pub(crate) seed: u64,
    /// When the timeline starts, in milliseconds since the Unix epoch, so that a restarted process
    /// goes on in it.
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
    latency: BTreeMap<LatencyOf, Delay>,
    #[serde(default)]
    hidden: Vec<Function>,
    init_error: Option<InitError>,
    #[serde(default)]
    returns: BTreeMap<Function, ReturnCode>,
    #[serde(default)]
    answers: given::Answers,
    /// `NVLinks` of a GPU that says nothing of its own.
    #[serde(skip)]
    pub(crate) usual_nvlinks: u32,
}

impl Scenario {
    /// How many GPUs a scenario may have.
    pub const MAX_GPUS: u32 = 64;

    /// The timeline of [`Scenario::simple`] starts on 1 January 2025, long enough ago that
    /// everything is under way.
    const SIMPLE_START_MS: u64 = 1_735_689_600_000;

    /// Reads a scenario. `origin` is what errors call the text: its file name.
    ///
    /// # Errors
    /// [`TomlError`] names the line and column, what is wrong there and what would be right.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, TomlError> {
        let scenario: Self =
            toml::from_str(text).map_err(|error| TomlError::parse(&error, text, origin))?;
        scenario
            .check()
            .map_err(|(span, message)| TomlError::at(&span, text, origin, message))?;
        Ok(scenario)
    }

    /// So many GPUs (at most 64), each busy in its own way, in a timeline that every process
    /// shares. Several of them are linked through `NVSwitches`.
    pub fn simple(gpu_count: u32, seed: u64) -> Self {
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

    /// Returns the number of GPUs, including those that are added later or removed.
    pub fn gpu_count(&self) -> u32 {
        let needed = self
            .gpu
            .iter()
            .map(|gpu| gpu.index.get_ref().saturating_add(1))
            .max();
        self.gpus
            .as_ref()
            .map_or(needed.unwrap_or(1), |gpus| *gpus.get_ref())
    }

    /// The functions that a library of an older driver would lack.
    pub fn hidden_functions(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.hidden.iter().map(|function| function.0)
    }

    /// How long a call of this NVML function takes.
    pub fn latency(&self, function: &str) -> Duration {
        let named = self
            .latency
            .iter()
            .find(|(of, _)| of.is(function))
            .map(|(_, delay)| delay);
        named
            .or_else(|| self.latency.get(&LatencyOf::DEFAULT))
            .map_or(Duration::ZERO, |delay| delay.0)
    }

    /// The `nvmlReturn_t` of an initialization at this time, where it fails.
    pub fn init_error(&self, seconds: f64) -> Option<u32> {
        self.init_error
            .as_ref()
            .filter(|error| error.lasts(seconds))
            .map(InitError::code)
    }

    pub(crate) fn settings(&self, gpu: u32) -> Option<&GpuSettings> {
        self.gpu
            .iter()
            .find(|settings| *settings.index.get_ref() == gpu)
    }

    pub(crate) fn processes(&self, gpu: u32) -> impl Iterator<Item = &ProcessSettings> {
        self.process
            .iter()
            .filter(move |process| *process.gpu.get_ref() == gpu)
    }

    pub(crate) fn accounted(&self, gpu: u32) -> impl Iterator<Item = &AccountedSettings> {
        self.accounted
            .iter()
            .filter(move |process| *process.gpu.get_ref() == gpu)
    }
}

#[cfg(test)]
mod tests;
