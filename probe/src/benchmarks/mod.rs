//! The benchmark results of each GPU, stored in a file of the data directory: a baseline, and the
//! latest results to compare with the baseline. A chip that computes at a third of its speed passes
//! every check of the chip alone.
//!
//! [`measurement`] defines a result, [`file`] reads and writes the file, and [`watched`] is the
//! collector's view of the file.

mod file;
mod measurement;
mod watched;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::{
    file::{FILE_NAME, change, read},
    measurement::{Interval, Measurement},
    watched::BelowBaselines,
};

/// The ratio below which a result is below its baseline.
pub const BELOW_BASELINE_RATIO: f64 = 0.9;

/// The ratio below which a GPU's baseline is below its siblings' baselines. Chips of the same model
/// differ by a few percent.
pub const BELOW_SIBLINGS_RATIO: f64 = 0.85;

/// The maximum number of results per GPU, more than all combinations of workloads, types and usual
/// sizes. The oldest results are removed.
const MAX_RESULTS: usize = 512;

/// The maximum number of GPUs, more than any machine has. The oldest are removed.
const MAX_GPUS: usize = 256;

/// Benchmark results by GPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Benchmarks {
    /// The GPUs by UUID.
    gpus: BTreeMap<String, Gpu>,
}

/// The results of one GPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Gpu {
    name: String,
    baseline: Vec<Measurement>,
    /// The latest result for each workload in the baseline. Only results measured after the
    /// baseline was stored are kept.
    latest: Vec<Measurement>,
}

/// A latest result that is slower than its baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct BelowBaseline {
    pub latest: Measurement,
    /// The baseline of the same workload.
    pub baseline: Measurement,
    /// The speed of the latest result relative to the baseline.
    pub ratio: f64,
}

/// A baseline that is slower than the baselines of other GPUs of the same model.
#[derive(Debug, Clone, PartialEq)]
pub struct BelowSiblings {
    pub baseline: Measurement,
    /// The baselines of other GPUs of the same model.
    pub siblings: Siblings,
    /// The speed of this GPU's baseline relative to the other GPUs' baselines.
    pub ratio: f64,
}

/// The baselines of other GPUs of the same model for one workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Siblings {
    /// The median of the other GPUs' baselines, in microseconds.
    pub median_us: f64,
    /// The number of other GPUs.
    pub count: usize,
}

impl Benchmarks {
    /// Returns the baseline of a GPU, which may be empty.
    pub fn find_baseline(&self, uuid: &str) -> &[Measurement] {
        self.gpus.get(uuid).map_or(&[], |gpu| &gpu.baseline)
    }

    /// Returns the baselines of all GPUs, each with the UUID.
    pub fn iter_baselines(&self) -> impl Iterator<Item = (&str, &Measurement)> {
        self.gpus
            .iter()
            .flat_map(|(uuid, gpu)| gpu.baseline.iter().map(|result| (uuid.as_str(), result)))
    }

    /// Stores results as the baseline of a GPU, replacing its baseline for the same workloads. The
    /// latest results for these workloads are removed, because they were compared with the old
    /// baseline.
    pub fn save_baseline(&mut self, uuid: &str, name: &str, results: Vec<Measurement>) {
        let gpu = self.gpus.entry(uuid.to_owned()).or_default();
        name.clone_into(&mut gpu.name);
        for result in results {
            gpu.latest.retain(|old| !old.is_same_work(&result));
            replace_result(&mut gpu.baseline, result);
        }
        self.forget_oldest();
    }

    /// Stores results as the latest results of a GPU. Results without a baseline are ignored.
    pub fn save_latest(&mut self, uuid: &str, results: Vec<Measurement>) {
        let Some(gpu) = self.gpus.get_mut(uuid) else {
            return;
        };
        for result in results {
            if gpu
                .baseline
                .iter()
                .any(|baseline| baseline.is_same_work(&result))
            {
                replace_result(&mut gpu.latest, result);
            }
        }
    }

    /// Returns the baselines of other GPUs of the same model, or `None` if there are none.
    pub fn find_siblings(&self, uuid: &str, result: &Measurement) -> Option<Siblings> {
        let name = &self.gpus.get(uuid)?.name;
        let others = self
            .gpus
            .iter()
            .filter(|(other, gpu)| *other != uuid && gpu.name == *name);
        let same = others.filter_map(|(_, gpu)| {
            gpu.baseline
                .iter()
                .find(|baseline| baseline.is_same_work(result))
        });
        let mut medians: Vec<_> = same.map(|baseline| baseline.time.median_us).collect();
        medians.sort_by(f64::total_cmp);
        let (count, half) = (medians.len(), medians.len() / 2);
        let upper = *medians.get(half)?;
        let median_us = if count % 2 == 1 {
            upper
        } else {
            f64::midpoint(medians[half - 1], upper)
        };
        Some(Siblings { median_us, count })
    }

    /// Returns the GPU's latest result that is furthest below its baseline, or `None` if no result
    /// is.
    pub fn find_below_baseline(&self, uuid: &str) -> Option<BelowBaseline> {
        let gpu = self.gpus.get(uuid)?;
        let below = gpu.latest.iter().filter_map(|latest| {
            let baseline = gpu
                .baseline
                .iter()
                .find(|baseline| baseline.is_same_work(latest))?;
            let ratio = latest.time.speed_ratio(&baseline.time)?;
            let is_below = ratio < BELOW_BASELINE_RATIO && latest.time.is_slower(&baseline.time);
            is_below.then(|| BelowBaseline {
                latest: latest.clone(),
                baseline: baseline.clone(),
                ratio,
            })
        });
        below.min_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// Returns the GPU's baseline result that is furthest below its siblings' baselines, or `None`
    /// if no result is.
    pub fn find_below_siblings(&self, uuid: &str) -> Option<BelowSiblings> {
        let below = self.find_baseline(uuid).iter().filter_map(|baseline| {
            let siblings = self.find_siblings(uuid, baseline)?;
            let ratio = siblings.median_us / baseline.time.median_us;
            (ratio < BELOW_SIBLINGS_RATIO).then(|| BelowSiblings {
                baseline: baseline.clone(),
                siblings,
                ratio,
            })
        });
        below.min_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// Returns all GPUs that have a latest result below their baseline, by UUID.
    fn find_all_below_baseline(&self) -> BTreeMap<String, BelowBaseline> {
        self.gpus
            .keys()
            .filter_map(|uuid| Some((uuid.clone(), self.find_below_baseline(uuid)?)))
            .collect()
    }

    fn forget_oldest(&mut self) {
        while self.gpus.len() > MAX_GPUS {
            let newest = |gpu: &Gpu| gpu.baseline.iter().map(|result| result.at_ms).max();
            let oldest = self
                .gpus
                .iter()
                .min_by_key(|(_, gpu)| newest(gpu))
                .map(|(uuid, _)| uuid.clone());
            oldest.and_then(|uuid| self.gpus.remove(&uuid));
        }
    }
}

/// Adds a result, replacing the result for the same workload.
fn replace_result(results: &mut Vec<Measurement>, result: Measurement) {
    results.retain(|old| !old.is_same_work(&result));
    results.push(result);
    let surplus = results.len().saturating_sub(MAX_RESULTS);
    results.drain(..surplus);
}
