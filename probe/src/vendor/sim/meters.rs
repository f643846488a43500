//! The counters of simulated GPUs, which are the sums of all past rates.

use std::sync::{Mutex, PoisonError};

use crate::model::{ThrottleCause, ThrottleReason};

use super::{Counters, World};

/// The interval at which counters change. The real energy counter has the same interval.
const TICK_MS: u64 = 100;
/// The maximum part of the past that is added up when a timeline already runs for longer, because
/// adding takes time.
const PAST_MS: u64 = 3_600_000;

/// The counters since the start of the timeline, or from up to an hour before the first reading if
/// the timeline is older.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// The energy that the GPU has consumed.
    pub energy_joules: f64,
    /// The bytes sent by the GPU over PCIe.
    pub pcie_tx_bytes: f64,
    /// The bytes received by the GPU over PCIe.
    pub pcie_rx_bytes: f64,
    /// The bytes sent by the GPU over all `NVLinks`.
    pub nvlink_tx_bytes: f64,
    /// The bytes received by the GPU over all `NVLinks`.
    pub nvlink_rx_bytes: f64,
    throttled_s: [f64; ThrottleReason::ALL.len()],
}

impl Totals {
    /// Returns how long this reason has reduced the clocks, in seconds.
    pub fn throttled_s(&self, reason: ThrottleReason) -> f64 {
        self.throttled_s[reason as usize]
    }

    /// Returns how long reasons of this kind have reduced the clocks, in seconds.
    pub fn throttled_by(&self, cause: ThrottleCause) -> f64 {
        let reasons = ThrottleReason::ALL.into_iter();
        let alike = reasons.filter(|reason| reason.cause() == cause);
        alike.map(|reason| self.throttled_s(reason)).sum()
    }

    /// Multiplies all counters by a factor.
    #[must_use]
    pub(super) fn times(self, factor: f64) -> Self {
        Self {
            energy_joules: self.energy_joules * factor,
            pcie_tx_bytes: self.pcie_tx_bytes * factor,
            pcie_rx_bytes: self.pcie_rx_bytes * factor,
            nvlink_tx_bytes: self.nvlink_tx_bytes * factor,
            nvlink_rx_bytes: self.nvlink_rx_bytes * factor,
            throttled_s: self.throttled_s.map(|seconds| seconds * factor),
        }
    }

    fn add(&mut self, flow: &Flow, seconds: f64) {
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

/// The rates at one moment, from which the counters are computed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flow {
    pub(super) watts: f64,
    pub(super) counters: Counters,
    pub(super) throttle_reasons: Vec<ThrottleReason>,
}

/// The counters of all GPUs in a world.
#[derive(Debug)]
pub(super) struct Meters(Vec<Mutex<Meter>>);

#[derive(Debug)]
struct Meter {
    counted_until_ms: u64,
    totals: Totals,
}

impl Meters {
    /// Creates counters that start at 0 with the timeline, or one hour before `elapsed_ms` if that
    /// is later.
    pub(super) fn new(gpus: u32, elapsed_ms: u64) -> Self {
        let counted_until_ms = elapsed_ms.saturating_sub(PAST_MS) / TICK_MS * TICK_MS;
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
    pub(super) fn totals(&self, world: &World, gpu: u32, elapsed_ms: u64) -> Totals {
        let mut meter = self.0[gpu as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while meter.counted_until_ms + TICK_MS <= elapsed_ms {
            meter.counted_until_ms += TICK_MS;
            let flow = world.flow(gpu, meter.counted_until_ms);
            meter.totals.add(&flow, TICK_MS as f64 / 1000.0);
        }
        meter.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::sim::Scenario;

    fn world(toml: &str) -> World {
        World::new(Scenario::from_toml(toml, "test").unwrap())
    }

    #[test]
    fn the_counter_is_the_integral_of_the_power() {
        let world = world("[[gpu]]\nindex = 0\npower_watts = 500\n");
        let meters = Meters::new(1, 0);
        let joules = |ms| meters.totals(&world, 0, ms).energy_joules;
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
    fn a_throttled_time_rises_while_its_reason_is_there() {
        let world = world(
            "[[gpu]]\nindex = 0\nutilization_percent = 50\nnvlinks = 2\n\
             throttle_reasons = [[0, []], [10, [\"hw_thermal_slowdown\"]], [14, []]]",
        );
        let meters = Meters::new(1, 0);
        let at = |ms| meters.totals(&world, 0, ms);
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
