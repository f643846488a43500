//! Storage of benchmark results: the baseline and the latest results of each GPU.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use gpumon_probe::benchmarks::{self, Benchmarks, FILE_NAME, Measurement};
use gpumon_workload::{
    catalogue,
    protocol::{
        Backend, BackendChoice, BenchJob, BenchWork, DeviceName, Dtype, LimitingResource, Load,
        RunOutcome, Where,
    },
};
use serde_json::Value;

use super::table::format_name;
use crate::{
    data_dir::DataDirArgs,
    describe,
    exit::{Failure, Result, print_message, usage},
    moment::format_date,
};

/// The shortest median time of a stored result, in microseconds. In shorter runs, launch overhead
/// dominates, and results vary by about 10 % between runs.
const MIN_TIME_US: f64 = 20.0;

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
    /// Opens the store for the results of a job, and returns it with the baselines to compare with.
    /// Returns `None` if neither `--save-baseline` nor `--baseline` is given. With `--baseline`,
    /// changes the job to run exactly the workloads of the baselines.
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
        // This empty change reports a file that cannot be written before the measurements start.
        store.update_benchmarks(|_| {}).map_err(Failure::usage)?;
        Ok(Some((self.baseline.then_some(known), store)))
    }
}

/// Results that are written to the file of benchmarks at the end of a run.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    /// Whether the results are stored as the baseline, rather than only as the latest results.
    is_baseline: bool,
    /// Each GPU's name, as CUDA reports it, and results, by UUID.
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
        let known =
            known.map_err(|error| Failure::usage(make_file_error("read", &path, &error)))?;
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
        benchmarks::change(&self.path, change)
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
                .push(format_name(outcome)),
        }
    }

    /// Writes the results of a run on `devices`. Prints which results are not stored, and which
    /// devices have no baseline among `works`.
    ///
    /// # Errors
    /// Returns an error if no result can be stored, or if writing fails.
    pub(super) fn write(self, devices: &[DeviceName], works: &[BenchWork]) -> Result {
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
                let results = match results.len() {
                    1 => "1 result".to_owned(),
                    count => format!("{count} results"),
                };
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
        _ if outcome.backend == Backend::Cpu => Some("run on the CPU"),
        _ if outcome.to.is_some() => Some("run between two GPUs"),
        _ if outcome.roofline.limit == LimitingResource::Driver => {
            Some("limited by driver and CPU")
        }
        _ if outcome
            .device_time
            .as_ref()
            .is_some_and(|time| time.median_us < MIN_TIME_US) =>
        {
            Some("too short compared with a kernel launch")
        }
        _ if load.is_some_and(|load| load.others.has_listed_processes()) => {
            Some("other processes used the GPU")
        }
        _ => None,
    }
}

/// Returns the part of a result that is compared with a baseline. Times measured by the GPU are
/// preferred to times measured by the host. Returns `None` if nothing was timed.
pub(super) fn make_measurement(outcome: &RunOutcome, load: Option<&Load>) -> Option<Measurement> {
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

/// Returns the work to run for the stored baselines, limited to `ids` and `dtype` if given.
/// Workloads and types that this version does not know are left out.
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
             {MIN_TIME_US} us have no baseline"
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
