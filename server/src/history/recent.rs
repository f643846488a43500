//! The last minutes as sampled.

use std::collections::{BTreeMap, VecDeque};

use gpumon_history::{
    grid::{Grid, Stat, Whose},
    span::HistorySpan,
    wanted::{Wanted, mig_id, places},
};
use gpumon_probe::model::{
    GpuSample, HostSample, Sample,
    fields::{Field, GPU_FIELDS, HOST_FIELDS, Unwatched},
};

use super::{DEPTH_MS, column::Column, holders::Holders};
use crate::frame::{GpuHistory, History};

/// A faster stream leaves one sample per this time, so that the depth and the size stay the same.
const SPACING_MS: u64 = 900;

/// One column per GPU and field, and per field of the machine, over one common time axis.
#[derive(Debug, Default)]
pub(crate) struct RecentSamples {
    times_ms: VecDeque<u64>,
    /// So many of the first are no samples, but what an earlier process has left of ten seconds each.
    means: usize,
    gpus: BTreeMap<String, GpuColumns>,
    mig_devices: BTreeMap<String, Columns>,
    host: Columns,
}

#[derive(Debug, Default)]
struct GpuColumns {
    metrics: Columns,
    holders: Holders,
}

/// A column for each field of a catalogue, in its order; none where there was no value.
#[derive(Debug, Default)]
struct Columns {
    columns: Vec<Option<Column>>,
    /// For how many places each field has not been read.
    waiting: Vec<usize>,
}

impl RecentSamples {
    /// Adds a sample, unless it follows the one before too closely, and forgets what is too old.
    pub(crate) fn push(&mut self, sample: &Sample) {
        self.drop_after(sample.at_ms);
        if self
            .times_ms
            .back()
            .is_some_and(|last| sample.at_ms.saturating_sub(*last) < SPACING_MS)
        {
            return;
        }
        let since_ms = self.times_ms.back().copied().unwrap_or(sample.at_ms);
        self.times_ms.push_back(sample.at_ms);
        self.columns().for_each(Column::push_newest);
        let length = self.times_ms.len();
        let of_host = |field: &Field<HostSample>| {
            let (value, is_new) = field.access.value_since(&sample.host, since_ms)?;
            Some((value, is_new && sample.host.at_ms > since_ms))
        };
        self.host.set_newest(HOST_FIELDS, of_host, length);
        for gpu in &sample.gpus {
            // What a hung GPU shows is its past, which is in the history already.
            if gpu.at_ms + 2 * u64::from(sample.interval_ms) >= sample.at_ms {
                self.set_newest(gpu, since_ms);
            }
        }
        self.drop_before(sample.at_ms.saturating_sub(DEPTH_MS));
    }

    /// Puts points of a span before what it knows, each in the middle of its time.
    pub(crate) fn restore(&mut self, span: &HistorySpan) {
        let first_ms = self.times_ms.front().copied().unwrap_or(u64::MAX);
        let times = span
            .times_ms
            .iter()
            .map(|begin_ms| begin_ms + span.resolution_ms / 2);
        let earlier = times
            .enumerate()
            .filter(|(_, at_ms)| *at_ms < first_ms)
            .collect::<Vec<_>>();
        self.means += earlier.len();
        for (place, at_ms) in earlier.into_iter().rev() {
            self.times_ms.push_front(at_ms);
            self.columns().for_each(Column::push_oldest);
            let length = self.times_ms.len();
            for gpu in &span.gpus {
                let columns = &mut self.gpus.entry(gpu.uuid.clone()).or_default().metrics;
                columns.set_oldest(
                    GPU_FIELDS,
                    |field| *gpu.metrics.get(field.id)?.values.get(place)?,
                    length,
                );
            }
            for mig in &span.mig_devices {
                let columns = self.mig_devices.entry(mig.uuid.clone()).or_default();
                let read =
                    |field: &Field| *mig.metrics.get(&mig_id(field.id))?.values.get(place)?;
                columns.set_oldest(GPU_FIELDS, read, length);
            }
            self.host.set_oldest(
                HOST_FIELDS,
                |field| *span.host.get(field.id)?.values.get(place)?,
                length,
            );
        }
    }

