//! The faults that apply at a time.

use super::{
    Scenario,
    fault::{Call, FaultKind},
};

impl Scenario {
    /// Returns `true` if this GPU has fallen off the bus or has been removed.
    pub fn is_lost(&self, gpu: u32, seconds: f64) -> bool {
        let was_taken_out = self
            .settings(gpu)
            .is_some_and(|own| own.is_taken_out(seconds));
        was_taken_out
            || self
                .fault
                .iter()
                .any(|fault| fault.affects_gpu(FaultKind::Lost, gpu, seconds))
    }

    /// Returns `true` if a driver that is loaded at this time finds this GPU.
    pub fn is_present(&self, gpu: u32, seconds: f64) -> bool {
        self.settings(gpu).is_none_or(|own| own.is_present(seconds))
    }

    /// Returns the `nvmlReturn_t` with which all calls about this GPU fail at this time, if there
    /// is one.
    pub fn failure(&self, gpu: u32, seconds: f64) -> Option<u32> {
        let fault = self
            .fault
            .iter()
            .find(|fault| fault.fails_gpu(gpu, seconds))?;
        fault.code.as_ref().map(|code| code.get_ref().0)
    }

    /// Returns `true` if the versions of driver and library differ at this time, so that every call
    /// fails.
    pub fn is_mismatched(&self, seconds: f64) -> bool {
        let call = Call {
            gpu: None,
            function: None,
            seconds,
        };
        self.fault
            .iter()
            .any(|fault| fault.affects_call(FaultKind::Mismatch, call))
    }

    /// Returns `true` if a call hangs at this time. The call can concern a GPU and name an NVML
    /// function. The simulated source reads all values at once, and names no function.
    pub fn hangs(&self, gpu: Option<u32>, function: Option<&str>, seconds: f64) -> bool {
        let call = Call {
            gpu,
            function,
            seconds,
        };
        self.fault
            .iter()
            .any(|fault| fault.affects_call(FaultKind::Hang, call))
    }

    /// Returns `true` if this call terminates the process.
    pub fn crashes(&self, gpu: Option<u32>, function: &str, seconds: f64) -> bool {
        let call = Call {
            gpu,
            function: Some(function),
            seconds,
        };
        self.fault
            .iter()
            .any(|fault| fault.affects_call(FaultKind::Crash, call))
    }

    /// Returns the `nvmlReturn_t` that the scenario sets for this call, if there is one. It takes
    /// precedence over all other faults.
    pub fn forced_return(&self, gpu: Option<u32>, function: &str, seconds: f64) -> Option<u32> {
        let call = Call {
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

    pub(crate) fn is_garbage(&self, gpu: u32, seconds: f64) -> bool {
        self.fault
            .iter()
            .any(|fault| fault.affects_gpu(FaultKind::Garbage, gpu, seconds))
    }

    /// Returns the factor for this GPU's counters, which is 1 unless they run backwards. Then it
    /// starts at 0.9 and is halved every second.
    pub(crate) fn left(&self, gpu: u32, seconds: f64) -> f64 {
        let fault = self
            .fault
            .iter()
            .find(|fault| fault.affects_gpu(FaultKind::Backwards, gpu, seconds));
        fault.map_or(1.0, |fault| 0.9 * (fault.begin_s() - seconds).exp2())
    }

    /// Returns the time by which the clock of this GPU's driver is ahead of the machine's, in
    /// seconds.
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
