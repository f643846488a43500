//! What the GPUs of a job did while it held them.

use std::{collections::BTreeMap, ops::Range};

use anyhow::anyhow;
use gpumon_history::{
    jobs::JobSpan,
    span::{ConditionSpan, HistorySpan},
};

use super::{
    super::{
        figures::Figures,
        meter::{METRICS, Meter, Point, find_series, overlapping_ms, throttled_percent, time_ms},
    },
    find::FoundJob,
};
use crate::{exit::Failure, past::PastArgs};

/// What history has of MIG devices, and what else is read of a GPU.
const MIG: [&str; 4] = [
    "mig.activity.sm_percent",
    "mig.activity.tensor_percent",
    "mig.memory.used_bytes",
    "mig.memory.total_bytes",
];
const TOTAL: &str = "memory.total_bytes";

/// The time of points before a day is a month old.
const SUMMED_UP_MS: u64 = 60_000;

/// Of so short a time, nothing may have been summed up.
const JUST_BEGUN_MS: u64 = 10_000;

/// One device of a job.
#[derive(Debug, Default)]
pub(crate) struct MeasuredDevice {
    pub(crate) uuid: String,
    /// The driver's; of a MIG device, among those of its GPU.
    pub(crate) index: u32,
    pub(crate) name: Option<String>,
    pub(crate) is_mig: bool,
    /// How long the job was there, and how much of that is known.
    pub(crate) held_ms: u64,
    pub(crate) known_ms: u64,
    pub(crate) figures: Figures,
    pub(crate) idle_percent: Option<f64>,
    pub(crate) memory_total_bytes: Option<f64>,
    /// What was the matter with it meanwhile, the first first.
    pub(crate) conditions: Vec<ConditionSpan>,
}

#[derive(Debug)]
pub(crate) struct Measured {
    /// By index.
    pub(crate) devices: Vec<MeasuredDevice>,
    pub(crate) all: Figures,
}

impl Measured {
    pub(crate) fn new(job: &FoundJob, past: &PastArgs) -> Result<Self, Failure> {
        let held = by_device(&job.spans);
        let metrics: Vec<_> = METRICS.into_iter().chain([TOTAL]).chain(MIG).collect();
        let mut accounts: BTreeMap<&str, (MeasuredDevice, Meter)> = BTreeMap::new();
        for range in merged(job.spans.iter().map(|span| span.from_ms..span.to_ms)) {
            // What is summed up begins before the moment in which it was first seen.
            let range = range.start.saturating_sub(SUMMED_UP_MS)..range.end + 1;
            add(&past.ask(&range, &metrics, None)?, &held, &mut accounts);
        }
        let mut devices: Vec<_> = held
            .iter()
            .map(|(uuid, held)| finish_device(uuid, held, accounts.remove(uuid)))
            .collect();
        if devices.iter().all(|device| device.known_ms == 0) {
            let (label, cure) = (&job.label, past.cure());
            let (from_ms, to_ms) = job.times_ms();
            if to_ms - from_ms < JUST_BEGUN_MS {
                return Err(anyhow!(
                    "{label}: it has held a GPU for a few seconds at most, without a reading yet; try again if it still runs"
                )
                .into());
            }
            return Err(anyhow!("{label}: history has no readings of its GPUs; {cure}").into());
        }
        devices.sort_by_key(|device| (device.is_mig, device.index));
        let all = Figures::of_all(&devices.iter().map(|device| &device.figures), None);
        Ok(Self { devices, all })
    }
}

/// When each device was held.
fn by_device(spans: &[JobSpan]) -> BTreeMap<&str, Vec<Range<u64>>> {
    let mut all: BTreeMap<&str, Vec<Range<u64>>> = BTreeMap::new();
    for span in spans {
        all.entry(&span.uuid)
            .or_default()
            .push(span.from_ms..span.to_ms);
    }
    all.into_iter()
        .map(|(uuid, ranges)| (uuid, merged(ranges.into_iter())))
        .collect()
}

