//! Points on a time axis, each made of whatever lies in its time: samples, or buckets of them.

use std::collections::BTreeMap;

use gpumon_probe::model::fields::{Field, Kind};

use crate::{
    bucket::Device,
    span::{DeviceSpan, HistorySpan, Series},
    wanted::{Wanted, mig_id, rounded},
};

/// What one field did in some time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stat {
    /// The mean of a gauge, the last of a counter or a state.
    pub value: f64,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Stat {
    /// Of one reading.
    pub fn of(value: f64) -> Self {
        Self {
            value,
            min: value,
            max: value,
        }
    }
}

/// Sums up what a field did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Total {
    sum: f64,
    weight: f64,
    last: f64,
    min: f64,
    max: f64,
}

impl Total {
    /// Adds what it did in a time with so many samples, later than all that was added before.
    pub(crate) fn add(&mut self, stat: Stat, samples: u32) {
        if self.weight == 0.0 {
            (self.min, self.max) = (stat.min, stat.max);
        }
        let weight = f64::from(samples.max(1));
        self.sum += stat.value * weight;
        self.weight += weight;
        self.last = stat.value;
        (self.min, self.max) = (self.min.min(stat.min), self.max.max(stat.max));
    }

    /// All of it; `None` where nothing was added.
    pub(crate) fn stat(&self, kind: Kind) -> Option<Stat> {
        (self.weight > 0.0).then(|| match kind {
            Kind::Gauge => Stat {
                value: rounded(self.sum / self.weight),
                min: rounded(self.min),
                max: rounded(self.max),
            },
            Kind::Counter | Kind::State => Stat::of(self.last),
        })
    }
}

/// Whose values they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose<'a> {
    /// A GPU's, by its UUID.
    Gpu(&'a str),
    /// A MIG device's, by its UUID.
    Mig(&'a str),
    /// The machine's.
    Host,
}

/// The points of a span, while they are collected.
#[derive(Debug)]
pub struct Grid {
    from_ms: u64,
    to_ms: u64,
    /// The time of a point; 0 stands for the samples as they are.
    step_ms: u64,
    times_ms: Vec<u64>,
    wanted: Wanted,
    gpus: BTreeMap<String, Rows>,
    mig_devices: BTreeMap<String, Rows>,
    host: Rows,
}

/// One for each wanted field, each as long as the time axis or shorter.
type Rows = Vec<Vec<Total>>;

impl Grid {
    /// Of points so long, from one moment to another. With a length of 0, each time that comes is a point.
    pub fn new(from_ms: u64, to_ms: u64, step_ms: u64, wanted: Wanted) -> Self {
        let from_ms = from_ms
            .checked_div(step_ms)
            .map_or(from_ms, |point| point * step_ms);
        let host = vec![Vec::new(); wanted.host.len()];
        let (gpus, mig_devices, times_ms) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self {
            from_ms,
            to_ms,
            step_ms,
            times_ms,
            wanted,
            gpus,
            mig_devices,
            host,
        }
    }

    /// The first moment that belongs to it.
    pub fn from_ms(&self) -> u64 {
        self.from_ms
    }

    /// The last.
    pub fn to_ms(&self) -> u64 {
        self.to_ms
    }

    /// What is collected.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Adds what somebody's fields did in the time that begins then, in which there were so many samples: `stats` has them
    /// in the order of those that are wanted of it. Times come in their order; earlier ones are ignored.
    pub fn add(
        &mut self,
        whose: Whose<'_>,
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
            // What is between the two is a gap.
            Some(last) if self.step_ms > 0 => {
                self.times_ms
                    .extend((last + self.step_ms..=time_ms).step_by(self.step_ms as usize));
            }
            _ => self.times_ms.push(time_ms),
        }
        let length = self.times_ms.len();
        let (rows, count) = match whose {
            Whose::Gpu(uuid) => (rows_of(&mut self.gpus, uuid), self.wanted.metrics.len()),
            Whose::Mig(uuid) => (rows_of(&mut self.mig_devices, uuid), self.wanted.mig.len()),
            Whose::Host => (&mut self.host, self.wanted.host.len()),
        };
        rows.resize_with(count, Vec::new);
        for (row, stat) in rows.iter_mut().zip(stats) {
            let Some(stat) = stat else { continue };
            row.resize(length, Total::default());
            row[length - 1].add(stat, samples);
        }
    }

    /// All that was collected. `known` says what is known of a device.
    pub fn into_span(self, resolution_ms: u64, known: impl Fn(&str) -> Device) -> HistorySpan {
        let (length, with_range) = (self.times_ms.len(), self.step_ms > 0);
        let device =
            |(uuid, rows): (String, Rows), fields: &[&'static Field], id: fn(&str) -> String| {
                let Device {
                    index,
                    name,
                    parent,
                    ..
                } = known(&uuid);
                let metrics = series(fields, rows, length, with_range)
                    .map(|(field, series)| (id(field), series))
                    .collect();
                DeviceSpan {
                    uuid,
                    index,
                    name,
                    parent,
                    metrics,
                }
            };
        let Self {
            from_ms,
            to_ms,
            times_ms,
            wanted,
            gpus,
            mig_devices,
            host,
            ..
        } = self;
        let gpus = gpus
            .into_iter()
            .map(|gpu| device(gpu, &wanted.metrics, str::to_owned));
        let mig_devices = mig_devices
            .into_iter()
            .map(|mig| device(mig, &wanted.mig, mig_id));
        let has_values = |device: &DeviceSpan| !device.metrics.is_empty();
        let mut gpus: Vec<_> = gpus.filter(has_values).collect();
        gpus.sort_by_key(|gpu| gpu.index);
        let host = series(&wanted.host, host, length, with_range)
            .map(|(id, series)| (id.to_owned(), series));
        HistorySpan {
            from_ms,
            to_ms,
            resolution_ms,
            times_ms,
            gpus,
            mig_devices: mig_devices.filter(has_values).collect(),
            host: host.collect(),
            ..HistorySpan::default()
        }
    }
}

fn rows_of<'a>(devices: &'a mut BTreeMap<String, Rows>, uuid: &str) -> &'a mut Rows {
    if !devices.contains_key(uuid) {
        devices.insert(uuid.to_owned(), Vec::new());
    }
    devices.get_mut(uuid).expect("it has just been put there")
}

/// What the fields that have a value did.
fn series<S>(
    fields: &[&'static Field<S>],
    rows: Rows,
    length: usize,
    with_range: bool,
) -> impl Iterator<Item = (&'static str, Series)> {
    let rows = fields.iter().zip(rows).filter(|(_, row)| !row.is_empty());
    rows.map(move |(field, mut row)| {
        row.resize(length, Total::default());
        let stats: Vec<_> = row.iter().map(|total| total.stat(field.kind)).collect();
        let of = |part: fn(Stat) -> f64| stats.iter().map(|stat| stat.map(part)).collect();
        let range =
            |part: fn(Stat) -> f64| (with_range && field.kind == Kind::Gauge).then(|| of(part));
        (
            field.id,
            Series {
                values: of(|stat| stat.value),
                min: range(|stat| stat.min),
                max: range(|stat| stat.max),
            },
        )
    })
}
