//! Earlier benchmark results, with which new results are compared: the stored baseline and latest
//! results of each GPU, and files of earlier results.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use gpumon_probe::{
    benchmarks::{self, Benchmarks, FILE_NAME, Interval, Measurement},
    bounded,
};
use gpumon_workload::{
    catalogue,
    protocol::{
        Backend, BackendChoice, BenchJob, BenchWork, DeviceName, Dtype, LimitingResource, Load,
        RunOutcome, Shape, Where,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::table::format_workload_name;
use crate::{
    data_dir::DataDirArgs,
    describe,
    exit::{Failure, Result, print_message, usage},
    terminal::units::format_count,
    time_spans::format_date,
};

/// Results with a shorter median time, in microseconds, are not stored, because launch overhead
/// dominates them and they vary by about 10 % between runs.
const MIN_STORED_TIME_US: f64 = 20.0;

/// Options that store results or compare results with a baseline.
#[derive(Debug, clap::Args)]
pub(super) struct BaselineArgs {
    /// Store the verified results of each GPU as its baseline, replacing results of the same
    /// workload, type and size
    #[arg(long, conflicts_with_all = ["compare", "pairs", "engine"])]
    save_baseline: bool,

    /// Run the workloads of the GPU's baseline, or only the named ones, with the same types and
    /// sizes; compare each result with the baseline of this GPU and with the baselines of other
    /// GPUs of the same model
    #[arg(
        long,
        conflicts_with_all = ["compare", "save_baseline", "pairs", "engine", "size", "backend"]
    )]
    baseline: bool,

    #[command(flatten)]
    data_dir: DataDirArgs,
}

impl BaselineArgs {
    /// Opens the store for a job's results. With `--baseline`, also returns the stored baselines,
    /// and changes the job so that it runs exactly the workloads of these baselines. Returns `None`
    /// if neither `--save-baseline` nor `--baseline` is given.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written, or if no matching baseline exists.
    pub(super) fn open_store(
        &self,
        job: &mut BenchJob,
    ) -> Result<Option<(Option<Benchmarks>, Store)>> {
        if !self.save_baseline && !self.baseline {
            return Ok(None);
        }
        job.settle = true;
        let (store, known) = Store::open(&self.data_dir, self.save_baseline)?;
        if self.baseline {
            job.works = select_works(&known, &job.ids, job.dtype, &store.path)?;
            (job.ids, job.dtype) = (Vec::new(), None);
            job.place = Where {
                backend: BackendChoice::Cuda,
                ..job.place.clone()
            };
        }
        // Before the measurements start, the file is written without a change. If the file cannot
        // be written, the error is thus reported immediately.
        store
            .update_benchmarks(|_| {})
            .map_err(Failure::from_usage_error)?;
        Ok(Some((self.baseline.then_some(known), store)))
    }
}

/// Results that are written to the file of benchmarks at the end of a run.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    /// Whether the results are stored as the baseline, rather than only as the latest results.
    is_baseline: bool,
    /// The results of each GPU, by UUID, with the name that CUDA reports for the GPU.
    gpus: BTreeMap<String, (DeviceName, Vec<Measurement>)>,
    /// The names of results that are not stored, grouped by reason.
    left_out: BTreeMap<&'static str, Vec<String>>,
}

impl Store {
    /// Opens the store in the data directory and reads the stored results.
    ///
    /// # Errors
    /// Returns an error if the data directory is `none`, or if the file cannot be read.
    fn open(folder: &DataDirArgs, is_baseline: bool) -> Result<(Self, Benchmarks)> {
        let none = "baselines need a data directory, but the data directory is `none`: give one \
                    with --data-dir DIR";
        let folder = folder.folder().ok_or_else(|| usage!(none))?;
        let path = folder.join(FILE_NAME);
        let known = benchmarks::read(&path);
        let known = known
            .map_err(|error| Failure::from_usage_error(make_file_error("read", &path, &error)))?;
        Ok((
            Self {
                path,
                is_baseline,
                gpus: BTreeMap::new(),
                left_out: BTreeMap::new(),
            },
            known,
        ))
    }

    fn update_benchmarks(&self, change: impl FnOnce(&mut Benchmarks)) -> anyhow::Result<()> {
        benchmarks::update_file(&self.path, change)
            .map_err(|error| make_file_error("write", &self.path, &error))
    }

