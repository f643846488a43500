//! The reasons for reduced GPU clocks.

use super::metrics::{Field, Metrics};
use crate::model::ThrottleReason::{
    self, CurrentLimit, MemoryThermalLimit, OtherLimit, PowerLimit, Prochot, RegulatorThermalLimit,
    ThermalLimit,
};

/// The first and last bit of each reason in `indep_throttle_status` (see `amdgpu_smu.h`).
const REASON_BITS: [(u32, u32, ThrottleReason); 10] = [
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

/// The bit for the chip's hottest spot.
const HOTSPOT_BIT: u64 = 1 << 36;

/// The hotspot bit counts only within this distance to the temperature limit, in °C. On RDNA 3, the
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

/// The counters in tables of version 1.6 and later, and the reason that each counts.
const COUNTERS: [(Field, ThrottleReason); 5] = [
    (Field::ProchotSamples, Prochot),
    (Field::PowerSamples, PowerLimit),
    (Field::SocketThermalSamples, ThermalLimit),
    (Field::RegulatorThermalSamples, RegulatorThermalLimit),
    (Field::MemoryThermalSamples, MemoryThermalLimit),
];

/// The minimum share of samples from which a reason is reported. Smaller shares are noise of the
/// firmware's control loop.
const MIN_SHARE: f64 = 0.01;

/// For each reason, the share of samples between two tables in which it reduced the clocks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ThrottleShares(Vec<(ThrottleReason, f64)>);

impl ThrottleShares {
    /// Compares two tables. Returns `None` if the tables have no counters or were recorded at the
    /// same moment.
    pub(super) fn from_tables(earlier: &Metrics, later: &Metrics) -> Option<Self> {
        let growth = |field| counter_growth(earlier.get_raw(field)?, later.get_raw(field)?);
        let samples = growth(Field::Samples).filter(|samples| *samples > 0.0)?;
        let counted: Vec<_> = COUNTERS
            .iter()
            .filter_map(|(field, reason)| Some((*reason, growth(*field)? / samples)))
            .collect();
        // One firmware version counts every sample for several reasons, even on an idle GPU.
        let always = counted
            .iter()
            .filter(|(_, share)| (share - 1.0).abs() < 1e-9)
            .count();
        if always >= 3 {
            return None;
        }
        Some(Self(counted))
    }

    /// Returns the share of samples with this reason, from 0 to 1.
    pub(super) fn get_share(&self, reason: ThrottleReason) -> f64 {
        self.0
            .iter()
            .find_map(|(own, share)| (*own == reason).then_some(*share))
            .unwrap_or(0.0)
    }

    fn list_reasons(&self) -> Vec<ThrottleReason> {
        let held = self.0.iter().filter(|(_, share)| *share >= MIN_SHARE);
        held.map(|(reason, _)| *reason).collect()
    }
}

/// Returns the growth of a counter, or `None` if the counter was reset. A 32-bit counter may wrap.
#[allow(clippy::cast_precision_loss)]
pub(super) fn counter_growth(earlier: u64, later: u64) -> Option<f64> {
    const WRAP: u64 = 1 << 32;
    let growth = match later.checked_sub(earlier) {
        Some(growth) => growth,
        // Only a counter that was close to its maximum can have wrapped.
        None if earlier < WRAP && earlier > WRAP / 4 * 3 && later < WRAP / 4 => {
            later.saturating_add(WRAP).saturating_sub(earlier)
        }
        None => return None,
    };
    Some(growth as f64)
}

/// Returns the reasons for reduced clocks, without duplicates. Returns `None` if the hardware does
/// not report them. `margin_celsius` is the distance of the hottest spot from its limit.
pub(super) fn find_reasons(
    metrics: &Metrics,
    shares: Option<&ThrottleShares>,
    margin_celsius: Option<f64>,
) -> Option<Vec<ThrottleReason>> {
    if metrics.get_raw(Field::Samples).is_some() {
        return shares.map(ThrottleShares::list_reasons);
    }
    if let Some(mut bits) = metrics.get_raw(Field::IndependentThrottleStatus) {
        if margin_celsius.is_none_or(|margin| margin > HOTSPOT_MARGIN) {
            bits &= !HOTSPOT_BIT;
        }
        return Some(reasons_from_bits(bits));
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

fn reasons_from_bits(bits: u64) -> Vec<ThrottleReason> {
    let mut reasons = Vec::new();
    for (first, last, reason) in REASON_BITS {
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
        assert_eq!(reasons_from_bits(0), []);
        assert_eq!(
            reasons_from_bits(1 | 1 << 6 | 1 << 22),
            [PowerLimit, CurrentLimit]
        );
        assert_eq!(
            reasons_from_bits(1 << 34 | 1 << 47),
            [MemoryThermalLimit, Prochot]
        );
        assert_eq!(reasons_from_bits(1 << 57 | 1 << 60), [OtherLimit]);
    }

    #[test]
    fn counter_growth_survives_wrap_but_not_reset() {
        assert_eq!(counter_growth(5, 7), Some(2.0));
        assert_eq!(counter_growth((1 << 32) - 2, 3), Some(5.0));
        assert_eq!(counter_growth(1000, 3), None);
        assert_eq!(counter_growth(1 << 40, 3), None);
    }
}
