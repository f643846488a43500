//! The recent past, for clients that come late.

mod holders;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gpumon_probe::model::{
    GpuSample, HostSample, MigSample, Sample,
    fields::{Access, Field, GPU_FIELDS, HOST_FIELDS, charted, overview},
};

use self::holders::Holders;
use crate::frame::{GpuHistory, History};

/// How far back it reaches.
pub(crate) const DEPTH_MS: u64 = 5 * 60 * 1000;

/// A faster stream leaves one sample per this time, so that the depth and the size stay the same.
const SPACING_MS: u64 = 900;

/// Charts show no more digits. The rest is noise, which would be a third of what a new client gets.
const DIGITS: i32 = 4;

/// Stands for what each holder has of a GPU's memory, among the metrics that may be asked for.
const HOLDERS: &str = "processes.memory_bytes";

/// Stands before the name of a metric where it is of MIG devices.
const MIG: &str = "mig.";

/// What of the past somebody wants.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) metrics: Vec<&'static Field>,
    host: Vec<&'static Field<HostSample>>,
    mig: Vec<&'static Field>,
    holders: bool,
}

/// One column per GPU and metric, and per metric of the machine, over one common time axis.
#[derive(Debug)]
pub(crate) struct HistoryStore {
    times_ms: VecDeque<u64>,
    gpus: BTreeMap<String, GpuColumns>,
    mig_devices: BTreeMap<String, Columns>,
    host: Columns,
}

#[derive(Debug)]
struct GpuColumns {
    metrics: Columns,
    holders: Holders,
}