    fn set_newest(&mut self, gpu: &GpuSample, since_ms: u64) {
        let Some(uuid) = &gpu.uuid else { return };
        let length = self.times_ms.len();
        let columns = self.gpus.entry(uuid.clone()).or_default();
        columns.metrics.set_newest(
            GPU_FIELDS,
            |field| field.access.value_since(gpu, since_ms),
            length,
        );
        columns
            .holders
            .set_newest(gpu.processes.value().map_or(&[], Vec::as_slice), length);
        for device in gpu.mig_devices.value().into_iter().flatten() {
            let columns = self.mig_devices.entry(device.uuid.clone()).or_default();
            columns.set_newest(
                GPU_FIELDS,
                |field| field.mig?.value_since(device, since_ms),
                length,
            );
        }
    }

    /// A clock that was set back makes some of the past a future, which would keep everything else out.
    fn drop_after(&mut self, newest_ms: u64) {
        let known = self
            .times_ms
            .iter()
            .take_while(|time| **time <= newest_ms)
            .count();
        self.times_ms.truncate(known);
        self.means = self.means.min(known);
        self.columns().for_each(|column| column.truncate(known));
    }

    fn drop_before(&mut self, oldest_ms: u64) {
        let old = self
            .times_ms
            .iter()
            .take_while(|time| **time < oldest_ms)
            .count();
        self.times_ms.drain(..old);
        self.means = self.means.saturating_sub(old);
        self.columns().for_each(|column| column.forget(old));
        self.gpus.retain(|_, columns| columns.metrics.prune());
        self.gpus
            .values_mut()
            .for_each(|columns| columns.holders.prune());
        self.mig_devices.retain(|_, columns| columns.prune());
    }

    fn columns(&mut self) -> impl Iterator<Item = &mut Column> {
        let gpus = self.gpus.values_mut();
        let of_gpus = gpus.flat_map(|GpuColumns { metrics, holders }| {
            metrics.values_mut().chain(holders.columns())
        });
        of_gpus
            .chain(self.mig_devices.values_mut().flat_map(Columns::values_mut))
            .chain(self.host.values_mut())
    }

    /// What is wanted, as far back as `reach_ms` before the newest sample.
    pub(crate) fn newest(&self, reach_ms: u64, wanted: &Wanted) -> History {
        let oldest_ms = self
            .times_ms
            .back()
            .map_or(0, |newest| newest.saturating_sub(reach_ms));
        let old = self.times_ms.partition_point(|time| *time < oldest_ms);
        let of_gpu = |(uuid, columns): (&String, &GpuColumns)| GpuHistory {
            uuid: uuid.clone(),
            metrics: columns
                .metrics
                .chosen(GPU_FIELDS, &wanted.metrics, old)
                .collect(),
            holders: if wanted.holders {
                columns.holders.newest(old)
            } else {
                Vec::new()
            },
        };
        let of_device = |(uuid, columns): (&String, &Columns)| GpuHistory {
            uuid: uuid.clone(),
            metrics: columns
                .chosen(GPU_FIELDS, &wanted.mig, old)
                .map(|(id, values)| (mig_id(&id), values))
                .collect(),
            holders: Vec::new(),
        };
        let has_gpus = !wanted.metrics.is_empty() || wanted.holders;
        History {
            times_ms: self.times_ms.range(old..).copied().collect(),
            means: self.means.saturating_sub(old),
            gpus: if has_gpus {
                self.gpus.iter().map(of_gpu).collect()
            } else {
                Vec::new()
            },
            mig_devices: if wanted.mig.is_empty() {
                Vec::new()
            } else {
                self.mig_devices.iter().map(of_device).collect()
            },
            host: self.host.chosen(HOST_FIELDS, &wanted.host, old).collect(),
        }
    }

    /// The first and the last moment that was sampled.
    pub(crate) fn reach_ms(&self) -> Option<(u64, u64)> {
        Some((*self.times_ms.get(self.means)?, *self.times_ms.back()?))
    }

    /// The time between two samples, as it was last.
    pub(crate) fn spacing_ms(&self) -> u64 {
        let mut newest = self.times_ms.range(self.means..).rev();
        let last = newest
            .next()
            .zip(newest.next())
            .map_or(0, |(newest, before)| newest.saturating_sub(*before));
        ((last + 500) / 1000 * 1000).clamp(1000, 60_000)
    }

