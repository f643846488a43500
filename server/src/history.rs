//! The recent past, for clients that come late.

use std::collections::{BTreeMap, VecDeque};

use gpumon_probe::model::{METRICS, Metric, Sample};

use crate::frame::{GpuHistory, History};

/// How far back it reaches.
const DEPTH_MS: u64 = 5 * 60 * 1000;

/// A faster stream leaves one sample per this time, so that the depth and the size stay the same.
const SPACING_MS: u64 = 900;

/// One column per GPU and metric, over one common time axis.
#[derive(Debug, Default)]
pub(crate) struct HistoryStore {
    times_ms: VecDeque<u64>,
    /// By UUID; one column for each of `METRICS`, each as long as `times_ms`. What was absent is NaN.
    gpus: BTreeMap<String, Vec<VecDeque<f64>>>,
}

impl HistoryStore {
    /// Adds a sample, unless it follows the one before too closely, and forgets what is too old.
    pub(crate) fn push(&mut self, sample: &Sample) {
        self.forget_after(sample.at_ms);
        if self.times_ms.back().is_some_and(|last| sample.at_ms.saturating_sub(*last) < SPACING_MS) {
            return;
        }
        let known = self.times_ms.len();
        self.times_ms.push_back(sample.at_ms);
        for columns in self.gpus.values_mut() {
            for column in columns {
                column.push_back(f64::NAN);
            }
        }
        for gpu in &sample.gpus {
            // What a hung GPU shows is its past, which is in the history already.
            if gpu.at_ms + 2 * u64::from(sample.interval_ms) < sample.at_ms {
                continue;
            }
            let Some(uuid) = &gpu.uuid else { continue };
            let columns = self.gpus.entry(uuid.clone()).or_insert_with(|| {
                vec![std::iter::repeat_n(f64::NAN, known + 1).collect::<VecDeque<_>>(); METRICS.len()]
            });
            for (column, metric) in columns.iter_mut().zip(METRICS) {
                if let Some(newest) = column.back_mut() {
                    *newest = (metric.read)(gpu).unwrap_or(f64::NAN);
                }
            }
        }
        self.forget_before(sample.at_ms.saturating_sub(DEPTH_MS));
    }

    /// A clock that was set back makes some of the past a future, which would keep everything else out.
    fn forget_after(&mut self, newest_ms: u64) {
        let known = self.times_ms.iter().take_while(|time| **time <= newest_ms).count();
        self.times_ms.truncate(known);
        for columns in self.gpus.values_mut() {
            for column in columns {
                column.truncate(known);
            }
        }
    }

    fn forget_before(&mut self, oldest_ms: u64) {
        let old = self.times_ms.iter().take_while(|time| **time < oldest_ms).count();
        self.times_ms.drain(..old);
        self.gpus.retain(|_, columns| {
            for column in columns.iter_mut() {
                column.drain(..old);
            }
            columns.iter().any(|column| column.iter().any(|value| !value.is_nan()))
        });
    }

    /// All of it, as it travels.
    pub(crate) fn frame(&self) -> History {
        self.newest(u64::MAX, &METRICS.iter().collect::<Vec<_>>())
    }

    /// These metrics, as far back as `reach_ms` before the newest sample.
    pub(crate) fn newest(&self, reach_ms: u64, metrics: &[&Metric]) -> History {
        let oldest_ms = self.times_ms.back().map_or(0, |newest| newest.saturating_sub(reach_ms));
        let old = self.times_ms.partition_point(|time| *time < oldest_ms);
        let values = |column: &VecDeque<f64>| {
            column.range(old..).map(|value| (!value.is_nan()).then_some(*value)).collect::<Vec<_>>()
        };
        let of_gpu = |columns: &Vec<VecDeque<f64>>| {
            let wanted = METRICS.iter().zip(columns).filter(|(metric, _)| metrics.iter().any(|m| m.id == metric.id));
            wanted.map(|(metric, column)| (metric.id.to_owned(), values(column))).collect()
        };
        History {
            times_ms: self.times_ms.range(old..).copied().collect(),
            gpus: self
                .gpus
                .iter()
                .map(|(uuid, columns)| GpuHistory { uuid: uuid.clone(), metrics: of_gpu(columns) })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use gpumon_probe::{
        model::{Absence, GpuSample, Health, HostSample, Reading},
        source::host::HostReader,
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
        let history = store.frame();
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
        let watts_alone = METRICS.iter().filter(|metric| metric.id == "power.draw_watts").collect::<Vec<_>>();
        let history = store.newest(2_000, &watts_alone);
        assert_eq!(history.times_ms, [97_000, 98_000, 99_000]);
        assert_eq!(watts(&history, "a"), [Some(97.0), Some(98.0), Some(99.0)]);
        assert_eq!(history.gpus[0].metrics.len(), 1);
    }

    #[test]
    fn it_is_bounded_in_time_and_in_density() {
        let mut store = HistoryStore::default();
        for tick in 0..10_000 {
            store.push(&sample(tick * 100, &[("a", tick as f64)]));
        }
        let history = store.frame();
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
        let history = store.frame();
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
        assert_eq!(watts(&store.frame(), "a"), [Some(5.0), None]);
    }
}
