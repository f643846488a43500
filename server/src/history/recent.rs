//! The samples of the last minutes.

use std::collections::BTreeMap;

use gpumon_history::{
    grid::Grid,
    span::{DeviceKind, HistorySpan, Metric, MetricSelection, round_to_four_digits},
    timeline::{Column, TimePoint, Timeline},
};
use gpumon_probe::{
    model::{
        GpuSample, HostSample, Sample,
        fields::{Field, GPU_FIELDS, HOST_FIELDS, Kind, Unwatched},
    },
    stat::Stat,
};

use super::{RETENTION_MS, holders::Holders};
use crate::frame::{GpuHistory, History};

/// The minimum time between two stored samples in milliseconds. Samples that arrive sooner are
/// skipped, so that a short sampling interval does not change the length and size of the history.
const SPACING_MS: u64 = 900;

/// The fields of all devices, with a common time axis.
#[derive(Debug, Default)]
pub(crate) struct RecentSamples {
    /// The time axis and the values. A time point is a sample if its `reach_ms` is 0. The first
    /// time points can instead be means from an earlier process.
    timeline: Timeline<LineKey>,
    devices: [BTreeMap<String, RecentDevice>; 3],
    /// The number of devices seen so far.
    count: usize,
}

#[derive(Debug)]
struct RecentDevice {
    number: usize,
    /// The processes that hold the GPU's memory.
    holders: Holders,
}