    /// Adds a result, unless it is not a reliable measure of the GPU's speed.
    pub(super) fn add_result(&mut self, outcome: &RunOutcome, load: Option<&Load>) {
        match (
            find_exclusion_reason(outcome, load),
            make_measurement(outcome, load),
            &outcome.device.uuid,
        ) {
            (None, Some(measurement), Some(uuid)) => {
                let gpu = self
                    .gpus
                    .entry(uuid.clone())
                    .or_insert_with(|| (outcome.device.clone(), Vec::new()));
                gpu.1.push(measurement);
            }
            (reason, ..) => self
                .left_out
                .entry(reason.unwrap_or("not timed"))
                .or_default()
                .push(format_workload_name(outcome)),
        }
    }

    /// Writes the results of a run on `devices`. Also prints which results are not stored, and
    /// which devices have no baseline among `works`.
    ///
    /// # Errors
    /// Returns an error if no result can be stored, or if writing fails.
    pub(super) fn write_results(self, devices: &[DeviceName], works: &[BenchWork]) -> Result {
        // Without devices, the run failed before it started, and its error has already been
        // reported.
        if devices.is_empty() {
            return Ok(());
        }
        if !self.is_baseline {
            print_missing_baselines(devices, works, &self.path)?;
        }
        for (reason, names) in &self.left_out {
            print_message(&format!(
                "results not stored ({reason}): {}",
                names.join(", ")
            ));
        }
        let path = self.path.display();
        if self.gpus.is_empty() && self.is_baseline {
            return Err(
                anyhow!("no baseline was stored: the run has no verified GPU result").into(),
            );
        }
        if self.gpus.is_empty() {
            return Ok(());
        }
        self.update_benchmarks(|known| {
            for (uuid, (device, results)) in &self.gpus {
                if self.is_baseline {
                    known.save_baseline(uuid, &device.name, results.clone());
                } else {
                    known.save_latest(uuid, results.clone());
                }
            }
        })?;
        if self.is_baseline {
            for (device, results) in self.gpus.values() {
                let results = format_count(results.len() as u64, "result");
                print_message(&format!(
                    "stored {results} as the baseline of {} in {path}",
                    describe::label_device(device)
                ));
            }
        }
        Ok(())
    }
}

fn make_file_error(what: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!(
        "cannot {what} {}: {error}: choose another directory with --data-dir, or move the file \
         away",
        path.display()
    )
}

/// Returns the reason why a result is not a reliable measure of the GPU's speed, if any.
fn find_exclusion_reason(outcome: &RunOutcome, load: Option<&Load>) -> Option<&'static str> {
    match outcome {
        _ if outcome.partial => Some("interrupted"),
        _ if !outcome.verify.ok => Some("not verified"),
        _ if outcome.backend == Backend::Cpu => Some("ran on the CPU"),
        _ if outcome.to.is_some() => Some("ran between two GPUs"),
        _ if outcome.roofline.limit == LimitingResource::Driver => {
            Some("limited by driver and CPU")
        }
        _ if outcome
            .device_time
            .as_ref()
            .is_some_and(|time| time.median_us < MIN_STORED_TIME_US) =>
        {
            Some("too short compared with a kernel launch")
        }
        _ if load.is_some_and(|load| load.others.has_listed_processes()) => {
            Some("other processes used the GPU")
        }
        _ => None,
    }
}

/// Returns the part of a result that is compared with a baseline. The time measured by the GPU is
/// preferred to the time measured by the host. Returns `None` if neither time exists.
fn make_measurement(outcome: &RunOutcome, load: Option<&Load>) -> Option<Measurement> {
    let times = outcome.device_time.as_ref();
    let times = times.or(outcome.host_time.as_ref())?;
    Some(Measurement {
        workload: outcome.id.to_string(),
        dtype: outcome.dtype.to_string(),
        n: outcome.n,
        at_ms: outcome.environment.to_ms,
        time: times.into(),
        gpumon: outcome.environment.gpumon.to_string(),
        cuda: outcome.environment.cuda.clone(),
        limit_watts: load.and_then(|load| load.limit_watts),
        sm_mhz: load.and_then(|load| load.sm_mhz).map(|mhz| mhz.mean),
    })
}

