//! Values that are calculated from consecutive readings of a card: activity, reasons for reduced
//! clocks, XGMI rates, and energy. This module also reads the state of XGMI links.

use std::time::{Duration, Instant};

use super::metrics::{Field, Metrics};
use crate::model::{
    Absence, Absent, Activity, EnergySource, GpuDetails, GpuSample, NvLink, NvLinkRemote, Reading,
    ThrottleReason::{
        self, CurrentLimit, MemoryThermalLimit, OtherLimit, PowerLimit, Prochot,
        RegulatorThermalLimit, ThermalLimit,
    },
};

/// The previous firmware table, and the totals of all tables read so far.
#[derive(Debug, Default)]
pub(super) struct TableRates {
    pub(super) earlier: Option<TimedTable>,
    throttled: ThrottledSeconds,
}

/// A firmware table, and the time at which it was read.
#[derive(Debug)]
pub(super) struct TimedTable {
    pub(super) at: Instant,
    pub(super) metrics: Metrics,
}

/// The total time during which clocks were reduced, in seconds, by cause.
#[derive(Debug, Default, Clone, Copy)]
struct ThrottledSeconds {
    is_counted: bool,
    power: f64,
    thermal: f64,
}

impl TableRates {
    /// Fills in the readings that require two tables: activity, throttle reasons and XGMI rates.
    /// Without a table, they remain absent.
    pub(super) fn fill_rates(
        &mut self,
        metrics: Option<&Metrics>,
        at: Instant,
        sample: &mut GpuSample,
    ) {
        let Some(now) = metrics else { return };
        let earlier = self.earlier.as_ref();
        let before = earlier.map(|earlier| (earlier.at, &earlier.metrics));
        let shares = before.and_then(|(_, before)| ThrottleShares::from_tables(before, now));
        let elapsed = before.map_or(0.0, |(earlier, _)| at.duration_since(earlier).as_secs_f64());
        sample.activity = match before {
            _ if now.get_raw(Field::GfxActivitySum).is_none()
                || now.get_raw(Field::Samples).is_none() =>
            {
                Reading::NOT_SUPPORTED
            }
            None => Reading::Absent(Absence::WarmingUp),
            Some((_, before)) => Reading::Now(Activity {
                graphics_percent: mean_activity(before, now).ok_or(Absence::WarmingUp).into(),
                ..Activity::new_absent(&Absence::NotSupported)
            }),
        };
        let rate = |field| xgmi_rate(before.map(|(_, before)| before), now, field, elapsed);
        sample.nvlink.rx_bytes_per_second = rate(Field::XgmiRead).into();
        sample.nvlink.tx_bytes_per_second = rate(Field::XgmiWritten).into();
        if let Some(shares) = &shares {
            self.throttled.is_counted = true;
            self.throttled.power += shares.get_share(ThrottleReason::PowerLimit) * elapsed;
            let thermal = [
                ThrottleReason::ThermalLimit,
                ThrottleReason::MemoryThermalLimit,
                ThrottleReason::RegulatorThermalLimit,
            ];
            let share = thermal
                .map(|reason| shares.get_share(reason))
                .into_iter()
                .fold(0.0, f64::max);
            self.throttled.thermal += share * elapsed;
        }
        let margin = sample.temperature.margin_celsius.value().copied();
        let reasons = find_throttle_reasons(now, shares.as_ref(), margin);
        // The reasons can be unknown even with two tables. This is the case if the sample counter
        // has not changed, or if the counters of several reasons have increased with every sample,
        // which makes them unreliable.
        let reason_of_absence = match (now.get_raw(Field::Samples), before) {
            (None, _) => Absence::NotSupported,
            (Some(_), None) => Absence::WarmingUp,
            (Some(_), Some(_)) => Absence::Unknown,
        };
        sample.throttle_reasons = reasons.ok_or(reason_of_absence).into();
    }

    /// Fills in the total time during which clocks were reduced.
    pub(super) fn fill_throttled(&self, details: &mut GpuDetails) {
        if self.throttled.is_counted {
            details.throttled.power_seconds_total = Reading::Now(self.throttled.power);
            details.throttled.thermal_seconds_total = Reading::Now(self.throttled.thermal);
        }
    }
}

