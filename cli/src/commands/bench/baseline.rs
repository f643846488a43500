//! Stored results: the baseline and the latest results of each GPU.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use gpumon_probe::benchmarks::{self, Benchmarks, FILE, Measurement};
use gpumon_workload::{
    catalogue,
    protocol::{
        Backend, BackendChoice, BenchJob, BenchWork, Bound, DeviceName, Dtype, Load, Outcome, Where,
    },
};
use serde_json::Value;

use super::table::name;
use crate::{
    data_dir::DataDirArgs,
    describe,
    exit::{Failure, Result, say, usage},
    moment::date,
};

/// The minimum time of a result that is stored, in microseconds. In shorter runs the launch
/// overhead dominates, and results vary by about 10 % between runs.
const SHORTEST_US: f64 = 20.0;

/// The options that store results, or compare results with stored ones.
#[derive(Debug, clap::Args)]
pub(super) struct BaselineArgs {
    /// Store the verified results of each GPU as its baseline, replacing results of the same
    /// workload, type and size
    #[arg(long, conflicts_with_all = ["compare", "pairs", "engine"])]
    save_baseline: bool,

    /// Run the workloads of the GPU's baseline, or only those that are named, with the same types
    /// and sizes; compare each result with the baseline of this GPU and with those of other GPUs of
    /// the same model
    #[arg(long, conflicts_with_all = ["compare", "save_baseline", "pairs", "engine", "size", "backend"])]
    baseline: bool,

    #[command(flatten)]
    data_dir: DataDirArgs,
}

impl BaselineArgs {
    /// Opens the store for the results of a job, and returns it with the baselines to compare with;
    /// `None` if neither option is given. With `--baseline`, the job is changed to run exactly the
    /// workloads of the baselines.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written, or if no matching baseline exists.
    pub(super) fn prepare(
        &self,
        job: &mut BenchJob,
    ) -> Result<Option<(Option<Benchmarks>, Store)>> {
        if !self.save_baseline && !self.baseline {
            return Ok(None);
        }
        job.settle = true;
        let (store, known) = Store::open(&self.data_dir, self.save_baseline)?;
        if self.baseline {
            job.works = works(&known, &job.ids, job.dtype, &store.path)?;
            (job.ids, job.dtype) = (Vec::new(), None);
            job.place = Where {
                backend: BackendChoice::Cuda,
                ..job.place.clone()
            };
        }
        // This reports a file that cannot be written before the measurements start.
        store.change(|_| {}).map_err(Failure::usage)?;
        Ok(Some((self.baseline.then_some(known), store)))
    }
}

/// The results to be stored in a file.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    /// Whether the results replace the baseline or only the latest results.
    is_baseline: bool,
    /// The GPU and its results, by UUID. The GPU has the name that CUDA reports.
    gpus: BTreeMap<String, (DeviceName, Vec<Measurement>)>,
    /// The names of the results that are not stored, by the reason.
    left_out: BTreeMap<&'static str, Vec<String>>,
}

