//! Readings that are calculated from two firmware tables, and the state of XGMI links.

use std::time::Instant;

use super::{
    metrics::{Field, Metrics},
    throttle::{self, ThrottleShares, counter_growth},
};
use crate::model::{
    Absence, Absent, Activity, GpuDetails, GpuSample, NvLink, NvLinkRemote, Reading, ThrottleReason,
};

/// The previous firmware table, and totals accumulated over all tables.
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
    pub(super) fn fill(&mut self, metrics: Option<&Metrics>, at: Instant, sample: &mut GpuSample) {
        let Some(now) = metrics else {
            sample.activity = Reading::NOT_SUPPORTED;
            sample.throttle_reasons = Reading::NOT_SUPPORTED;
            sample.nvlink = Absent::new_absent(&Absence::NotSupported);
            return;
        };
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
        let reasons = throttle::find_reasons(now, shares.as_ref(), margin);
        // Even with two tables, the reasons are unknown if the counters have not changed, or if
        // several counters counted every sample.
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

/// Returns a field's highest element, over the package and all partitions.
pub(super) fn find_highest(metrics: Option<&Metrics>, field: Field) -> Result<f64, Absence> {
    let metrics = metrics.ok_or(Absence::NotSupported)?;
    let partitions = 0..metrics.partition_block_count();
    let of_partitions = partitions.flat_map(|number| metrics.get_partition(number, field));
    let all = metrics.get_all(field).into_iter().chain(of_partitions);
    all.flatten().reduce(f64::max).ok_or(Absence::NotSupported)
}

/// Returns the mean activity between two tables, in percent.
fn mean_activity(before: &Metrics, now: &Metrics) -> Option<f64> {
    let growth = |field| counter_growth(before.get_raw(field)?, now.get_raw(field)?);
    let samples = growth(Field::Samples).filter(|samples| *samples > 0.0)?;
    // The sum grows by at most 1 for each sample.
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
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
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
