//! Points on a time axis, each computed from the samples or buckets of its period.

use std::collections::BTreeMap;

use gpumon_probe::{
    model::fields::Kind,
    stat::{Stat, Window},
};

use crate::{
    bucket::{Device, get_or_insert},
    span::{
        DeviceKind, DeviceSpan, HistorySpan, Metric, MetricSelection, Series, round_to_four_digits,
    },
};

/// Returns the statistics of the values in `window` for a field of this kind, or `None` if the
/// window is empty.
pub(crate) fn field_stat(window: &Window, kind: Kind) -> Option<Stat> {
    match kind {
        Kind::Gauge => window.stat().map(|stat| Stat {
            min: round_to_four_digits(stat.min),
            mean: round_to_four_digits(stat.mean),
            max: round_to_four_digits(stat.max),
        }),
        Kind::Counter | Kind::State => window.last().map(Stat::from_value),
    }
}

/// The points of a span while they are being collected.
#[derive(Debug)]
pub struct Grid {
    from_ms: u64,
    to_ms: u64,
    /// The time that a point covers, in milliseconds. If 0, every sample is a point.
    step_ms: u64,
    times_ms: Vec<u64>,
    wanted: MetricSelection,
    /// The rows of each device by UUID, one map per kind of device.
    devices: [BTreeMap<String, MetricRows>; 3],
}

/// One row for each selected metric. A row can be shorter than the time axis.
type MetricRows = Vec<Vec<Window>>;

impl Grid {
    /// Creates an empty grid. With a `step_ms` of 0, each added time becomes a point.
    pub fn new(from_ms: u64, to_ms: u64, step_ms: u64, wanted: MetricSelection) -> Self {
        let from_ms = from_ms
            .checked_div(step_ms)
            .map_or(from_ms, |point| point * step_ms);
        Self {
            from_ms,
            to_ms,
            step_ms,
            times_ms: Vec::new(),
            wanted,
            devices: Default::default(),
        }
    }

    /// Returns the first time of the grid.
    pub fn from_ms(&self) -> u64 {
        self.from_ms
    }

    /// Returns the last time of the grid.
    pub fn to_ms(&self) -> u64 {
        self.to_ms
    }

    /// Returns the metrics that the grid collects.
    pub fn selection(&self) -> &MetricSelection {
        &self.wanted
    }

    /// Adds a device's values for the period that starts at `at_ms`, with their number of samples.
    /// `stats` has the order of the device's selected metrics. Values must be added in
    /// chronological order: those with an earlier time than the last one are ignored.
    pub fn add_values(
        &mut self,
        (device, uuid): (DeviceKind, &str),
        at_ms: u64,
        samples: u32,
        stats: impl Iterator<Item = Option<Stat>>,
    ) {
        if !(self.from_ms..=self.to_ms).contains(&at_ms) {
            return;
        }
        let time_ms = at_ms
            .checked_div(self.step_ms)
            .map_or(at_ms, |point| point * self.step_ms);
        match self.times_ms.last().copied() {
            Some(last) if last > time_ms => return,
            Some(last) if last == time_ms => {}
            // The points between the previous time and this one have no values.
            Some(last) if self.step_ms > 0 => {
                self.times_ms
                    .extend((last + self.step_ms..=time_ms).step_by(self.step_ms as usize));
            }
            _ => self.times_ms.push(time_ms),
        }
        let length = self.times_ms.len();
        let devices = &mut self.devices[device as usize];
        let rows = get_or_insert(devices, uuid, || {
            vec![Vec::new(); self.wanted.metrics_for(device).len()]
        });
        for (row, stat) in rows.iter_mut().zip(stats) {
            let Some(stat) = stat else { continue };
            row.resize(length, Window::default());
            row[length - 1].merge(stat, f64::from(samples.max(1)));
        }
    }

    /// Returns the collected points as a span. `known` returns a device's description by UUID.
    pub fn into_span(self, resolution_ms: u64, known: impl Fn(&str) -> Device) -> HistorySpan {
        let length = self.times_ms.len();
        let with_range = self.step_ms > 0;
        let [gpus, mig_devices, host] = self.devices;
        let spans = |devices: BTreeMap<String, MetricRows>, kind: DeviceKind| {
            let span = |(uuid, rows): (String, MetricRows)| {
                let Device {
                    index,
                    name,
                    parent,
                    ..
                } = known(&uuid);
                let metrics =
                    metric_series(self.wanted.metrics_for(kind), rows, length, with_range);
                DeviceSpan {
                    uuid,
                    index,
                    name,
                    parent,
                    metrics: metrics.collect(),
                }
            };
            let spans = devices.into_iter().map(span);
            spans
                .filter(|device| !device.metrics.is_empty())
                .collect::<Vec<_>>()
        };
        let mut gpus = spans(gpus, DeviceKind::Gpu);
        gpus.sort_by_key(|gpu| gpu.index);
        let host = spans(host, DeviceKind::Host).pop();
        HistorySpan {
            from_ms: self.from_ms,
            to_ms: self.to_ms,
            resolution_ms,
            times_ms: self.times_ms,
            gpus,
            mig_devices: spans(mig_devices, DeviceKind::Mig),
            host: host.map_or_else(BTreeMap::new, |host| host.metrics),
            ..HistorySpan::default()
        }
    }
}

/// Returns the series of the metrics that have values.
fn metric_series(
    metrics: &[&'static Metric],
    rows: MetricRows,
    length: usize,
    with_range: bool,
) -> impl Iterator<Item = (String, Series)> {
    let rows = metrics.iter().zip(rows).filter(|(_, row)| !row.is_empty());
    rows.map(move |(metric, mut row)| {
        row.resize(length, Window::default());
        let stats: Vec<_> = row
            .iter()
            .map(|window| field_stat(window, metric.kind))
            .collect();
        let of = |part: fn(Stat) -> f64| stats.iter().map(|stat| stat.map(part)).collect();
        let range =
            |part: fn(Stat) -> f64| (with_range && metric.kind == Kind::Gauge).then(|| of(part));
        (
            metric.id.to_string(),
            Series {
                values: of(|stat| stat.mean),
                min: range(|stat| stat.min),
                max: range(|stat| stat.max),
            },
        )
    })
}