/// Returns the work of the stored baselines. If `ids` or `dtype` is given, only work with these
/// workloads or this data type is returned. Workloads and types that this version does not know are
/// left out.
///
/// # Errors
/// Returns an error if no baseline matches.
fn select_works(
    known: &Benchmarks,
    ids: &[String],
    dtype: Option<Dtype>,
    path: &Path,
) -> Result<Vec<BenchWork>> {
    let works: Vec<_> = known
        .iter_baselines()
        .filter_map(|(gpu, baseline)| make_work(gpu, baseline))
        .collect();
    let path = path.display();
    let missing = |what: &str, names: &str| {
        let cure = format!(
            "store one with `gpumon bench{names} --save-baseline`; workloads shorter than \
             {MIN_STORED_TIME_US} us have no baseline"
        );
        usage!("no baseline{what} is stored in {path}: {cure}")
    };
    if works.is_empty() {
        return Err(missing("", ""));
    }
    if let Some(id) = ids
        .iter()
        .find(|id| works.iter().all(|work| work.id != **id))
    {
        return Err(missing(&format!(" of '{id}'"), &format!(" {id}")));
    }
    let is_asked = |work: &BenchWork| {
        (ids.is_empty() || ids.contains(&work.id)) && dtype.is_none_or(|dtype| work.dtype == dtype)
    };
    let asked: Vec<_> = works.into_iter().filter(is_asked).collect();
    match dtype {
        Some(dtype) if asked.is_empty() => Err(missing(
            &format!(" in {dtype}"),
            &format!(" --dtype {dtype}"),
        )),
        _ => Ok(asked),
    }
}

fn make_work(gpu: &str, baseline: &Measurement) -> Option<BenchWork> {
    catalogue::list_workloads().find(|about| about.id == baseline.workload)?;
    let dtype = serde_json::from_value(Value::from(&*baseline.dtype)).ok()?;
    Some(BenchWork {
        id: baseline.workload.clone(),
        dtype,
        n: baseline.n,
        gpu: gpu.to_owned(),
    })
}

/// Prints which of the GPUs have no baseline among `works`.
///
/// # Errors
/// Returns an error if none of the GPUs has a baseline.
fn print_missing_baselines(devices: &[DeviceName], works: &[BenchWork], path: &Path) -> Result {
    let has_one = |device: &&DeviceName| {
        works
            .iter()
            .any(|work| Some(&work.gpu) == device.uuid.as_ref())
    };
    let said = |device: &DeviceName| {
        let index = device.index.unwrap_or_default();
        let cure = format!("store one with `gpumon bench --save-baseline --device {index}`");
        format!(
            "no matching baseline of {} is stored in {}: {cure}",
            describe::label_device(device),
            path.display()
        )
    };
    let missing: Vec<_> = devices.iter().filter(|device| !has_one(device)).collect();
    match &missing[..] {
        [first, ..] if missing.len() == devices.len() => Err(usage!(said(first))),
        some => {
            for device in some {
                print_message(&said(device));
            }
            Ok(())
        }
    }
}

/// Formats a time in microseconds and the date of its measurement, such as `1.00 ms on 2026-11-20`.
pub(crate) fn format_time_with_date(us: f64, at_ms: u64) -> String {
    format!(
        "{} on {}",
        super::format_microseconds(us),
        format_date(at_ms)
    )
}

// Comparison of new results with earlier results or baselines.

/// The maximum size of a results file in bytes. Results of every workload and type on hundreds of
/// GPUs fit into it.
const MAX_RESULTS_FILE_BYTES: usize = 64 << 20;

/// The results that new ones are compared with.
#[derive(Debug)]
pub(crate) enum EarlierResults {
    /// Earlier results, in the order in which they were written.
    Results(Vec<OldResult>),
    /// The baselines of all GPUs.
    Baselines(Benchmarks),
}

/// An earlier result. Only the fields that identify the work or contain its time are read, because
/// results of every version have these fields.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct OldResult {
    id: String,
    backend: Backend,
    dtype: Dtype,
    n: u64,
    #[serde(default)]
    shape: Option<Shape>,
    #[serde(default)]
    device: OldDevice,
    #[serde(default)]
    to: OldDevice,
    device_time: Option<Interval>,
    host_time: Option<Interval>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct OldDevice {
    uuid: Option<String>,
}