/// Without overlap, the first first.
fn merged(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = ranges.collect();
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

fn add<'a>(
    span: &HistorySpan,
    held: &BTreeMap<&'a str, Vec<Range<u64>>>,
    measured: &mut BTreeMap<&'a str, (MeasuredDevice, Meter)>,
) {
    let gpus = span.gpus.iter().map(|gpu| (gpu, false));
    for (device, is_mig) in gpus.chain(span.mig_devices.iter().map(|mig| (mig, true))) {
        let Some((uuid, ranges)) = held.get_key_value(device.uuid.as_str()) else {
            continue;
        };
        let (known, meter) = measured.entry(uuid).or_default();
        (known.index, known.is_mig) = (device.index, is_mig);
        known.name = device.name.clone().or(known.name.take());
        meter.interrupt();
        for (place, at_ms) in span.times_ms.iter().enumerate() {
            let time_ms = time_ms(span, place);
            let held_ms: u64 = ranges
                .iter()
                .map(|range| overlapping_ms(range, &(*at_ms..at_ms + time_ms)))
                .sum();
            if held_ms == 0 {
                meter.interrupt();
                continue;
            }
            let mut point = Point::new(span, device, place);
            point.time_ms = point.time_ms.min(held_ms);
            meter.add(&point);
            let total = find_series(device, TOTAL).and_then(|series| series.values[place]);
            known.memory_total_bytes = total.or(known.memory_total_bytes);
        }
        let meanwhile = span.conditions.iter().filter(|condition| {
            let lasted = condition.from_ms..condition.to_ms.unwrap_or(span.to_ms);
            condition.uuid == **uuid
                && ranges
                    .iter()
                    .any(|range| overlapping_ms(range, &lasted) > 0)
        });
        for condition in meanwhile {
            if !known.conditions.contains(condition) {
                known.conditions.push(condition.clone());
            }
        }
    }
}

fn finish_device(
    uuid: &str,
    held: &[Range<u64>],
    measured: Option<(MeasuredDevice, Meter)>,
) -> MeasuredDevice {
    let (device, meter) = measured.unwrap_or_default();
    let held_ms: u64 = held.iter().map(|range| range.end - range.start).sum();
    let throttled =
        (held_ms > 0 && !device.is_mig).then(|| throttled_percent(&device.conditions, held));
    MeasuredDevice {
        uuid: uuid.to_owned(),
        held_ms,
        known_ms: meter.time_ms(),
        figures: meter.to_figures(throttled),
        idle_percent: meter.idle_percent(),
        ..device
    }
}

#[cfg(test)]
mod tests {
    use gpumon_history::span::{DeviceSpan, Series};

    use super::*;

    #[test]
    fn times_that_overlap_are_one() {
        assert_eq!(merged([5..9, 1..3, 2..4, 9..10].into_iter()), [1..4, 5..10]);
        assert_eq!(
            (
                overlapping_ms(&(0..5), &(3..9)),
                overlapping_ms(&(0..5), &(6..9))
            ),
            (2, 0)
        );
    }

    /// A minute of points of ten seconds, of which the GPU computed in the last three.
    fn minute() -> HistorySpan {
        let series = |values: [f64; 6]| {
            let values: Vec<_> = values.into_iter().map(Some).collect();
            Series {
                min: Some(values.clone()),
                max: Some(values.clone()),
                values,
            }
        };
        let metrics = [
            (
                "utilization.gpu_percent",
                series([0.0, 0.0, 0.0, 90.0, 90.0, 60.0]),
            ),
            (
                "power.draw_watts",
                series([100.0, 100.0, 100.0, 500.0, 500.0, 500.0]),
            ),
            (TOTAL, series([80.0; 6])),
        ];
        let metrics = metrics
            .map(|(name, series)| (name.to_owned(), series))
            .into();
        let gpu = DeviceSpan {
            uuid: "GPU-0".to_owned(),
            index: 3,
            metrics,
            ..DeviceSpan::default()
        };
        let times_ms = (0..6).map(|place| place * 10_000).collect();
        HistorySpan {
            to_ms: 60_000,
            resolution_ms: 10_000,
            times_ms,
            gpus: vec![gpu],
            ..HistorySpan::default()
        }
    }

    fn measured(ranges: &[Range<u64>]) -> MeasuredDevice {
        let held = BTreeMap::from([("GPU-0", ranges.to_vec())]);
        let mut accounts = BTreeMap::new();
        add(&minute(), &held, &mut accounts);
        finish_device("GPU-0", &held["GPU-0"], accounts.remove("GPU-0"))
    }

    #[test]
    fn a_gpu_is_measured_while_it_was_held_alone() {
        let all = measured(&[0..30_000, 30_000..60_000]);
        assert_eq!(
            (all.index, all.held_ms, all.known_ms, all.idle_percent),
            (3, 60_000, 60_000, Some(50.0))
        );
        assert_eq!(
            (all.figures.0[0], all.figures.0[1], all.figures.0[5]),
            (Some(40.0), Some(90.0), Some(18_000.0))
        );
        assert_eq!(all.memory_total_bytes, Some(80.0));
        let later = measured(&[30_000..40_000, 45_000..50_000]);
        assert_eq!(
            (later.held_ms, later.known_ms, later.idle_percent),
            (15_000, 15_000, Some(0.0))
        );
        assert_eq!(
            (later.figures.0[0], later.figures.0[5]),
            (Some(90.0), Some(7_500.0)),
            "half of a point is half its energy"
        );
        assert_eq!(measured(&[70_000..75_000, 75_000..80_000]).known_ms, 0);
    }
}
