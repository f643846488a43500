//! What benchmarks of each GPU have shown, kept over time in a file of the data directory: its
//! baseline, and its latest results beside that. A chip that computes at a third of its speed
//! passes every check that looks at the chip alone.
//!
//! [`measurement`] is one result, [`file`] the file, [`watched`] what a collector knows of it.

mod file;
mod measurement;
mod watched;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::{
    file::{FILE, change, read},
    measurement::{Interval, Measurement},
    watched::BelowBaselines,
};

/// A result is below its baseline from this ratio on.
pub const BELOW_BASELINE: f64 = 0.9;

/// A baseline is below those of its siblings from this ratio on: chips of one model differ by some
/// percent.
pub const BELOW_SIBLINGS: f64 = 0.85;

/// More than there are workloads, types and usual sizes; beyond it, the oldest are forgotten.
const MOST_RESULTS: usize = 512;

/// More than one machine sees; of those that are gone, the oldest are forgotten.
const MOST_GPUS: usize = 256;

/// Results by GPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Benchmarks {
    /// By UUID.
    gpus: BTreeMap<String, Gpu>,
}

/// Results of one GPU, each of other work.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Gpu {
    name: String,
    baseline: Vec<Measurement>,
    /// The last of each work of the baseline, since that was stored.
    latest: Vec<Measurement>,
}

/// A latest result that is slower than its baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct BelowBaseline {
    /// The latest result.
    pub latest: Measurement,
    /// The baseline of the same work.
    pub baseline: Measurement,
    /// How fast the latest is beside the baseline, where 1 is as fast.
    pub ratio: f64,
}

/// A baseline that is slower than those of the same model.
#[derive(Debug, Clone, PartialEq)]
pub struct BelowSiblings {
    /// The baseline.
    pub baseline: Measurement,
    /// What others take for the same.
    pub siblings: Siblings,
    /// How fast the baseline is beside the others, where 1 is as fast.
    pub ratio: f64,
}

/// What other GPUs of the same model take for the same work, by their baselines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Siblings {
    /// The median over all of them.
    pub median_us: f64,
    /// How many there are.
    pub count: usize,
}

impl Benchmarks {
    /// The baseline of a GPU; empty where there is none.
    pub fn baseline(&self, uuid: &str) -> &[Measurement] {
        self.gpus.get(uuid).map_or(&[], |gpu| &gpu.baseline)
    }

    /// All baselines, with the UUID of their GPU.
    pub fn baselines(&self) -> impl Iterator<Item = (&str, &Measurement)> {
        self.gpus
            .iter()
            .flat_map(|(uuid, gpu)| gpu.baseline.iter().map(|result| (uuid.as_str(), result)))
    }

    /// Makes these results of a GPU its baseline, in the place of those of the same work. What they
    /// were before says nothing any more.
    pub fn save_baseline(&mut self, uuid: &str, name: &str, results: Vec<Measurement>) {
        let gpu = self.gpus.entry(uuid.to_owned()).or_default();
        name.clone_into(&mut gpu.name);
        for result in results {
            gpu.latest.retain(|old| !old.is_same_work(&result));
            put(&mut gpu.baseline, result);
        }
        self.forget_oldest();
    }

    /// Makes these results of a GPU its latest. What has no baseline is not kept.
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
                put(&mut gpu.latest, result);
            }
        }
    }

    /// What other GPUs of the same model take for the same; `None` where there is none.
    pub fn siblings(&self, uuid: &str, result: &Measurement) -> Option<Siblings> {
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

    /// Of the latest results of a GPU that are below their baselines, the one that is furthest
    /// below.
    pub fn below_baseline(&self, uuid: &str) -> Option<BelowBaseline> {
        let gpu = self.gpus.get(uuid)?;
        let below = gpu.latest.iter().filter_map(|latest| {
            let baseline = gpu
                .baseline
                .iter()
                .find(|baseline| baseline.is_same_work(latest))?;
            let ratio = latest.time.ratio(&baseline.time)?;
            let is_below = ratio < BELOW_BASELINE && latest.time.is_slower(&baseline.time);
            is_below.then(|| BelowBaseline {
                latest: latest.clone(),
                baseline: baseline.clone(),
                ratio,
            })
        });
        below.min_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// Of the baselines of a GPU that are below those of its siblings, the one that is furthest
    /// below.
    pub fn below_siblings(&self, uuid: &str) -> Option<BelowSiblings> {
        let below = self.baseline(uuid).iter().filter_map(|baseline| {
            let siblings = self.siblings(uuid, baseline)?;
            let ratio = siblings.median_us / baseline.time.median_us;
            (ratio < BELOW_SIBLINGS).then(|| BelowSiblings {
                baseline: baseline.clone(),
                siblings,
                ratio,
            })
        });
        below.min_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// The GPUs whose latest results are below their baselines, by UUID.
    fn all_below_baseline(&self) -> BTreeMap<String, BelowBaseline> {
        self.gpus
            .keys()
            .filter_map(|uuid| Some((uuid.clone(), self.below_baseline(uuid)?)))
            .collect()
    }

    fn forget_oldest(&mut self) {
        while self.gpus.len() > MOST_GPUS {
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

/// In the place of the same work.
fn put(results: &mut Vec<Measurement>, result: Measurement) {
    results.retain(|old| !old.is_same_work(&result));
    results.push(result);
    let surplus = results.len().saturating_sub(MOST_RESULTS);
    results.drain(..surplus);
}