/// The result of comparing a new result with an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// The old median divided by the new median. A value greater than 1 means that the new result
    /// is faster.
    pub(super) ratio: f64,
    /// Whether the new median is slower by more than the combined uncertainty of the old and the
    /// new median.
    pub(super) is_slower: bool,
    /// The speed relative to other GPUs of the same model: the median time of their baselines
    /// divided by the new median time. `None` if there are no such GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) siblings: Option<f64>,
    /// The old median in microseconds.
    pub(super) before_us: f64,
    /// The time of the old measurement in milliseconds since 1970, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before_ms: Option<u64>,
}

impl EarlierResults {
    /// Reads results from a file with one JSON object per line. Lines that are not results, such as
    /// errors, are skipped.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text =
            File::open(path).and_then(|file| bounded::read_text_from(file, MAX_RESULTS_FILE_BYTES));
        let text = text
            .with_context(|| format!("cannot read {shown}"))
            .map_err(Failure::from_usage_error)?;
        let results: Vec<OldResult> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if results.is_empty() {
            let cure = "give a file written by `gpumon bench --json`";
            return Err(usage!("{shown} contains no results: {cure}"));
        }
        Ok(Self::Results(results))
    }

    /// Compares an outcome with the baseline of its GPU, or with the last earlier result of the
    /// same work. A result from the same device is preferred. Returns `None` if no result matches.
    pub(crate) fn compare_with(&self, outcome: &RunOutcome) -> Option<Comparison> {
        match self {
            Self::Results(results) => compare_with_results(results, outcome),
            Self::Baselines(baselines) => compare_with_baselines(baselines, outcome),
        }
    }
}

impl Comparison {
    fn new(new: &Interval, old: &Interval, before_ms: Option<u64>) -> Option<Self> {
        let is_slower = new.is_slower(old);
        Some(Self {
            ratio: new.speed_ratio(old)?,
            is_slower,
            siblings: None,
            before_us: old.median_us,
            before_ms,
        })
    }
}

fn compare_with_baselines(baselines: &Benchmarks, outcome: &RunOutcome) -> Option<Comparison> {
    let uuid = outcome
        .device
        .uuid
        .as_deref()
        .filter(|_| outcome.backend == Backend::Cuda)?;
    let new = make_measurement(outcome, None)?;
    let old = baselines
        .baseline_results(uuid)
        .iter()
        .find(|old| old.is_same_work(&new))?;
    let siblings = baselines
        .find_siblings(uuid, &new)
        .map(|siblings| siblings.median_us / new.time.median_us);
    Some(Comparison {
        siblings,
        ..Comparison::new(&new.time, &old.time, Some(old.at_ms))?
    })
}

