//! Faults and events: the `[[fault]]` and `[[event]]` tables, the `[returns]` table, and the
//! `init_error` key.

use std::{fmt, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};
use toml::Spanned;

use super::{
    Scenario,
    answers::Function,
    settings::is_within,
    values::{Seconds, Skew},
};
use crate::vendor::Notice;

/// The settings in a `[[fault]]` table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultSettings {
    /// The affected GPU. By default, all GPUs are affected.
    pub(super) gpu: Option<Spanned<u32>>,
    pub(super) kind: Spanned<FaultKind>,
    /// The start of the fault, in seconds. By default, the fault starts with the timeline.
    pub(super) from_s: Option<Spanned<Seconds>>,
    /// The end of the fault, in seconds. By default, the fault never ends.
    pub(super) to_s: Option<Spanned<Seconds>>,
    /// The affected NVML function. By default, all functions about the GPU are affected.
    pub(super) call: Option<Spanned<Function>>,
    pub(super) code: Option<Spanned<ReturnCode>>,
    /// How far the driver's clock is ahead, in seconds.
    pub(super) by_s: Option<Spanned<Skew>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultKind {
    /// The GPU falls off the bus. Every call returns `NVML_ERROR_GPU_IS_LOST`.
    Lost,
    Hang,
    /// The driver was replaced after the library was loaded. Every call returns
    /// `NVML_ERROR_LIB_RM_VERSION_MISMATCH`.
    Mismatch,
    Crash,
    /// A function returns an error code. If no function is given, all functions about the GPU
    /// return the code.
    Returns,
    Garbage,
    Backwards,
    /// The driver's timestamps differ from the machine's clock.
    ClockSkew,
}

impl FaultSettings {
    /// Returns `true` if this is a fault of the given kind that affects a GPU at the given time.
    /// `None` represents a call that concerns no GPU.
    fn affects_gpu(&self, kind: FaultKind, gpu: Option<u32>, seconds: f64) -> bool {
        *self.kind.get_ref() == kind && self.concerns_gpu(gpu) && self.is_active(seconds)
    }

    /// Returns `true` if the fault concerns a call to `function`. `None` represents the reading of
    /// all values of a GPU, which is also affected by a fault of a single function, if the fault
    /// names the GPU.
    fn concerns_function(&self, function: Option<&str>) -> bool {
        match (&self.call, function) {
            (Some(own), Some(function)) => own.get_ref().0 == function,
            (Some(_), None) => self.gpu.is_some(),
            (None, _) => true,
        }
    }

    fn return_code(&self) -> Option<u32> {
        self.code.as_ref().map(|code| code.get_ref().0)
    }

    fn begin_s(&self) -> f64 {
        self.from_s.as_ref().map_or(0.0, |from| from.get_ref().0)
    }

    fn start_and_end_times(&self) -> impl Iterator<Item = f64> {
        self.from_s
            .iter()
            .chain(&self.to_s)
            .map(|moment| moment.get_ref().0)
    }

    fn concerns_gpu(&self, gpu: Option<u32>) -> bool {
        self.gpu
            .as_ref()
            .is_none_or(|own| Some(*own.get_ref()) == gpu)
    }

    fn is_active(&self, seconds: f64) -> bool {
        is_within(self.from_s.as_ref(), self.to_s.as_ref(), seconds)
    }
}

/// The `init_error` key, which makes the library's initialization fail.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InitError {
    code: ReturnCode,
    /// The time from which initialization succeeds, in seconds. By default, initialization never
    /// succeeds.
    to_s: Option<Spanned<Seconds>>,
}

impl InitError {
    pub(super) fn code(&self) -> u32 {
        self.code.0
    }

    pub(super) fn is_active(&self, seconds: f64) -> bool {
        is_within(None, self.to_s.as_ref(), seconds)
    }
}

/// An `nvmlReturn_t` that is an error: 1 to 30, or 999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReturnCode(pub(super) u32);