/// Returns the highest value of `field` in the package and all of its partitions.
pub(super) fn find_highest_value(metrics: Option<&Metrics>, field: Field) -> Result<f64, Absence> {
    let metrics = metrics.ok_or(Absence::NotSupported)?;
    let partitions = 0..metrics.partition_block_count();
    let of_partitions = partitions.flat_map(|number| metrics.get_partition(number, field));
    let all = metrics.get_all(field).into_iter().chain(of_partitions);
    all.flatten().reduce(f64::max).ok_or(Absence::NotSupported)
}

/// Returns the mean activity of the graphics engine in the time between two tables, in percent.
fn mean_activity(before: &Metrics, now: &Metrics) -> Option<f64> {
    let growth = |field| counter_growth(before.get_raw(field)?, now.get_raw(field)?);
    let samples = growth(Field::Samples).filter(|samples| *samples > 0.0)?;
    // The firmware adds at most 1 to the sum for each sample, so the quotient is a share.
    Some((growth(Field::GfxActivitySum)? / samples * 100.0).clamp(0.0, 100.0))
}

/// Returns the combined rate of all XGMI links, in bytes per second.
fn xgmi_rate(
    before: Option<&Metrics>,
    now: &Metrics,
    field: Field,
    elapsed: f64,
) -> Result<f64, Absence> {
    let counted = now.get_all(field);
    if counted.iter().all(Option::is_none) {
        return Err(Absence::NotSupported);
    }
    let before = before.ok_or(Absence::WarmingUp)?.get_all(field);
    let pairs = before.into_iter().zip(counted);
    let growth: f64 = pairs
        .filter_map(|(before, now)| Some((now? - before?).max(0.0)))
        .sum();
    if elapsed > 0.0 {
        Ok(growth / elapsed)
    } else {
        Err(Absence::WarmingUp)
    }
}

/// Returns the XGMI links with their counters.
pub(super) fn read_links(metrics: &Metrics) -> Option<Vec<NvLink>> {
    let (read, written) = (
        metrics.get_all(Field::XgmiRead),
        metrics.get_all(Field::XgmiWritten),
    );
    let states = metrics.get_all(Field::XgmiLinkStatus);
    let speed = metrics
        .get(Field::XgmiWidth)
        .zip(metrics.get(Field::XgmiSpeed));
    let speed = speed.map(|(lanes, gigabits)| lanes * gigabits * 1e9 / 8.0);
    let link = |(number, (read, written)): (u32, (&Option<f64>, &Option<f64>))| {
        let (read, written) = (read.as_ref()?, written.as_ref()?);
        let state = states.get(number as usize).copied().flatten();
        let absent = || Reading::NOT_SUPPORTED;
        Some(NvLink {
            link: number,
            active: state
                .map(|state| state > 0.0)
                .ok_or(Absence::Unknown)
                .into(),
            version: Reading::NOT_SUPPORTED,
            bytes_per_second: speed.ok_or(Absence::NotSupported).into(),
            remote: Reading::Now(NvLinkRemote::Gpu),
            remote_pci_bus_id: Reading::NOT_SUPPORTED,
            tx_bytes_total: Reading::Now(*written as u64),
            rx_bytes_total: Reading::Now(*read as u64),
            errors_total: absent(),
            replays_total: absent(),
            recoveries_total: absent(),
            crc_errors_total: absent(),
        })
    };
    let links: Vec<_> = (0..)
        .zip(read.iter().zip(&written))
        .filter_map(link)
        .collect();
    (!links.is_empty()).then_some(links)
}

