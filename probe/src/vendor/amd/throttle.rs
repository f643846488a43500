//! The reasons for reduced clocks.

use super::metrics::{Field, Metrics};
use crate::model::ThrottleReason::{
    self, CurrentLimit, MemoryThermalLimit, OtherLimit, PowerLimit, Prochot, RegulatorThermalLimit,
    ThermalLimit,
};

/// The first and the last bit in `indep_throttle_status` (`amdgpu_smu.h`) of each reason.
const BITS: [(u32, u32, ThrottleReason); 10] = [
    (0, 7, PowerLimit),
    (16, 23, CurrentLimit),
    (32, 33, ThermalLimit),
    (34, 34, MemoryThermalLimit),
    (35, 37, ThermalLimit),
    (38, 41, RegulatorThermalLimit),
    (42, 43, ThermalLimit),
    (44, 45, RegulatorThermalLimit),
    (46, 47, Prochot),
    (56, 57, OtherLimit),
];

/// The bit for the hottest spot of the chip.
const HOTSPOT: u64 = 1 << 36;

/// The distance to the temperature limit within which the hotspot bit counts, in °C. On RDNA 3, the
/// bit is always set.
const HOTSPOT_MARGIN: f64 = 10.0;

/// The bits of `throttle_status` on MI300 up to table version 1.5.
const MI300_BITS: [ThrottleReason; 5] = [
    Prochot,
    PowerLimit,
    ThermalLimit,
    RegulatorThermalLimit,
    MemoryThermalLimit,
];

/// The counters in tables since version 1.6, with the reason that each counts.
const COUNTERS: [(Field, ThrottleReason); 5] = [
    (Field::ProchotSamples, Prochot),
    (Field::PowerSamples, PowerLimit),
    (Field::SocketThermalSamples, ThermalLimit),
    (Field::RegulatorThermalSamples, RegulatorThermalLimit),
    (Field::MemoryThermalSamples, MemoryThermalLimit),
];

/// The minimum share of samples for a reason to be reported. Smaller shares are noise of the
/// firmware's control loop.
const LEAST_SHARE: f64 = 0.01;

/// The share of the firmware's samples with reduced clocks between two tables, by reason.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shares(Vec<(ThrottleReason, f64)>);

impl Shares {
    /// Compares two tables. Returns `None` if the tables have no counters or are from the same
    /// moment.
    pub(super) fn compare(earlier: &Metrics, later: &Metrics) -> Option<Self> {
        let growth = |field| counter_growth(earlier.get_raw(field)?, later.get_raw(field)?);
        let samples = growth(Field::Samples).filter(|samples| *samples > 0.0)?;
        let counted: Vec<_> = COUNTERS
            .iter()
            .filter_map(|(field, reason)| Some((*reason, growth(*field)? / samples)))
            .collect();
        // One firmware version counts every sample for all reasons, even on an idle GPU.
        let always = counted
            .iter()
            .filter(|(_, share)| (share - 1.0).abs() < 1e-9)
            .count();
        if always >= 3 {
            return None;
        }
        Some(Self(counted))
    }

    /// Returns the share of samples with this reason.
    pub(super) fn get_share(&self, reason: ThrottleReason) -> f64 {
        self.0
            .iter()
            .find_map(|(own, share)| (*own == reason).then_some(*share))
            .unwrap_or(0.0)
    }

    fn list_reasons(&self) -> Vec<ThrottleReason> {
        let held = self.0.iter().filter(|(_, share)| *share >= LEAST_SHARE);
        held.map(|(reason, _)| *reason).collect()
    }
}

/// Returns the growth of a counter, or `None` if it was reset. A counter of 32 bits can wrap.
#[allow(clippy::cast_precision_loss)]
pub(super) fn counter_growth(earlier: u64, later: u64) -> Option<f64> {
    const WRAP: u64 = 1 << 32;
    let growth = match later.checked_sub(earlier) {
        Some(growth) => growth,
        // A counter only wraps if it was close to its maximum.
        None if earlier < WRAP && earlier > WRAP / 4 * 3 && later < WRAP / 4 => {
            later.saturating_add(WRAP).saturating_sub(earlier)
        }
        None => return None,
    };
    Some(growth as f64)
}

/// Returns the reasons for reduced clocks, each once. Returns `None` if the hardware does not
/// report them. `margin_celsius` is the distance of the hottest spot from its limit.
pub(super) fn find_reasons(
    metrics: &Metrics,
    shares: Option<&Shares>,
    margin_celsius: Option<f64>,
) -> Option<Vec<ThrottleReason>> {
    if metrics.get_raw(Field::Samples).is_some() {
        return shares.map(Shares::list_reasons);
    }
    if let Some(mut bits) = metrics.get_raw(Field::IndependentThrottleStatus) {
        if margin_celsius.is_none_or(|margin| margin > HOTSPOT_MARGIN) {
            bits &= !HOTSPOT;
        }
        return Some(from_bits(bits));
    }
    let bits = metrics.get_raw(Field::ThrottleStatus)?;
    let is_mi300 = metrics.version.format == 1 && matches!(metrics.version.content, 4 | 5);
    let reasons = MI300_BITS.iter().enumerate();
    is_mi300.then(|| {
        reasons
            .filter_map(|(bit, reason)| (bits >> bit & 1 == 1).then_some(*reason))
            .collect()
    })
}

fn from_bits(bits: u64) -> Vec<ThrottleReason> {
    let mut reasons = Vec::new();
    for (first, last, reason) in BITS {
        let is_set = (first..=last).any(|bit| bits >> bit & 1 == 1);
        if is_set && !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_bits_become_reasons() {
        assert_eq!(from_bits(0), []);
        assert_eq!(from_bits(1 | 1 << 6 | 1 << 22), [PowerLimit, CurrentLimit]);
        assert_eq!(from_bits(1 << 34 | 1 << 47), [MemoryThermalLimit, Prochot]);
        assert_eq!(from_bits(1 << 57 | 1 << 60), [OtherLimit]);
    }

    #[test]
    fn wrapped_counter_grows_and_reset_one_does_not() {
        assert_eq!(counter_growth(5, 7), Some(2.0));
        assert_eq!(counter_growth((1 << 32) - 2, 3), Some(5.0));
        assert_eq!(counter_growth(1000, 3), None);
        assert_eq!(counter_growth(1 << 40, 3), None);
    }
}
