//! The benchmark results of each GPU, stored in a file of the data directory: a baseline, and the
//! latest results to compare with the baseline. Only this comparison detects a chip that computes
//! at a third of its usual speed, because checks of the chip's current state find no fault.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::{
    file_stamp::FileStamp,
    safe_file::{self, AcceptedOwner, Folder, invalid_data},
    untrusted::escape_untrusted,
};

/// A result is below its baseline if its speed relative to the baseline is less than this ratio,
/// and the confidence intervals of the two do not overlap.
pub const BELOW_BASELINE_RATIO: f64 = 0.9;

/// A GPU's baseline is below its siblings' baselines if its speed relative to theirs is less than
/// this ratio. Chips of the same model differ by a few percent.
pub const BELOW_SIBLINGS_RATIO: f64 = 0.85;

/// The maximum number of results per GPU, more than all combinations of workloads, types and usual
/// sizes. If there are more, the oldest results are removed.
const MAX_RESULTS: usize = 512;

/// The maximum number of GPUs, more than any machine has. If there are more, the GPUs with the
/// oldest baselines are removed.
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
    pub fn baseline_results(&self, uuid: &str) -> &[Measurement] {
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
            add_or_replace_result(&mut gpu.baseline, result);
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
                add_or_replace_result(&mut gpu.latest, result);
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

    /// Compares a GPU's latest results with its baseline. Returns the result that is furthest
    /// below, or `None` if no result counts as below the baseline.
    pub fn find_worst_below_baseline(&self, uuid: &str) -> Option<BelowBaseline> {
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

    /// Compares a GPU's baselines with those of its siblings. Returns the baseline that is furthest
    /// below, or `None` if no baseline counts as below.
    pub fn find_worst_below_siblings(&self, uuid: &str) -> Option<BelowSiblings> {
        let below = self.baseline_results(uuid).iter().filter_map(|baseline| {
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

    /// Returns the GPUs with results below their baselines, by UUID, each with the result that is
    /// furthest below.
    fn find_gpus_below_baseline(&self) -> BTreeMap<String, BelowBaseline> {
        self.gpus
            .keys()
            .filter_map(|uuid| Some((uuid.clone(), self.find_worst_below_baseline(uuid)?)))
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
fn add_or_replace_result(results: &mut Vec<Measurement>, result: Measurement) {
    results.retain(|old| !old.is_same_work(&result));
    results.push(result);
    let surplus = results.len().saturating_sub(MAX_RESULTS);
    results.drain(..surplus);
}

/// The maximum length of a name in bytes. Names are part of condition texts.
const MAX_NAME_BYTES: usize = 64;

/// The verified result of one benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub workload: String,
    /// The element type of the workload.
    pub dtype: String,
    /// The problem size, in a unit that depends on the workload.
    pub n: u64,
    /// The time of the measurement, in milliseconds since 1970.
    pub at_ms: u64,
    /// The measured duration of one run.
    pub time: Interval,
    /// The version of gpumon.
    pub gpumon: String,
    /// The newest CUDA version that the driver supported when the result was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_watts: Option<f64>,
    /// The mean clock of the multiprocessors, in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sm_mhz: Option<f64>,
}

/// A median in microseconds, with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub median_us: f64,
    /// The lower end of the confidence interval, in microseconds.
    pub low_us: f64,
    /// The upper end of the confidence interval, in microseconds.
    pub high_us: f64,
}

impl Interval {
    /// Returns the speed relative to `old`: 1 is equally fast, and larger is faster. Returns `None`
    /// if the ratio is not finite.
    pub fn speed_ratio(&self, old: &Self) -> Option<f64> {
        Some(old.median_us / self.median_us).filter(|ratio| ratio.is_finite())
    }

    /// Returns `true` if this interval is slower than `old` and does not overlap `old`.
    pub fn is_slower(&self, old: &Self) -> bool {
        self.low_us > old.high_us
    }
}

impl Measurement {
    /// Returns `true` if both results are for the same workload, type and size.
    pub fn is_same_work(&self, other: &Self) -> bool {
        (&self.workload, &self.dtype, self.n) == (&other.workload, &other.dtype, other.n)
    }

    fn is_plausible(&self) -> bool {
        let is_name = |name: &str| {
            name.len() <= MAX_NAME_BYTES && name.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let Interval {
            median_us,
            low_us,
            high_us,
        } = self.time;
        is_name(&self.workload)
            && is_name(&self.dtype)
            && 0.0 < low_us
            && low_us <= median_us
            && median_us <= high_us
            && high_us.is_finite()
    }
}

// The benchmark file, which is always replaced as a whole, by one process at a time.

/// The name of the benchmark file in a data directory.
pub const FILE_NAME: &str = "benchmarks.json";

/// The version of the file format. Files with other versions are not read.
const FORMAT_VERSION: u32 = 1;

/// The maximum size of the file in bytes. One GPU with results for all workloads and types takes 60
/// kB.
const MAX_FILE_BYTES: usize = 16 << 20;

#[derive(Serialize)]
struct WrittenFile<'a> {
    version: u32,
    gpus: &'a Benchmarks,
}

#[derive(Deserialize)]
struct FileVersion {
    version: u32,
}

#[derive(Deserialize)]
struct FileContent {
    gpus: Benchmarks,
}

/// Reads a file. If the file does not exist, returns no results.
///
/// # Errors
/// Returns an error if the file cannot be read, is damaged or too large, or has another version.
pub fn read(path: &Path) -> io::Result<Benchmarks> {
    parse_file(safe_file::read(path, MAX_FILE_BYTES)?)
}

fn parse_file(bytes: Option<Vec<u8>>) -> io::Result<Benchmarks> {
    let Some(bytes) = bytes else {
        return Ok(Benchmarks::default());
    };
    // The version is parsed first, because other versions may have another format.
    let FileVersion { version } = serde_json::from_slice(&bytes)?;
    if version != FORMAT_VERSION {
        return Err(invalid_data(format!(
            "the file has format version {version}, but this gpumon supports version {FORMAT_VERSION}"
        )));
    }
    let FileContent { gpus } = serde_json::from_slice(&bytes)?;
    if gpus.gpus.len() > MAX_GPUS {
        return Err(invalid_data(format!(
            "the file has more than {MAX_GPUS} GPUs"
        )));
    }
    let mut results = gpus
        .gpus
        .values()
        .flat_map(|gpu| gpu.baseline.iter().chain(&gpu.latest));
    if let Some(result) = results.find(|result| !result.is_plausible()) {
        let workload = escape_untrusted(&result.workload);
        return Err(invalid_data(format!(
            "the file contains an impossible result for {workload:.80}"
        )));
    }
    Ok(gpus)
}

/// Changes the content of a file atomically, while other processes wait. A missing file and its
/// folders are created.
///
/// # Errors
/// Returns an error if the file cannot be read or written. In that case, the file is not changed.
pub fn update_file(path: &Path, change: impl FnOnce(&mut Benchmarks)) -> io::Result<()> {
    let (folder, name) = safe_file::split_file_path(path)?;
    let folder = Folder::create(folder, AcceptedOwner::AnyForRoot)?;
    // A failed lock is ignored, because some network file systems do not support locks, and
    // concurrent runs are rare.
    let _ = flock(folder.handle(), FlockOperation::LockExclusive);
    let mut gpus = parse_file(folder.read(name, MAX_FILE_BYTES)?)?;
    change(&mut gpus);
    let bytes = serde_json::to_vec(&WrittenFile {
        version: FORMAT_VERSION,
        gpus: &gpus,
    })?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(invalid_data(format!(
            "the file would be larger than {MAX_FILE_BYTES} bytes"
        )));
    }
    folder.replace(name, &bytes)
}

/// The GPUs with a latest result below its baseline. They are determined from a benchmark file that
/// other processes write. Reading this value never waits for the disk.
#[derive(Debug, Default)]
pub struct BelowBaselines {
    latest: Mutex<Arc<BTreeMap<String, BelowBaseline>>>,
}

impl BelowBaselines {
    /// Returns the GPUs that are below their baselines, by UUID.
    pub(crate) fn gpus_by_uuid(&self) -> Arc<BTreeMap<String, BelowBaseline>> {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the file if its stamp differs from `seen`, which is `None` for a missing file. This
    /// may wait for the disk.
    ///
    /// # Errors
    /// Returns an error if the file cannot be used. The error is returned only once for each
    /// version of the file. While the file cannot be used, no GPU counts as below its baseline.
    pub fn update_from_file(&self, path: &Path, seen: &mut Option<FileStamp>) -> io::Result<()> {
        let now = FileStamp::read(path);
        if std::mem::replace(seen, now) == now {
            return Ok(());
        }
        let benchmarks = read(path);
        let below = benchmarks
            .as_ref()
            .map(Benchmarks::find_gpus_below_baseline)
            .unwrap_or_default();
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(below);
        benchmarks.map(drop)
    }
}

#[cfg(test)]
mod tests;