impl<'de> Deserialize<'de> for ReturnCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Code;
        impl Visitor<'_> for Code {
            type Value = ReturnCode;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "an nvmlReturn_t that is an error (1 to 30, or 999), such as 3 for \
                     NVML_ERROR_NOT_SUPPORTED",
                )
            }

            fn visit_i64<E: de::Error>(self, code: i64) -> Result<ReturnCode, E> {
                match code {
                    1..=30 | 999 => Ok(ReturnCode(code as u32)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(code), &self)),
                }
            }
        }
        deserializer.deserialize_any(Code)
    }
}

impl Scenario {
    /// Returns the faults of the given kind that affect a GPU at the given time.
    fn gpu_faults(
        &self,
        kind: FaultKind,
        gpu: u32,
        seconds: f64,
    ) -> impl Iterator<Item = &FaultSettings> {
        let faults = self.fault.iter();
        faults.filter(move |fault| fault.affects_gpu(kind, Some(gpu), seconds))
    }

    /// Returns the first fault of the given kind that affects a call at the given time. `gpu` and
    /// `function` are the GPU and the NVML function that the call concerns, if any.
    fn find_call_fault(
        &self,
        kind: FaultKind,
        gpu: Option<u32>,
        function: Option<&str>,
        seconds: f64,
    ) -> Option<&FaultSettings> {
        let mut faults = self.fault.iter();
        faults.find(|fault| {
            fault.affects_gpu(kind, gpu, seconds) && fault.concerns_function(function)
        })
    }

    /// Returns `true` if the GPU has fallen off the bus or has been removed.
    pub fn is_lost(&self, gpu: u32, seconds: f64) -> bool {
        let was_taken_out = self
            .find_settings(gpu)
            .is_some_and(|own| own.is_removed(seconds));
        let mut faults = self.gpu_faults(FaultKind::Lost, gpu, seconds);
        was_taken_out || faults.next().is_some()
    }

    /// Returns `true` if a driver that starts at the given time finds the GPU.
    pub fn is_present(&self, gpu: u32, seconds: f64) -> bool {
        self.find_settings(gpu)
            .is_none_or(|own| own.is_present(seconds))
    }

    /// Returns the `nvmlReturn_t` with which all calls about the GPU fail at the given time, if
    /// any.
    pub fn find_gpu_failure_code(&self, gpu: u32, seconds: f64) -> Option<u32> {
        self.gpu_faults(FaultKind::Returns, gpu, seconds)
            .find(|fault| fault.call.is_none())?
            .return_code()
    }

    /// Returns `true` if the versions of the driver and the library differ at the given time, so
    /// that every call fails.
    pub fn has_version_mismatch(&self, seconds: f64) -> bool {
        self.find_call_fault(FaultKind::Mismatch, None, None, seconds)
            .is_some()
    }

    /// Returns how much longer a call hangs at the given time, or `None` if it does not hang. `gpu`
    /// and `function` are the GPU and the NVML function that the call concerns, if any. The
    /// simulated source reads all values together, so it passes no function.
    pub fn remaining_hang(
        &self,
        gpu: Option<u32>,
        function: Option<&str>,
        seconds: f64,
    ) -> Option<Duration> {
        let fault = self.find_call_fault(FaultKind::Hang, gpu, function, seconds)?;
        let end = fault.to_s.as_ref().map(|to| to.get_ref().0 - seconds);
        Some(end.map_or(Duration::MAX, |left| {
            Duration::try_from_secs_f64(left).unwrap_or_default()
        }))
    }

    /// Returns `true` if the call crashes the process.
    pub fn is_crashing(&self, gpu: Option<u32>, function: &str, seconds: f64) -> bool {
        self.find_call_fault(FaultKind::Crash, gpu, Some(function), seconds)
            .is_some()
    }

