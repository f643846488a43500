//! Lookup of the faults that apply at a given time.

use super::{
    Scenario,
    fault::{FaultCall, FaultKind},
};

impl Scenario {
    /// Returns `true` if the GPU has fallen off the bus or has been removed.
    pub fn is_lost(&self, gpu: u32, seconds: f64) -> bool {
        let was_taken_out = self
            .find_settings(gpu)
            .is_some_and(|own| own.is_removed(seconds));
        was_taken_out
            || self
                .fault
                .iter()
                .any(|fault| fault.affects_gpu(FaultKind::Lost, gpu, seconds))
    }

    /// Returns `true` if a driver that is loaded at the given time finds the GPU.
    pub fn is_present(&self, gpu: u32, seconds: f64) -> bool {
        self.find_settings(gpu)
            .is_none_or(|own| own.is_present(seconds))
    }

    /// Returns the `nvmlReturn_t` with which all calls about the GPU fail at the given time, if
    /// any.
    pub fn find_failure(&self, gpu: u32, seconds: f64) -> Option<u32> {
        let fault = self
            .fault
            .iter()
            .find(|fault| fault.makes_gpu_fail(gpu, seconds))?;
        fault.code.as_ref().map(|code| code.get_ref().0)
    }

    /// Returns `true` if the versions of the driver and the library differ at the given time, so
    /// that every call fails.
    pub fn has_version_mismatch(&self, seconds: f64) -> bool {
        let call = FaultCall {
            gpu: None,
            function: None,
            seconds,
        };
        self.fault
            .iter()
            .any(|fault| fault.affects_call(FaultKind::Mismatch, call))
    }

    /// Returns `true` if a call hangs at the given time. `gpu` and `function` are the GPU and the
    /// NVML function that the call concerns, if any. The simulated source reads all values
    /// together, so it passes no function.
    pub fn is_hanging(&self, gpu: Option<u32>, function: Option<&str>, seconds: f64) -> bool {
        let call = FaultCall {
            gpu,
            function,
            seconds,
        };
        self.fault
            .iter()
            .any(|fault| fault.affects_call(FaultKind::Hang, call))
    }

    /// Returns `true` if the call crashes the process.
    pub fn is_crashing(&self, gpu: Option<u32>, function: &str, seconds: f64) -> bool {
        let call = FaultCall {
            gpu,
            function: Some(function),
            seconds,
        };
        self.fault
            .iter()
            .any(|fault| fault.affects_call(FaultKind::Crash, call))
    }

    /// Returns the `nvmlReturn_t` that the scenario sets for the call, if any. This code takes
    /// precedence over all other faults.
    pub fn find_forced_return(
        &self,
        gpu: Option<u32>,
        function: &str,
        seconds: f64,
    ) -> Option<u32> {
        let call = FaultCall {
            gpu,
            function: Some(function),
            seconds,
        };
        let fault = self
            .fault
            .iter()
            .find(|fault| fault.affects_call(FaultKind::Returns, call));
        let now = fault
            .and_then(|fault| fault.code.as_ref())
            .map(|code| code.get_ref().0);
        now.or_else(|| {
            self.returns
                .iter()
                .find(|(name, _)| name.0 == function)
                .map(|(_, code)| code.0)
        })
    }

    pub(crate) fn returns_garbage(&self, gpu: u32, seconds: f64) -> bool {
        self.fault
            .iter()
            .any(|fault| fault.affects_gpu(FaultKind::Garbage, gpu, seconds))
    }

    /// Returns the factor for the GPU's counters. Normally, the factor is 1. While a fault makes
    /// the counters run backwards, the factor starts at 0.9 and is halved every second.
    pub(crate) fn counter_factor(&self, gpu: u32, seconds: f64) -> f64 {
        let fault = self
            .fault
            .iter()
            .find(|fault| fault.affects_gpu(FaultKind::Backwards, gpu, seconds));
        fault.map_or(1.0, |fault| 0.9 * (fault.begin_s() - seconds).exp2())
    }

    /// Returns how far the clock of the GPU's driver is ahead of the machine's clock, in seconds.
    pub(crate) fn skew_s(&self, gpu: u32, seconds: f64) -> f64 {
        let skewed = self
            .fault
            .iter()
            .filter(|fault| fault.affects_gpu(FaultKind::ClockSkew, gpu, seconds));
        skewed
            .filter_map(|fault| fault.by_s.as_ref())
            .map(|by_s| by_s.get_ref().0)
            .sum()
    }
}