/// A column for each charted field, by its id, as long as the time axis. What was absent is NaN.
#[derive(Debug)]
struct Columns(Vec<(&'static str, VecDeque<f64>)>);

impl Wanted {
    pub(crate) fn overview() -> Self {
        Self::metrics(overview().collect())
    }

    pub(crate) fn of_gpus() -> Self {
        Self::metrics(charted(GPU_FIELDS).collect())
    }

    fn metrics(metrics: Vec<&'static Field>) -> Self {
        Self { metrics, host: Vec::new(), mig: Vec::new(), holders: false }
    }

    /// Their names, each once and in one order, however they were asked for.
    pub(crate) fn ids(&self) -> Vec<String> {
        let of_gpus = self.metrics.iter().map(|field| field.id.to_owned());
        let of_mig = self.mig.iter().map(|field| mig_id(field.id));
        let of_host = self.host.iter().map(|field| field.id.to_owned());
        let holders = self.holders.then(|| HOLDERS.to_owned());
        let ids: BTreeSet<_> = of_gpus.chain(of_mig).chain(of_host).chain(holders).collect();
        ids.into_iter().collect()
    }

    /// The metrics of these names, or what is wrong with one.
    pub(crate) fn named<'a>(ids: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut wanted = Self::metrics(Vec::new());
        for id in ids {
            if let Some(field) = charted(GPU_FIELDS).find(|field| field.id == id) {
                wanted.metrics.push(field);
            } else if let Some(field) = charted(HOST_FIELDS).find(|field| field.id == id) {
                wanted.host.push(field);
            } else if let Some((field, _)) = of_mig().find(|(field, _)| id.strip_prefix(MIG) == Some(field.id)) {
                wanted.mig.push(field);
            } else if id == HOLDERS {
                wanted.holders = true;
            } else {
                let (host, mig) = (charted(HOST_FIELDS).collect(), of_mig().map(|(field, _)| field).collect());
                let all = Self { host, mig, holders: true, ..Self::of_gpus() };
                return Err(format!("unknown metric '{id}'; there are {}", all.ids().join(", ")));
            }
        }
        Ok(wanted)
    }
}

impl Default for HistoryStore {
    fn default() -> Self {
        let host = Columns::of(charted(HOST_FIELDS).map(|field| field.id), 0);
        Self { times_ms: VecDeque::new(), gpus: BTreeMap::new(), mig_devices: BTreeMap::new(), host }
    }
}

impl HistoryStore {
    /// Adds a sample, unless it follows the one before too closely, and forgets what is too old.
    pub(crate) fn push(&mut self, sample: &Sample) {
        self.drop_after(sample.at_ms);
        if self.times_ms.back().is_some_and(|last| sample.at_ms.saturating_sub(*last) < SPACING_MS) {
            return;
        }
        self.times_ms.push_back(sample.at_ms);
        self.columns().for_each(|column| column.push_back(f64::NAN));
        self.host.set_newest(charted(HOST_FIELDS).map(|field| field.access.value(&sample.host)));
        for gpu in &sample.gpus {
            // What a hung GPU shows is its past, which is in the history already.
            if gpu.at_ms + 2 * u64::from(sample.interval_ms) >= sample.at_ms {
                self.set_newest(gpu);
            }
        }
        self.drop_before(sample.at_ms.saturating_sub(DEPTH_MS));
    }

    fn set_newest(&mut self, gpu: &GpuSample) {
        let Some(uuid) = &gpu.uuid else { return };
        let length = self.times_ms.len();
        let ids = charted(GPU_FIELDS).map(|field| field.id);
        let new = || GpuColumns { metrics: Columns::of(ids, length), holders: Holders::default() };
        let columns = self.gpus.entry(uuid.clone()).or_insert_with(new);
        columns.metrics.set_newest(charted(GPU_FIELDS).map(|field| field.access.value(gpu)));
        columns.holders.set_newest(gpu.processes.value().map_or(&[], Vec::as_slice), length);
        for device in gpu.mig_devices.value().into_iter().flatten() {
            let new = || Columns::of(of_mig().map(|(field, _)| field.id), length);
            let columns = self.mig_devices.entry(device.uuid.clone()).or_insert_with(new);
            columns.set_newest(of_mig().map(|(_, access)| access.value(device)));
        }
    }

    /// A clock that was set back makes some of the past a future, which would keep everything else out.
    fn drop_after(&mut self, newest_ms: u64) {
        let known = self.times_ms.iter().take_while(|time| **time <= newest_ms).count();
        self.times_ms.truncate(known);
        self.columns().for_each(|column| column.truncate(known));
    }

    fn drop_before(&mut self, oldest_ms: u64) {
        let old = self.times_ms.iter().take_while(|time| **time < oldest_ms).count();
        self.times_ms.drain(..old);
        self.columns().for_each(|column| drop(column.drain(..old)));
        self.gpus.retain(|_, columns| columns.metrics.has_values());
        self.gpus.values_mut().for_each(|columns| columns.holders.prune());
        self.mig_devices.retain(|_, columns| columns.has_values());
    }

    fn columns(&mut self) -> impl Iterator<Item = &mut VecDeque<f64>> {
        let gpus = self.gpus.values_mut();
        let of_gpus = gpus.flat_map(|GpuColumns { metrics, holders }| metrics.values_mut().chain(holders.columns()));
        of_gpus.chain(self.mig_devices.values_mut().flat_map(Columns::values_mut)).chain(self.host.values_mut())
    }

    /// What is wanted, as far back as `reach_ms` before the newest sample.
    pub(crate) fn newest(&self, reach_ms: u64, wanted: &Wanted) -> History {
        let oldest_ms = self.times_ms.back().map_or(0, |newest| newest.saturating_sub(reach_ms));
        let old = self.times_ms.partition_point(|time| *time < oldest_ms);
        let of_gpu = |(uuid, columns): (&String, &GpuColumns)| GpuHistory {
            uuid: uuid.clone(),
            metrics: columns.metrics.chosen(&wanted.metrics, old).collect(),
            holders: if wanted.holders { columns.holders.newest(old) } else { Vec::new() },
        };
        let of_device = |(uuid, columns): (&String, &Columns)| GpuHistory {
            uuid: uuid.clone(),
            metrics: columns.chosen(&wanted.mig, old).map(|(id, values)| (mig_id(&id), values)).collect(),
            holders: Vec::new(),
        };
        let has_gpus = !wanted.metrics.is_empty() || wanted.holders;
        History {
            times_ms: self.times_ms.range(old..).copied().collect(),
            gpus: if has_gpus { self.gpus.iter().map(of_gpu).collect() } else { Vec::new() },
            mig_devices: if wanted.mig.is_empty() {
                Vec::new()
            } else {
                self.mig_devices.iter().map(of_device).collect()
            },
            host: self.host.chosen(&wanted.host, old).collect(),
        }
    }
}

impl Columns {
    fn of(ids: impl Iterator<Item = &'static str>, length: usize) -> Self {
        Self(ids.map(|id| (id, std::iter::repeat_n(f64::NAN, length).collect())).collect())
    }

    fn set_newest(&mut self, values: impl Iterator<Item = Option<f64>>) {
        for (column, value) in self.values_mut().zip(values) {
            if let Some(newest) = column.back_mut() {
                *newest = value.map_or(f64::NAN, rounded);
            }
        }
    }

    fn has_values(&self) -> bool {
        self.0.iter().any(|(_, column)| column.iter().any(|value| !value.is_nan()))
    }

    /// Those of these fields, from the place `old` on.
    fn chosen<S>(&self, wanted: &[&Field<S>], old: usize) -> impl Iterator<Item = (String, Vec<Option<f64>>)> {
        let chosen = self.0.iter().filter(|(id, _)| wanted.iter().any(|field| field.id == *id));
        chosen.map(move |(id, column)| ((*id).to_owned(), known(column, old)))
    }

    fn values_mut(&mut self) -> impl Iterator<Item = &mut VecDeque<f64>> {
        self.0.iter_mut().map(|(_, column)| column)
    }
}

/// The charted fields that MIG devices have, too.
fn of_mig() -> impl Iterator<Item = (&'static Field, Access<MigSample>)> {
    charted(GPU_FIELDS).filter_map(|field| Some((field, field.mig?)))
}

fn mig_id(id: &str) -> String {
    format!("{MIG}{id}")
}

/// A column from the place `old` on.
fn known(column: &VecDeque<f64>, old: usize) -> Vec<Option<f64>> {
    column.range(old..).map(|value| (!value.is_nan()).then_some(*value)).collect()
}

fn rounded(value: f64) -> f64 {
    if !value.is_normal() {
        return value;
    }
    let digits_left = value.abs().log10().floor() as i32 + 1 - DIGITS;
    // Of whole numbers, so that nothing is lost by the way.
    let power = 10_f64.powi(digits_left.abs());
    if digits_left > 0 { (value / power).round() * power } else { (value * power).round() / power }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use gpumon_probe::{
        host::HostReader,
        model::{Absence, GpuSample, Health, HostSample, Reading},
    };

    use super::*;

    fn sample(at_ms: u64, gpus: &[(&str, f64)]) -> Sample {
        static HOST: LazyLock<HostSample> = LazyLock::new(|| HostReader::new().read());
        let gpus = gpus.iter().zip(0..).map(|((uuid, watts), index)| {
            let mut gpu = GpuSample::absent(index, Some((*uuid).to_owned()), at_ms, Health::Ok, &Absence::NotSupported);
            gpu.power.draw_watts = Reading::Now(*watts);
            gpu
        });
        Sample { seq: 0, at_ms, interval_ms: 1000, gpus: gpus.collect(), host: HOST.clone() }
    }

    fn watts<'a>(history: &'a History, uuid: &str) -> &'a [Option<f64>] {
        &history.gpus.iter().find(|gpu| gpu.uuid == uuid).unwrap().metrics["power.draw_watts"]
    }

    #[test]
    fn a_gpu_that_comes_late_or_goes_leaves_gaps_and_not_zeros() {
        let mut store = HistoryStore::default();
        store.push(&sample(1_000, &[("a", 1.0)]));
        store.push(&sample(2_000, &[("a", 2.0), ("b", 9.0)]));
        store.push(&sample(3_000, &[("b", 8.0)]));
        let history = store.newest(u64::MAX, &Wanted::overview());
        assert_eq!(history.times_ms, [1_000, 2_000, 3_000]);
        assert_eq!(watts(&history, "a"), [Some(1.0), Some(2.0), None]);
        assert_eq!(watts(&history, "b"), [None, Some(9.0), Some(8.0)]);
    }

    #[test]
    fn no_more_is_given_than_was_asked_for() {
        let mut store = HistoryStore::default();
        for second in 0..100 {
            store.push(&sample(second * 1_000, &[("a", second as f64)]));
        }
        let few = Wanted::named(["power.draw_watts", "host.memory.used_bytes"].into_iter()).unwrap();
        let history = store.newest(2_000, &few);
        assert_eq!(history.times_ms, [97_000, 98_000, 99_000]);
        assert_eq!(watts(&history, "a"), [Some(97.0), Some(98.0), Some(99.0)]);
        assert_eq!(history.gpus[0].metrics.len(), 1);
        assert_eq!((history.host.len(), history.host["host.memory.used_bytes"].len()), (1, 3));
        assert!(history.host["host.memory.used_bytes"].iter().all(|bytes| bytes.is_some_and(|bytes| bytes > 0.0)));
    }

    #[test]
    fn an_overview_is_small_and_an_unknown_metric_is_refused_with_those_there_are() {
        let mut store = HistoryStore::default();
        store.push(&sample(1_000, &[("a", 1.0)]));
        let overview = store.newest(u64::MAX, &Wanted::overview());
        assert_eq!((overview.gpus[0].metrics.len(), overview.host.len()), (4, 0));
        let error = Wanted::named(["power.drwa"].into_iter()).unwrap_err();
        assert!(error.contains("'power.drwa'") && error.contains("power.draw_watts"), "{error}");
        assert!(error.contains("host.cpu.busy_percent"), "{error}");
    }

    #[test]
    fn numbers_have_the_digits_that_a_chart_shows() {
        for (value, kept) in [
            (534.369, "534.4"),
            (137_742_436_693.0, "137700000000.0"),
            (99.996, "100.0"),
            (0.012_345_67, "0.01235"),
            (-7.0, "-7.0"),
            (0.0, "0.0"),
            (1980.0, "1980.0"),
        ] {
            assert_eq!(serde_json::to_string(&rounded(value)).unwrap(), kept);
        }
        assert!(rounded(f64::NAN).is_nan(), "no number is none");
    }

    #[test]
    fn it_is_bounded_in_time_and_in_density() {
        let mut store = HistoryStore::default();
        for tick in 0..10_000 {
            store.push(&sample(tick * 100, &[("a", tick as f64)]));
        }
        let history = store.newest(u64::MAX, &Wanted::overview());
        assert!(history.times_ms.len() <= 335, "{}", history.times_ms.len());
        assert!(history.times_ms[0] >= 999_900 - DEPTH_MS);
        assert_eq!(watts(&history, "a").len(), history.times_ms.len());
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_stop_it() {
        let mut store = HistoryStore::default();
        for at_ms in [1_000_000, 1_001_000, 1_002_000, 501_000, 502_000] {
            store.push(&sample(at_ms, &[("a", at_ms as f64)]));
        }
        let history = store.newest(u64::MAX, &Wanted::overview());
        assert_eq!(history.times_ms, [501_000, 502_000]);
        assert_eq!(watts(&history, "a"), [Some(501_000.0), Some(502_000.0)]);
    }

    #[test]
    fn the_frozen_readings_of_a_hung_gpu_are_a_gap() {
        let mut store = HistoryStore::default();
        let mut hung = sample(10_000, &[("a", 5.0)]);
        hung.gpus[0].at_ms = 1_000;
        store.push(&sample(1_000, &[("a", 5.0)]));
        store.push(&hung);
        assert_eq!(watts(&store.newest(u64::MAX, &Wanted::overview()), "a"), [Some(5.0), None]);
    }
}