/// A device's number, and the kind of the line.
pub(super) type LineKey = (usize, LineKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LineKind {
    /// The field at this position in the catalog.
    Field(usize),
    /// The memory of the holder with this number.
    Holder(usize),
}

impl RecentSamples {
    /// Adds a sample, unless it is too close to the previous one, and removes old samples.
    pub(crate) fn push(&mut self, sample: &Sample) {
        self.timeline.drop_after(sample.at_ms);
        let newest_ms = self.timeline.newest_ms();
        if newest_ms.is_some_and(|last| sample.at_ms.saturating_sub(last) < SPACING_MS) {
            return;
        }
        let since_ms = newest_ms.unwrap_or(sample.at_ms);
        self.timeline.push(TimePoint {
            at_ms: sample.at_ms,
            reach_ms: 0,
        });
        let of_host = |field: &Field<HostSample>| {
            let (value, is_new) = field.access.value_and_freshness(&sample.host, since_ms)?;
            Some((value, is_new && sample.host.at_ms > since_ms))
        };
        self.set_newest_values(DeviceKind::Host, "", HOST_FIELDS, of_host);
        for gpu in &sample.gpus {
            // A hanging GPU's last readings are repeated in later samples. They were already added.
            if gpu.at_ms + 2 * u64::from(sample.interval_ms) >= sample.at_ms {
                self.set_newest_of_gpu(gpu, since_ms);
            }
        }
        self.timeline
            .drop_before(sample.at_ms.saturating_sub(RETENTION_MS));
        for devices in &mut self.devices {
            devices.retain(|_, device| {
                device
                    .holders
                    .remove_holders_without_values(&self.timeline, device.number);
                let ends = [LineKind::Field(0), LineKind::Holder(usize::MAX)];
                let [first, last] = ends.map(|item| (device.number, item));
                self.timeline.columns(first..=last).next().is_some()
            });
        }
    }

    /// Adds the points of a span before the existing points. Each is added at the middle of its
    /// time range.
    pub(crate) fn restore(&mut self, span: &HistorySpan) {
        let first_ms = self.timeline.oldest_ms().unwrap_or(u64::MAX);
        let times = span.times_ms.iter().enumerate();
        let times = times.map(|(place, begin_ms)| (place, begin_ms + span.resolution_ms / 2));
        for (place, at_ms) in times.rev().filter(|(_, at_ms)| *at_ms < first_ms) {
            self.timeline.push_oldest(TimePoint {
                at_ms,
                reach_ms: span.resolution_ms,
            });
            for part in span.parts() {
                let uuid = part.device.map_or("", |device| &*device.uuid);
                let number = self.add_device(part.kind, uuid).number;
                for metric in part.kind.metrics() {
                    let series = part.metrics.get(&*metric.id);
                    if let Some(value) = series.and_then(|series| *series.values.get(place)?) {
                        let line = (number, LineKind::Field(metric.place));
                        let column = self.timeline.column_or_new(line, metric.kind);
                        column.set(0, round_gauge(metric.kind, value));
                    }
                }
            }
        }
    }

    fn set_newest_of_gpu(&mut self, gpu: &GpuSample, since_ms: u64) {
        let Some(uuid) = &gpu.uuid else { return };
        self.set_newest_values(DeviceKind::Gpu, uuid, GPU_FIELDS, |field| {
            field.access.value_and_freshness(gpu, since_ms)
        });
        let processes = gpu.processes.value().map_or(&[][..], Vec::as_slice);
        let holders = self.devices[DeviceKind::Gpu as usize].get_mut(uuid);
        if let Some(RecentDevice { number, holders }) = holders {
            holders.set_newest_values(processes, &mut self.timeline, *number);
        }
        for device in gpu.mig_devices.value().into_iter().flatten() {
            self.set_newest_values(DeviceKind::Mig, &device.uuid, GPU_FIELDS, |field| {
                field.mig?.value_and_freshness(device, since_ms)
            });
        }
    }

    /// Sets the newest values of a device. `read` returns a field's value and whether it is new.
    fn set_newest_values<S>(
        &mut self,
        device: DeviceKind,
        uuid: &str,
        fields: &[Field<S>],
        read: impl Fn(&Field<S>) -> Option<(f64, bool)>,
    ) {
        let number = self.add_device(device, uuid).number;
        for (place, field) in fields.iter().enumerate() {
            let line = (number, LineKind::Field(place));
            if let Some((value, is_new)) = read(field) {
                let is_average = field.unwatched == Unwatched::Averaged;
                let column = self.timeline.column_or_new(line, field.kind);
                column.record_reading(round_gauge(field.kind, value), is_new, is_average);
            } else if let Some(column) = self.timeline.column_mut(&line) {
                column.record_gap();
            }
        }
    }

    fn add_device(&mut self, device: DeviceKind, uuid: &str) -> &RecentDevice {
        let devices = &mut self.devices[device as usize];
        if !devices.contains_key(uuid) {
            self.count += 1;
            let device = RecentDevice {
                number: self.count,
                holders: Holders::default(),
            };
            devices.insert(uuid.to_owned(), device);
        }
        &devices[uuid]
    }

    /// Returns the metrics selected by `wanted` for the last `reach_ms`.
    pub(crate) fn recent_history(&self, reach_ms: u64, wanted: &MetricSelection) -> History {
        let newest_ms = self.timeline.newest_ms().unwrap_or(0);
        let old = self
            .timeline
            .find_position(newest_ms.saturating_sub(reach_ms));
        let moments = || self.timeline.time_points().range(old..);
        let metrics = |kind: DeviceKind, device: &RecentDevice| {
            let column = |metric: &&Metric| {
                let line = (device.number, LineKind::Field(metric.place));
                let values = chart_values(self.timeline.find_column(&line)?, old);
                Some((metric.id.to_string(), values))
            };
            wanted.metrics_for(kind).iter().filter_map(column).collect()
        };
        let devices = |kind: DeviceKind, is_wanted: bool| {
            let devices = self.devices[kind as usize].iter().filter(|_| is_wanted);
            let history = |(uuid, device): (&String, &RecentDevice)| GpuHistory {
                uuid: uuid.clone(),
                metrics: metrics(kind, device),
                holders: if wanted.holders {
                    let RecentDevice { number, holders } = device;
                    holders.list_histories(&self.timeline, *number, old)
                } else {
                    Vec::new()
                },
            };
            devices.map(history).collect()
        };
        let is_wanted = |device| !wanted.metrics_for(device).is_empty();
        History {
            times_ms: moments().map(|moment| moment.at_ms).collect(),
            means: moments().take_while(|moment| moment.reach_ms > 0).count(),
            gpus: devices(
                DeviceKind::Gpu,
                wanted.holders || is_wanted(DeviceKind::Gpu),
            ),
            mig_devices: devices(DeviceKind::Mig, is_wanted(DeviceKind::Mig)),
            host: self.devices[DeviceKind::Host as usize]
                .values()
                .flat_map(|host| metrics(DeviceKind::Host, host))
                .collect(),
        }
    }

    /// Returns the number of leading time points that are means instead of samples.
    fn count_restored_means(&self) -> usize {
        self.timeline
            .time_points()
            .partition_point(|moment| moment.reach_ms > 0)
    }

    /// Returns the times of the first and last sample.
    pub(crate) fn time_range_ms(&self) -> Option<(u64, u64)> {
        let first = self
            .timeline
            .time_points()
            .get(self.count_restored_means())?;
        Some((first.at_ms, self.timeline.newest_ms()?))
    }

    /// Returns the time between the last two samples in milliseconds, rounded to whole seconds.
    pub(crate) fn sample_spacing_ms(&self) -> u64 {
        let mut newest = self
            .timeline
            .time_points()
            .range(self.count_restored_means()..)
            .rev();
        let last = newest
            .next()
            .zip(newest.next())
            .map_or(0, |(newest, before)| {
                newest.at_ms.saturating_sub(before.at_ms)
            });
        ((last + 500) / 1000 * 1000).clamp(1000, 60_000)
    }

    /// Adds the samples since `from_ms` to a grid.
    pub(crate) fn add_to_grid(&self, grid: &mut Grid, from_ms: u64) {
        let old = self.timeline.find_position(from_ms.max(grid.from_ms()));
        let wanted = grid.selection().clone();
        let known = DeviceKind::ALL.into_iter().flat_map(|kind| {
            let is_wanted = kind == DeviceKind::Host || !wanted.metrics_for(kind).is_empty();
            let devices = self.devices[kind as usize].iter();
            devices.filter_map(move |(uuid, device)| is_wanted.then_some((kind, uuid, device)))
        });
        let columns = |(kind, uuid, device): (DeviceKind, _, &RecentDevice)| {
            let metrics = wanted.metrics_for(kind).iter();
            let lines = metrics.map(|metric| (device.number, LineKind::Field(metric.place)));
            let columns = lines.map(|line| self.timeline.find_column(&line));
            (kind, uuid, columns.collect::<Vec<_>>())
        };
        let devices: Vec<(_, &String, _)> = known.map(columns).collect();
        let moments = self.timeline.time_points().iter().enumerate();
        for (place, moment) in moments.skip(old.max(self.count_restored_means())) {
            for (kind, uuid, columns) in &devices {
                let stats = columns.iter().map(|column| {
                    column
                        .and_then(|column| column.value_at(place))
                        .map(Stat::from_value)
                });
                grid.add_values((*kind, uuid), moment.at_ms, 1, stats);
            }
        }
    }
}

/// Rounds a gauge's or state's value for charts. Counters are not rounded.
pub(super) fn round_gauge(kind: Kind, value: f64) -> f64 {
    match kind {
        Kind::Counter => value,
        Kind::Gauge | Kind::State => round_to_four_digits(value),
    }
}

/// Returns the values of a column for charts, starting at the position `from`.
pub(super) fn chart_values(column: &Column, from: usize) -> Vec<Option<f32>> {
    let values = column.values(from);
    values
        .map(|value| value.map(|value| value as f32))
        .collect()
}

#[cfg(test)]
mod tests;