    /// Returns the `nvmlReturn_t` that the scenario sets for the call, if any. This code takes
    /// precedence over all other faults.
    pub fn find_forced_return(
        &self,
        gpu: Option<u32>,
        function: &str,
        seconds: f64,
    ) -> Option<u32> {
        let fault = self.find_call_fault(FaultKind::Returns, gpu, Some(function), seconds);
        let now = fault.and_then(FaultSettings::return_code);
        now.or_else(|| {
            self.returns
                .iter()
                .find(|(name, _)| name.0 == function)
                .map(|(_, code)| code.0)
        })
    }

    pub(crate) fn returns_garbage(&self, gpu: u32, seconds: f64) -> bool {
        let mut faults = self.gpu_faults(FaultKind::Garbage, gpu, seconds);
        faults.next().is_some()
    }

    /// Returns the factor for the GPU's counters. Normally, the factor is 1. While a fault makes
    /// the counters run backwards, the factor starts at 0.9 and is halved every second.
    pub(crate) fn counter_factor(&self, gpu: u32, seconds: f64) -> f64 {
        let fault = self.gpu_faults(FaultKind::Backwards, gpu, seconds).next();
        fault.map_or(1.0, |fault| 0.9 * (fault.begin_s() - seconds).exp2())
    }

    /// Returns how far the clock of the GPU's driver is ahead of the machine's clock, in seconds.
    pub(crate) fn driver_clock_skew_s(&self, gpu: u32, seconds: f64) -> f64 {
        self.gpu_faults(FaultKind::ClockSkew, gpu, seconds)
            .filter_map(|fault| fault.by_s.as_ref())
            .map(|by_s| by_s.get_ref().0)
            .sum()
    }
}

/// The settings in an `[[event]]` table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventSettings {
    pub(super) gpu: Spanned<u32>,
    at_s: Seconds,
    pub(super) kind: Spanned<EventKind>,
    pub(super) code: Option<Spanned<u32>>,
    pub(super) pid: Option<Spanned<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventKind {
    Xid,
    EccCorrected,
    EccUncorrected,
    PowerSource,
    Mig,
}

/// An event that the driver reports at a certain time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScheduledEvent {
    /// The time of the event, in seconds on the timeline.
    pub at_s: f64,
    pub notice: Notice,
    /// The PID of the process that the event concerns, if any.
    pub pid: Option<u32>,
}

impl EventSettings {
    fn to_scheduled_event(&self) -> ScheduledEvent {
        let notice = match self.kind.get_ref() {
            EventKind::Xid => Notice::Error {
                code: self.code.as_ref().map_or(0, |code| *code.get_ref()),
            },
            EventKind::EccCorrected => Notice::EccCorrected,
            EventKind::EccUncorrected => Notice::EccUncorrected,
            EventKind::PowerSource => Notice::PowerSource,
            EventKind::Mig => Notice::Partitions,
        };
        ScheduledEvent {
            at_s: self.at_s.0,
            notice,
            pid: self.pid.as_ref().map(|pid| *pid.get_ref()),
        }
    }
}

impl Scenario {
    /// Returns a GPU's events from `from_s` on, sorted by time.
    pub fn list_events(&self, gpu: u32, from_s: f64) -> Vec<ScheduledEvent> {
        let own = self
            .event
            .iter()
            .filter(|event| *event.gpu.get_ref() == gpu);
        let mut reports: Vec<ScheduledEvent> = own
            .map(EventSettings::to_scheduled_event)
            .filter(|report| report.at_s >= from_s)
            .collect();
        reports.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        reports
    }

    /// Returns the first time after `after_s` at which an event is reported, or a fault starts or
    /// ends.
    pub(crate) fn next_change_s(&self, after_s: f64) -> Option<f64> {
        let reported = self.event.iter().map(|event| event.at_s.0);
        let moments = reported.chain(
            self.fault
                .iter()
                .flat_map(FaultSettings::start_and_end_times),
        );
        moments
            .filter(|moment| *moment > after_s)
            .min_by(f64::total_cmp)
    }
}
