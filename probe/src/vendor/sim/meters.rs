//! Counters of simulated GPUs, calculated as the sums of all past rates.

use std::sync::{Mutex, PoisonError};

use crate::model::{ThrottleCause, ThrottleReason};

use super::{Counters, World};

/// The interval at which counters change. The driver's real energy counter changes at the same
/// interval.
const TICK_MS: u64 = 100;
/// If the timeline started long ago, only this much of its past is added up, because adding takes
/// time.
const MAX_PAST_MS: u64 = 3_600_000;

/// A GPU's counters since the start of the timeline. If the timeline is older than an hour, they
/// start up to an hour before the first reading.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// The energy that the GPU has consumed, in joules.
    pub energy_joules: f64,
    /// The number of bytes that the GPU has sent over PCIe.
    pub pcie_tx_bytes: f64,
    /// The number of bytes that the GPU has received over PCIe.
    pub pcie_rx_bytes: f64,
    /// The number of bytes that the GPU has sent over all `NVLinks`.
    pub nvlink_tx_bytes: f64,
    /// The number of bytes that the GPU has received over all `NVLinks`.
    pub nvlink_rx_bytes: f64,
    throttled_s: [f64; ThrottleReason::ALL.len()],
}

impl Totals {
    /// Returns how long `reason` has reduced the clocks, in seconds.
    pub fn throttled_s(&self, reason: ThrottleReason) -> f64 {
        self.throttled_s[reason as usize]
    }

    /// Returns how long reasons with the given cause have reduced the clocks, in seconds.
    pub fn throttled_by_cause_s(&self, cause: ThrottleCause) -> f64 {
        let reasons = ThrottleReason::ALL.into_iter();
        let alike = reasons.filter(|reason| reason.cause() == cause);
        alike.map(|reason| self.throttled_s(reason)).sum()
    }

    /// Multiplies all counters by `factor`.
    #[must_use]
    pub(super) fn scale(self, factor: f64) -> Self {
        Self {
            energy_joules: self.energy_joules * factor,
            pcie_tx_bytes: self.pcie_tx_bytes * factor,
            pcie_rx_bytes: self.pcie_rx_bytes * factor,
            nvlink_tx_bytes: self.nvlink_tx_bytes * factor,
            nvlink_rx_bytes: self.nvlink_rx_bytes * factor,
            throttled_s: self.throttled_s.map(|seconds| seconds * factor),
        }
    }

    fn add(&mut self, flow: &CounterRates, seconds: f64) {
        self.energy_joules += flow.watts * seconds;
        self.pcie_tx_bytes += flow.counters.pcie_tx_bytes_per_second * seconds;
        self.pcie_rx_bytes += flow.counters.pcie_rx_bytes_per_second * seconds;
        self.nvlink_tx_bytes += flow.counters.nvlink_tx_bytes_per_second * seconds;
        self.nvlink_rx_bytes += flow.counters.nvlink_rx_bytes_per_second * seconds;
        for reason in &flow.throttle_reasons {
            self.throttled_s[*reason as usize] += seconds;
        }
    }
}

/// The rates at a certain time, from which the counters are calculated.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CounterRates {
    pub(super) watts: f64,
    pub(super) counters: Counters,
    pub(super) throttle_reasons: Vec<ThrottleReason>,
}

/// The counters of all GPUs in a simulated machine.
#[derive(Debug)]
pub(super) struct Meters(Vec<Mutex<Meter>>);

#[derive(Debug)]
struct Meter {
    counted_until_ms: u64,
    totals: Totals,
}

impl Meters {
    /// Creates counters that are 0 at the start of the timeline, or one hour before `elapsed_ms` if
    /// that is later.
    pub(super) fn new(gpus: u32, elapsed_ms: u64) -> Self {
        let counted_until_ms = elapsed_ms.saturating_sub(MAX_PAST_MS) / TICK_MS * TICK_MS;
        Self(
            (0..gpus)
                .map(|_| {
                    Mutex::new(Meter {
                        counted_until_ms,
                        totals: Totals::default(),
                    })
                })
                .collect(),
        )
    }

    /// Returns a GPU's counters at `elapsed_ms`.
    pub(super) fn compute_totals(&self, world: &World, gpu: u32, elapsed_ms: u64) -> Totals {
        let mut meter = self.0[gpu as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while meter.counted_until_ms + TICK_MS <= elapsed_ms {
            meter.counted_until_ms += TICK_MS;
            let flow = world.compute_rates(gpu, meter.counted_until_ms);
            meter.totals.add(&flow, TICK_MS as f64 / 1000.0);
        }
        meter.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::sim::Scenario;

    fn make_world(toml: &str) -> World {
        World::new(Scenario::from_toml(toml, "test").unwrap())
    }

    #[test]
    fn energy_is_integral_of_power() {
        let world = make_world("[[gpu]]\nindex = 0\npower_watts = 500\n");
        let meters = Meters::new(1, 0);
        let joules = |ms| meters.compute_totals(&world, 0, ms).energy_joules;
        let (early, late) = (joules(1_000), joules(11_000));
        assert!(
            ((late - early) / 5_000.0 - 1.0).abs() < 0.001,
            "{early} J and 10 s of 500 W later {late} J"
        );
        assert!(
            (joules(11_099) - late).abs() < f64::EPSILON,
            "it moves in steps"
        );
        assert!((joules(11_100) - late - 50.0).abs() < 0.001);
    }

    #[test]
    fn throttled_time_grows_while_reason_lasts() {
        let world = make_world(
            "[[gpu]]\nindex = 0\nutilization_percent = 50\nnvlinks = 2\n\
             throttle_reasons = [[0, []], [10, [\"hw_thermal_slowdown\"]], [14, []]]",
        );
        let meters = Meters::new(1, 0);
        let at = |ms| meters.compute_totals(&world, 0, ms);
        let heat = |totals: Totals| totals.throttled_s(ThrottleReason::HwThermalSlowdown);
        assert!(heat(at(9_000)).abs() < 1e-9);
        assert!((heat(at(12_000)) - 2.0).abs() < 0.2);
        let late = at(60_000);
        assert!((heat(late) - 4.0).abs() < 0.2);
        assert!(late.throttled_s(ThrottleReason::SwPowerCap).abs() < 1e-9);
        let state = world.state(0, 60_000);
        let expected = state.counters.nvlink_tx_bytes_per_second * 60.0;
        assert!(
            (late.nvlink_tx_bytes / expected - 1.0).abs() < 0.01,
            "{late:?}"
        );
        assert!(
            late.nvlink_rx_bytes < late.nvlink_tx_bytes && late.pcie_rx_bytes > late.pcie_tx_bytes
        );
    }
}