    /// Puts what was sampled from a moment on into a grid.
    pub(crate) fn add_to(&self, grid: &mut Grid, from_ms: u64) {
        let old = self
            .times_ms
            .partition_point(|time| *time < from_ms.max(grid.from_ms()))
            .max(self.means);
        let wanted = grid.wanted().clone();
        let (of_gpu, of_mig) = (
            places(GPU_FIELDS, &wanted.metrics),
            places(GPU_FIELDS, &wanted.mig),
        );
        let of_host = places(HOST_FIELDS, &wanted.host);
        for (place, at_ms) in self.times_ms.iter().enumerate().skip(old) {
            for (uuid, columns) in self.gpus.iter().filter(|_| !wanted.metrics.is_empty()) {
                grid.add(
                    Whose::Gpu(uuid),
                    *at_ms,
                    1,
                    columns.metrics.at(&of_gpu, place),
                );
            }
            for (uuid, columns) in self.mig_devices.iter().filter(|_| !wanted.mig.is_empty()) {
                grid.add(Whose::Mig(uuid), *at_ms, 1, columns.at(&of_mig, place));
            }
            grid.add(Whose::Host, *at_ms, 1, self.host.at(&of_host, place));
        }
    }
}

impl Columns {
    /// Sets the newest place of columns that are so long to each field's value, which may not be new. What is an average
    /// since it was read before is put into all places of that time.
    fn set_newest<S>(
        &mut self,
        fields: &[Field<S>],
        read: impl Fn(&Field<S>) -> Option<(f64, bool)>,
        length: usize,
    ) {
        self.columns.resize(fields.len(), None);
        self.waiting.resize(fields.len(), 0);
        for ((column, waiting), field) in self.columns.iter_mut().zip(&mut self.waiting).zip(fields)
        {
            let Some((value, is_new)) = read(field) else {
                *waiting = 0;
                continue;
            };
            let behind = if is_new { std::mem::take(waiting) } else { 0 };
            let places = if field.unwatched == Unwatched::Averaged {
                1 + behind
            } else {
                1
            };
            column
                .get_or_insert_with(|| Column::new(field.kind, length))
                .set_newest(value, places);
            *waiting += usize::from(!is_new);
        }
    }

    /// Sets the oldest place of columns that are so long, where there is a value.
    fn set_oldest<S>(
        &mut self,
        fields: &[Field<S>],
        read: impl Fn(&Field<S>) -> Option<f64>,
        length: usize,
    ) {
        self.columns.resize(fields.len(), None);
        for (column, field) in self.columns.iter_mut().zip(fields) {
            let Some(value) = read(field) else { continue };
            column
                .get_or_insert_with(|| Column::new(field.kind, length))
                .set_oldest(value);
        }
    }

    /// Forgets columns without values; whether there are others.
    fn prune(&mut self) -> bool {
        for column in &mut self.columns {
            column.take_if(|column| column.is_empty());
        }
        self.columns.iter().any(Option::is_some)
    }

    /// Those of these fields, from the place `old` on.
    fn chosen<S>(
        &self,
        fields: &[Field<S>],
        wanted: &[&Field<S>],
        old: usize,
    ) -> impl Iterator<Item = (String, Vec<Option<f32>>)> {
        let columns = fields
            .iter()
            .zip(&self.columns)
            .filter_map(|(field, column)| Some((field.id, column.as_ref()?)));
        let chosen = columns.filter(|(id, _)| wanted.iter().any(|field| field.id == *id));
        chosen.map(move |(id, column)| (id.to_owned(), column.charted(old)))
    }

    /// The values of the fields at these places of the catalogue, at a place of the time axis.
    fn at(&self, fields: &[usize], place: usize) -> impl Iterator<Item = Option<Stat>> {
        fields
            .iter()
            .map(move |field| self.columns.get(*field)?.as_ref()?.get(place).map(Stat::of))
    }

    fn values_mut(&mut self) -> impl Iterator<Item = &mut Column> {
        self.columns.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests;
