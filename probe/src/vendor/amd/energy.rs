//! Measurement of the energy that a GPU has consumed.

use std::time::{Duration, Instant};

use crate::model::EnergySource;

/// The PCI device IDs of GPUs with a reliable energy accumulator: the MI100, MI200 and MI300
/// series.
const ACCUMULATOR_DEVICES: [u16; 16] = [
    0x738c, 0x738e, 0x7408, 0x740c, 0x740f, 0x7410, 0x74a0, 0x74a1, 0x74a2, 0x74a5, 0x74a8, 0x74a9,
    0x74b5, 0x74b6, 0x75a0, 0x75a3,
];

/// The accumulator's unit in joules, 2^-16.
const ACCUMULATOR_UNIT: f64 = 1.0 / 65536.0;

/// The maximum time between two samples for which energy is added up. Over longer gaps, the power
/// in between is unknown.
const MAX_STEP: Duration = Duration::from_mins(2);

/// A GPU's energy counter. It is kept while the GPU is closed, for example during sleep or a reset.
#[derive(Debug, Default)]
pub(super) struct EnergyMeter {
    source: Option<EnergySource>,
    /// The energy added up from power readings, in joules.
    joules: f64,
    /// The time and value of the last known power reading. The value is in watts.
    last: Option<(Instant, f64)>,
}

/// Returns `true` if the GPU with this PCI device ID has a reliable energy accumulator.
pub(super) fn has_accumulator(device: u16) -> bool {
    ACCUMULATOR_DEVICES.contains(&device)
}

impl EnergyMeter {
    /// Adds a power reading, and the accumulator's value if it is reliable. Returns the energy in
    /// joules. Once a source has been used, it does not change.
    pub(super) fn update(
        &mut self,
        watts: Option<f64>,
        accumulator: Option<f64>,
        now: Instant,
    ) -> Option<f64> {
        if let (Some((at, before)), Some(watts)) = (self.last, watts) {
            let step = now.saturating_duration_since(at);
            if step <= MAX_STEP {
                self.joules += f64::midpoint(before, watts) * step.as_secs_f64();
            }
        }
        self.last = watts.map(|watts| (now, watts)).or(self.last);
        // On virtual functions and with old firmware, the accumulator stays at 0.
        let accumulator = accumulator.filter(|units| *units > 0.0);
        self.source = self.source.or(match (accumulator, watts) {
            (Some(_), _) => Some(EnergySource::Counter),
            (None, Some(_)) => Some(EnergySource::Power),
            (None, None) => None,
        });
        match self.source? {
            EnergySource::Counter => accumulator.map(|units| units * ACCUMULATOR_UNIT),
            EnergySource::Power => Some(self.joules),
        }
    }

    /// Returns the source of the energy values, or `None` if there are no values yet.
    pub(super) fn source(&self) -> Option<EnergySource> {
        self.source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_is_integrated_except_over_long_pauses() {
        let (mut meter, start) = (EnergyMeter::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(meter.update(None, None, start), None, "nothing is known");
        assert_eq!(meter.update(Some(10.0), None, at(1)), Some(0.0));
        assert_eq!(meter.update(Some(20.0), None, at(3)), Some(30.0));
        assert_eq!(meter.update(None, None, at(4)), Some(30.0));
        assert_eq!(meter.update(Some(20.0), None, at(5)), Some(70.0));
        assert_eq!(meter.update(Some(20.0), None, at(500)), Some(70.0));
        assert_eq!(meter.source(), Some(EnergySource::Power));
        let counter = meter.update(Some(20.0), Some(65536.0), at(500));
        assert_eq!(counter, Some(70.0), "the source remains");
    }

    #[test]
    fn accumulator_at_zero_is_not_used() {
        let start = Instant::now();
        let mut meter = EnergyMeter::default();
        assert_eq!(meter.update(Some(5.0), Some(131_072.0), start), Some(2.0));
        assert_eq!(meter.update(Some(5.0), None, start), None);
        assert_eq!(meter.source(), Some(EnergySource::Counter));
        let mut meter = EnergyMeter::default();
        assert_eq!(meter.update(Some(5.0), Some(0.0), start), Some(0.0));
        assert_eq!(meter.source(), Some(EnergySource::Power));
    }
}