fn compare_with_results(results: &[OldResult], outcome: &RunOutcome) -> Option<Comparison> {
    let is_same = |old: &&OldResult| {
        (&*old.id, old.backend, old.dtype, old.n, old.shape)
            == (
                &*outcome.id,
                outcome.backend,
                outcome.dtype,
                outcome.n,
                outcome.shape,
            )
    };
    let all = || results.iter().rev().filter(is_same);
    let to = outcome.to.as_ref().and_then(|to| to.uuid.as_ref());
    let is_there =
        |old: &&OldResult| old.device.uuid == outcome.device.uuid && old.to.uuid.as_ref() == to;
    // Links between different pairs of GPUs may differ in speed. A result of another pair is
    // therefore used only if it is the only earlier result for this work.
    let may_stand_for_it = |_: &&OldResult| to.is_none() || all().count() == 1;
    let old = all()
        .find(is_there)
        .or_else(|| all().find(may_stand_for_it))?;
    let (old, new) = match (&old.device_time, &outcome.device_time) {
        (Some(old), Some(new)) => (old, new),
        _ => (old.host_time.as_ref()?, outcome.host_time.as_ref()?),
    };
    Comparison::new(&new.into(), old, None)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gpumon_probe::benchmarks::Measurement;
    use gpumon_workload::protocol::BenchJob;

    use super::*;
    use crate::fuzzing::make_outcome;

    fn read_earlier(text: &str) -> Result<EarlierResults> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        EarlierResults::read(file.path())
    }

    fn make_comparison(ratio: f64, before_us: f64) -> Comparison {
        Comparison {
            ratio,
            is_slower: false,
            siblings: None,
            before_us,
            before_ms: None,
        }
    }

    #[test]
    fn result_is_compared_with_own_and_sibling_baselines() {
        let stored = |us, at_ms| {
            vec![Measurement {
                at_ms,
                ..make_measurement(&make_outcome("", us), None).unwrap()
            }]
        };
        let mut baselines = Benchmarks::default();
        baselines.save_baseline("GPU-a", "NVIDIA H200", stored(100.0, 7));
        baselines.save_baseline("GPU-b", "NVIDIA H200", stored(80.0, 8));
        baselines.save_baseline("GPU-c", "NVIDIA L4", stored(1.0, 9));
        let earlier = EarlierResults::Baselines(baselines);
        let expected = Comparison {
            ratio: 0.5,
            is_slower: true,
            siblings: Some(0.4),
            before_us: 100.0,
            before_ms: Some(7),
        };
        assert_eq!(
            earlier.compare_with(&make_outcome("GPU-a", 200.0)),
            Some(expected)
        );
        assert_eq!(
            earlier
                .compare_with(&make_outcome("GPU-c", 1.0))
                .unwrap()
                .siblings,
            None
        );
        assert_eq!(
            earlier.compare_with(&make_outcome("GPU-d", 200.0)),
            None,
            "none stands for another"
        );
        assert_eq!(
            earlier.compare_with(&RunOutcome {
                n: 5,
                ..make_outcome("GPU-a", 100.0)
            }),
            None
        );
    }

    #[test]
    fn result_is_slower_if_confidence_intervals_are_disjoint() {
        let line = |outcome: &RunOutcome| serde_json::to_string(outcome).unwrap();
        let text = [
            line(&make_outcome("GPU-b", 900.0)),
            line(&make_outcome("GPU-a", 100.0)),
            line(&make_outcome("GPU-c", 500.0)),
        ];
        let earlier = read_earlier(&format!("{}\n{{\"error\":\"x\"}}\n", text.join("\n"))).unwrap();
        let compare = |uuid, us| earlier.compare_with(&make_outcome(uuid, us)).unwrap();
        assert_eq!(compare("GPU-a", 100.0), make_comparison(1.0, 100.0));
        assert_eq!(compare("GPU-a", 50.0), make_comparison(2.0, 100.0));
        assert!(!compare("GPU-a", 101.5).is_slower, "the intervals meet");
        assert!(compare("GPU-a", 125.0).is_slower);
        assert_eq!(
            compare("GPU-new", 250.0).ratio.to_bits(),
            2.0_f64.to_bits(),
            "the last of another device"
        );
        let other = RunOutcome {
            n: 5,
            ..make_outcome("GPU-a", 100.0)
        };
        assert_eq!(
            earlier.compare_with(&other),
            None,
            "another size is other work"
        );
    }

    #[test]
    fn result_is_not_compared_with_another_gpu_pair() {
        let between = |from: &str, to: &str, us| {
            let mut outcome = make_outcome(from, us);
            outcome.to = Some(gpumon_workload::protocol::DeviceName {
                uuid: Some(to.to_owned()),
                ..outcome.device.clone()
            });
            outcome
        };
        let line = |outcome: &RunOutcome| serde_json::to_string(outcome).unwrap();
        let [one, other] = [
            between("GPU-a", "GPU-b", 100.0),
            between("GPU-b", "GPU-a", 200.0),
        ];
        let both = read_earlier(&format!("{}\n{}\n", line(&one), line(&other))).unwrap();
        assert_eq!(both.compare_with(&one), Some(make_comparison(1.0, 100.0)));
        assert_eq!(both.compare_with(&between("GPU-a", "GPU-c", 100.0)), None);
        let single = read_earlier(&line(&one)).unwrap();
        assert!(
            single
                .compare_with(&between("GPU-x", "GPU-y", 100.0))
                .is_some(),
            "another machine has other GPUs"
        );
    }

    #[test]
    fn file_without_results_is_refused() {
        let said = |text: &str| read_earlier(text).unwrap_err().message().unwrap();
        let job = serde_json::to_string(&BenchJob::default()).unwrap();
        for text in ["", "nonsense", &job] {
            assert!(said(text).contains("gpumon bench --json"), "{text}");
        }
        assert!(
            EarlierResults::read(Path::new("/nowhere/old.json"))
                .unwrap_err()
                .message()
                .unwrap()
                .contains("/nowhere")
        );
    }
}