impl Store {
    /// Opens the store in this directory and reads the stored results.
    ///
    /// # Errors
    /// Returns an error if the directory is `none`, or the file cannot be read.
    fn open(folder: &DataDirArgs, is_baseline: bool) -> Result<(Self, Benchmarks)> {
        let none = "baselines are kept in a data directory, and it is `none`: name one with --data-dir DIR";
        let folder = folder.folder().ok_or_else(|| usage!(none))?;
        let path = folder.join(FILE);
        let known = benchmarks::read(&path);
        let known = known.map_err(|error| Failure::usage(cannot("read", &path, &error)))?;
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

    fn change(&self, change: impl FnOnce(&mut Benchmarks)) -> anyhow::Result<()> {
        benchmarks::change(&self.path, change).map_err(|error| cannot("write", &self.path, &error))
    }

    /// Adds a result, unless it does not reliably show the speed of the GPU.
    pub(super) fn take(&mut self, outcome: &Outcome, load: Option<&Load>) {
        match (
            reason_against(outcome, load),
            measurement(outcome, load),
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
                .push(name(outcome)),
        }
    }

    /// Writes the results of a run on these devices. Prints which results are not stored, and which
    /// devices have no baseline among `works`.
    ///
    /// # Errors
    /// Returns an error if no result can be stored, or if writing fails.
    pub(super) fn write(self, devices: &[DeviceName], works: &[BenchWork]) -> Result {
        // A run that has not started has already reported its error.
        if devices.is_empty() {
            return Ok(());
        }
        if !self.is_baseline {
            report_missing(devices, works, &self.path)?;
        }
        for (reason, names) in &self.left_out {
            say(&format!(
                "not stored, because {reason}: {}",
                names.join(", ")
            ));
        }
        let path = self.path.display();
        if self.gpus.is_empty() && self.is_baseline {
            return Err(
                anyhow!("no baseline was stored: there is no verified result of a GPU").into(),
            );
        }
        if self.gpus.is_empty() {
            return Ok(());
        }
        self.change(|known| {
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
                let results = match results.len() {
                    1 => "1 result".to_owned(),
                    count => format!("{count} results"),
                };
                say(&format!(
                    "stored {results} as the baseline of {} in {path}",
                    describe::device(device)
                ));
            }
        }
        Ok(())
    }
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!(
        "cannot {what} {}: {error}: name another directory with --data-dir, or move the file away",
        path.display()
    )
}

/// Returns the reason why a result does not show the speed of the GPU, if any.
fn reason_against(outcome: &Outcome, load: Option<&Load>) -> Option<&'static str> {
    match outcome {
        _ if outcome.partial => Some("interrupted"),
        _ if !outcome.verify.ok => Some("not verified"),
        _ if outcome.backend == Backend::Cpu => Some("the CPU has no baseline"),
        _ if outcome.to.is_some() => Some("they run between two GPUs"),
        _ if outcome.roofline.limit == Bound::Driver => Some("they measure driver and CPU"),
        _ if outcome
            .device_time
            .as_ref()
            .is_some_and(|time| time.median_us < SHORTEST_US) =>
        {
            Some("they are not much longer than a launch")
        }
        _ if load.is_some_and(|load| load.others.is_anybody_listed()) => {
            Some("other processes were on the GPU")
        }
        _ => None,
    }
}

/// Returns the part of a result that is compared with a baseline. The GPU's clock is preferred to
/// the host's. `None` if nothing was timed.
pub(super) fn measurement(outcome: &Outcome, load: Option<&Load>) -> Option<Measurement> {
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

/// Returns the work of the baselines, limited to these workloads and this type if given. Workloads
/// and types unknown to this version are left out.
///
/// # Errors
/// Returns an error if no baseline matches.
fn works(
    known: &Benchmarks,
    ids: &[String],
    dtype: Option<Dtype>,
    path: &Path,
) -> Result<Vec<BenchWork>> {
    let works: Vec<_> = known
        .baselines()
        .filter_map(|(gpu, baseline)| work(gpu, baseline))
        .collect();
    let path = path.display();
    let missing = |what: &str, names: &str| {
        let cure = format!(
            "store one with `gpumon bench{names} --save-baseline`; workloads shorter than {SHORTEST_US} us have none"
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

fn work(gpu: &str, baseline: &Measurement) -> Option<BenchWork> {
    catalogue::all().find(|about| about.id == baseline.workload)?;
    let dtype = serde_json::from_value(Value::from(&*baseline.dtype)).ok()?;
    Some(BenchWork {
        id: baseline.workload.clone(),
        dtype,
        n: baseline.n,
        gpu: gpu.to_owned(),
    })
}

/// Prints which of the GPUs have no baseline.
///
/// # Errors
/// Returns an error if none of the GPUs has a baseline.
fn report_missing(devices: &[DeviceName], works: &[BenchWork], path: &Path) -> Result {
    let has_one = |device: &&DeviceName| {
        works
            .iter()
            .any(|work| Some(&work.gpu) == device.uuid.as_ref())
    };
    let said = |device: &DeviceName| {
        let index = device.index.unwrap_or_default();
        let cure = format!("store one with `gpumon bench --save-baseline --device {index}`");
        format!(
            "no such baseline of {} is stored in {}: {cure}",
            describe::device(device),
            path.display()
        )
    };
    let missing: Vec<_> = devices.iter().filter(|device| !has_one(device)).collect();
    match &missing[..] {
        [first, ..] if missing.len() == devices.len() => Err(usage!(said(first))),
        some => {
            for device in some {
                say(&said(device));
            }
            Ok(())
        }
    }
}

/// Formats a time in microseconds and its date, such as `1.00 ms on 2026-11-20`.
pub(crate) fn format_dated(us: f64, at_ms: u64) -> String {
    format!("{} on {}", super::format_microseconds(us), date(at_ms))
}
