//! The screen's own readings: a sampler, and the CPU usage of the processes in a sample. The
//! sampler runs on a separate thread, so that keys work even while the driver hangs.

use std::{
    collections::{HashMap, HashSet},
    ops::ControlFlow,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use gpumon_probe::{
    model::{Record, Sample},
    process_stat::{ProcessStat, read_boot_time_ms},
    sampler::{self, SharedInterval},
    vendor::Source,
};

use crate::{
    background::spawn_detached_thread,
    exit::Failure,
    options::{SourceArgs, build_live_view_options},
    top::{
        input::Input,
        model::{ProcessUsage, Update, Usage},
    },
};

/// The maximum number of processes that are read per sample. Reading a process takes 10 µs, or 50
/// µs if it has hundreds of threads.
const MAX_PROCESSES_READ: usize = 512;

/// The minimum time between two readings of CPU time. The kernel counts in steps of 10 ms, so
/// shorter times would yield only a few distinct values.
const MIN_CPU_INTERVAL: Duration = Duration::from_millis(200);

/// The time after which the boot time is read again, because it changes when the clock is set.
const BOOT_TIME_LIFETIME: Duration = Duration::from_mins(1);

/// Samples until the screen is closed. A failure is sent as an [`Input::Failed`].
pub(super) fn start_sampling(
    source: SourceArgs,
    interval: Arc<SharedInterval>,
    inputs: SyncSender<Input>,
) {
    let failed = inputs.clone();
    let body = move || {
        let sampled = source.open().map_err(Failure::from).and_then(|source| {
            sample_until_over(&source, interval, &inputs, &AtomicBool::new(false))
        });
        if let Err(failure) = sampled {
            let _ = inputs.send(Input::Failed(failure));
        }
    };
    // The thread also opens the driver, because opening a driver can hang.
    if let Err(error) = spawn_detached_thread("sampler", body) {
        let _ = failed.send(Input::Failed(error.into()));
    }
}

fn sample_until_over(
    source: &Arc<dyn Source>,
    interval: Arc<SharedInterval>,
    inputs: &SyncSender<Input>,
    is_over: &AtomicBool,
) -> Result<(), Failure> {
    let mut usage = UsageReader::new();
    sampler::run_sampler(source, &build_live_view_options(interval), |record| {
        if is_over.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        // Traces are values that the driver itself records. The screen does not use them, so they
        // are not copied.
        if matches!(record, Record::Trace(_)) {
            return ControlFlow::Continue(());
        }
        if let Record::Sample(sample) = record {
            let _ = inputs.send(Input::Update(Update::Usage(
                usage.read_host_usage(sample, Instant::now()),
            )));
        }
        match inputs.send(Input::Update(Update::Record(Box::new(record.clone())))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    Ok(())
}

/// A sampler that replaces a lost server. Sampling ends when this value is dropped.
pub(super) struct FallbackSampler {
    is_over: Arc<AtomicBool>,
    failure: Receiver<Failure>,
}

impl FallbackSampler {
    /// Starts sampling. The source is opened only if `opened` is empty, because a driver should be
    /// opened only once.
    pub(super) fn start(
        source: SourceArgs,
        opened: Arc<OnceLock<Arc<dyn Source>>>,
        interval: Arc<SharedInterval>,
        inputs: SyncSender<Input>,
    ) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (failed, failure) = sync_channel(2);
        let (over, failed_too) = (Arc::clone(&is_over), failed.clone());
        let body = move || {
            let source = match opened.get() {
                Some(source) => Ok(Arc::clone(source)),
                None => source
                    .open()
                    .map(|source| Arc::clone(opened.get_or_init(|| source))),
            };
            let ended = source
                .map_err(Failure::from)
                .and_then(|source| sample_until_over(&source, interval, &inputs, &over));
            if let Err(failure) = ended {
                let _ = failed.send(failure);
            }
        };
        if let Err(error) = spawn_detached_thread("sampler", body) {
            let _ = failed_too.send(error.into());
        }
        Self { is_over, failure }
    }

    /// Returns the reason why sampling failed. After the first call, returns `None` for the same
    /// failure.
    pub(super) fn take_failure(&self) -> Option<String> {
        self.failure.try_recv().ok()?.message()
    }
}

impl Drop for FallbackSampler {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// A reader for the CPU usage of a sample's processes. It is called when the sample arrives.
pub(super) struct UsageReader {
    root: PathBuf,
    booted_ms: Option<u64>,
    booted_read: Instant,
    before: HashMap<u32, PreviousReading>,
}

/// The previous reading of a process's CPU time.
#[derive(Clone, Copy)]
struct PreviousReading {
    /// The start time of the process, by which a reused PID is detected.
    started_ms: Option<u64>,
    cpu_ms: u64,
    at: Instant,
    percent: Option<f64>,
}

impl UsageReader {
    pub(super) fn new() -> Self {
        Self::with_root("/proc".into())
    }

    fn with_root(root: PathBuf) -> Self {
        let booted_ms = read_boot_time_ms(&root);
        Self {
            root,
            booted_ms,
            booted_read: Instant::now(),
            before: HashMap::new(),
        }
    }

    pub(super) fn read_host_usage(&mut self, sample: &Sample, now: Instant) -> Usage {
        if now.saturating_duration_since(self.booted_read) > BOOT_TIME_LIFETIME {
            (self.booted_ms, self.booted_read) = (read_boot_time_ms(&self.root), now);
        }
        let mut usage = Usage::new();
        let mut before = HashMap::new();
        let mut asked = HashSet::new();
        for process in sample
            .gpus
            .iter()
            .filter_map(|gpu| gpu.processes.value())
            .flatten()
        {
            if asked.len() == MAX_PROCESSES_READ {
                break;
            }
            if asked.insert(process.pid)
                && let Some((own, now)) =
                    self.read_process(process.pid, process.started_ms.value().copied(), now)
            {
                usage.insert(process.pid, own);
                before.insert(process.pid, now);
            }
        }
        self.before = before;
        usage
    }

    /// Reads the usage of one process. Returns `None` if the process is not on this machine or this
    /// user may not read it.
    fn read_process(
        &self,
        pid: u32,
        started_ms: Option<u64>,
        now: Instant,
    ) -> Option<(ProcessUsage, PreviousReading)> {
        let stat = ProcessStat::read_with_boot_time(&self.root, pid, self.booted_ms).ok()?;
        if !stat.may_have_started_at(started_ms) {
            return None;
        }
        let first = PreviousReading {
            started_ms: stat.birth.started_ms,
            cpu_ms: stat.cpu_ms,
            at: now,
            percent: None,
        };
        let before = self
            .before
            .get(&pid)
            .filter(|before| before.started_ms == stat.birth.started_ms);
        let compared = before.map_or(first, |before| {
            match now.saturating_duration_since(before.at) {
                short if short < MIN_CPU_INTERVAL => *before,
                elapsed => {
                    let used_ms = stat.cpu_ms.saturating_sub(before.cpu_ms) as f64;
                    PreviousReading {
                        percent: Some(used_ms / elapsed.as_secs_f64() / 10.0),
                        ..first
                    }
                }
            }
        });
        Some((
            ProcessUsage {
                cpu_percent: compared.percent,
                threads: stat.threads,
            },
            compared,
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gpumon_probe::model::{Process, Reading};

    use super::*;
    use crate::top::testing;

    fn make_sample(pids: &[u32]) -> Sample {
        let mut sample = testing::simulated_sample(1);
        let template = testing::example_processes(1).remove(0);
        let started_ms = Reading::Absent(gpumon_probe::model::Absence::Unknown);
        let process = |pid: &u32| Process {
            pid: *pid,
            started_ms: started_ms.clone(),
            ..template.clone()
        };
        sample.gpus[0].processes = Reading::Now(pids.iter().map(process).collect());
        sample
    }

    fn write_stat(root: &std::path::Path, pid: u32, cpu_ticks: u64, started_ticks: u64) {
        fs::create_dir_all(root.join(pid.to_string())).unwrap();
        let stat = format!(
            "{pid} (x) R 1 0 0 0 0 0 0 0 0 0 {cpu_ticks} 0 0 0 0 0 3 0 {started_ticks} 0 0 0\n"
        );
        fs::write(root.join(format!("{pid}/stat")), stat).unwrap();
    }

    #[test]
    fn cpu_time_is_not_compared_after_pid_reuse() {
        let root = std::env::temp_dir().join(format!("gpumon-usage-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("stat"), "btime 1700000000\n").unwrap();
        let mut reader = UsageReader::with_root(root.clone());
        let begun = Instant::now();
        let mut percent = |cpu_ticks, started_ticks, after_ms| {
            write_stat(&root, 7, cpu_ticks, started_ticks);
            reader.read_host_usage(&make_sample(&[7]), begun + Duration::from_millis(after_ms))[&7]
                .cpu_percent
        };
        assert_eq!(percent(100, 5, 0), None);
        assert_eq!(percent(110, 5, 100), None, "too short a time");
        assert_eq!(percent(250, 5, 1000), Some(150.0));
        assert_eq!(percent(260, 5, 1100), Some(150.0));
        assert_eq!(percent(9, 9000, 3000), None, "its PID is used again");
        let usage = reader.read_host_usage(&make_sample(&[7, 8]), begun + Duration::from_secs(9));
        assert_eq!(usage[&7].threads, 3);
        assert!(!usage.contains_key(&8), "{usage:?}");
        fs::write(root.join("8"), "no folder").unwrap();
        assert!(reader.read_host_usage(&make_sample(&[8]), begun).is_empty());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn number_of_processes_with_host_usage_is_limited() {
        let root = std::env::temp_dir().join(format!("gpumon-usage-many-{}", std::process::id()));
        // No files are written for the first two PIDs, so these processes do not exist.
        let pids: Vec<u32> = (1..=MAX_PROCESSES_READ as u32 + 1).collect();
        for pid in &pids[2..] {
            write_stat(&root, *pid, 1, 1);
        }
        let usage = UsageReader::with_root(root.clone())
            .read_host_usage(&make_sample(&pids), Instant::now());
        assert_eq!(usage.len(), MAX_PROCESSES_READ - 2);
        assert!(!usage.contains_key(&(MAX_PROCESSES_READ as u32 + 1)));
        fs::remove_dir_all(&root).unwrap();
    }
}