/// For each reason, the first and the last of its bits in `indep_throttle_status` (see
/// `amdgpu_smu.h`).
const THROTTLE_BITS: [(u32, u32, ThrottleReason); 10] = [
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

/// The bit of `indep_throttle_status` for the temperature of the chip's hottest spot.
const HOTSPOT_BIT: u64 = 1 << 36;

/// The hotspot bit is used only if the hottest spot is at most this many °C below its temperature
/// limit. The reason is that on RDNA 3, the bit is always set.
const HOTSPOT_MARGIN: f64 = 10.0;

/// The reason that each bit of `throttle_status` stands for, starting with the lowest bit. This
/// applies to MI300 GPUs with table version 1.4 or 1.5.
const MI300_THROTTLE_BITS: [ThrottleReason; 5] = [
    Prochot,
    PowerLimit,
    ThermalLimit,
    RegulatorThermalLimit,
    MemoryThermalLimit,
];

/// The counters of throttled samples in tables of version 1.6 and later, each with its reason for
/// reduced clocks.
const THROTTLE_COUNTERS: [(Field, ThrottleReason); 5] = [
    (Field::ProchotSamples, Prochot),
    (Field::PowerSamples, PowerLimit),
    (Field::SocketThermalSamples, ThermalLimit),
    (Field::RegulatorThermalSamples, RegulatorThermalLimit),
    (Field::MemoryThermalSamples, MemoryThermalLimit),
];

/// A reason is reported only if it reduced the clocks in at least this share of the samples.
/// Smaller shares are noise from the firmware's control loop.
const MIN_THROTTLE_SHARE: f64 = 0.01;

/// How often each reason reduced the clocks between two tables, as a share of the firmware's
/// samples.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ThrottleShares(Vec<(ThrottleReason, f64)>);

impl ThrottleShares {
    /// Compares two tables. Returns `None` if the counters are missing, unreliable, or have not
    /// changed.
    pub(super) fn from_tables(earlier: &Metrics, later: &Metrics) -> Option<Self> {
        let growth = |field| counter_growth(earlier.get_raw(field)?, later.get_raw(field)?);
        let samples = growth(Field::Samples).filter(|samples| *samples > 0.0)?;
        let counted: Vec<_> = THROTTLE_COUNTERS
            .iter()
            .filter_map(|(field, reason)| Some((*reason, growth(*field)? / samples)))
            .collect();
        // One firmware version counts every sample as throttled for several reasons, even on an
        // idle GPU. Its counters are not used.
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
        let held = self
            .0
            .iter()
            .filter(|(_, share)| *share >= MIN_THROTTLE_SHARE);
        held.map(|(reason, _)| *reason).collect()
    }
}

/// Returns how much a counter has grown, or `None` if the counter was reset. If a 32-bit counter
/// has wrapped, the wrap is taken into account.
fn counter_growth(earlier: u64, later: u64) -> Option<f64> {
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

/// Returns the reasons for reduced clocks, without duplicates. Returns `None` if the reasons are
/// unknown. `margin_celsius` is how far the hottest spot is below its temperature limit.
pub(super) fn find_throttle_reasons(
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
    let reasons = MI300_THROTTLE_BITS.iter().enumerate();
    is_mi300.then(|| {
        reasons
            .filter_map(|(bit, reason)| (bits >> bit & 1 == 1).then_some(*reason))
            .collect()
    })
}

fn reasons_from_bits(bits: u64) -> Vec<ThrottleReason> {
    let mut reasons = Vec::new();
    for (first, last, reason) in THROTTLE_BITS {
        let is_set = (first..=last).any(|bit| bits >> bit & 1 == 1);
        if is_set && !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

/// The PCI device IDs of GPUs with a reliable energy accumulator: the MI100, MI200 and MI300
/// series.
const ACCUMULATOR_DEVICES: [u16; 16] = [
    0x738c, 0x738e, 0x7408, 0x740c, 0x740f, 0x7410, 0x74a0, 0x74a1, 0x74a2, 0x74a5, 0x74a8, 0x74a9,
    0x74b5, 0x74b6, 0x75a0, 0x75a3,
];

/// The accumulator's unit in joules, 2^-16.
const ACCUMULATOR_UNIT: f64 = 1.0 / 65536.0;

/// The maximum time between two power readings from which energy is calculated. If more time has
/// passed, the power in between is unknown, so no energy is added.
const MAX_ENERGY_STEP: Duration = Duration::from_mins(2);

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
    /// joules. The source that provided the first value is used for all later values.
    pub(super) fn update(
        &mut self,
        watts: Option<f64>,
        accumulator: Option<f64>,
        now: Instant,
    ) -> Option<f64> {
        if let (Some((at, before)), Some(watts)) = (self.last, watts) {
            let step = now.saturating_duration_since(at);
            if step <= MAX_ENERGY_STEP {
                self.joules += f64::midpoint(before, watts) * step.as_secs_f64();
            }
        }
        self.last = watts.map(|watts| (now, watts)).or(self.last);
        // On virtual functions and with old firmware, the accumulator stays at 0, so 0 counts as
        // missing.
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
    fn throttle_status_bits_become_reasons() {
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

#[cfg(test)]
mod energy_tests {
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
