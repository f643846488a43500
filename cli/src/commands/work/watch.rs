//! Reads GPUs by NVML while they work, on a thread that may hang without holding anything up.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

use gpumon_probe::{
    model::{GpuSample, Health, Record},
    owner::CommandLines,
    sampler::{self, Options},
    vendor::Extent,
};

use super::{
    load::{Load, fresh, watts},
    others::Others,
};
use crate::options::SourceArgs;

/// As often as a GPU is read for anybody; what that costs does not show in the times.
const INTERVAL: Duration = Duration::from_millis(100);
/// As often as the driver has something new to say of all its counters.
const WHOLE_INTERVAL: Duration = Duration::from_millis(200);
/// As many samples of each as are of use: of ten minutes.
const KEPT: usize = 6000;
/// How long NVML may take to begin. Without it, work goes on: `gpumon doctor` says why there is nothing to read.
const PATIENCE: Duration = Duration::from_secs(5);
/// A process that has just ended is listed for a moment.
const LINGERING: Duration = Duration::from_millis(400);

/// By UUID.
type Samples = BTreeMap<String, Vec<GpuSample>>;

/// NVML's readings of some GPUs, for as long as this is there.
pub(super) struct Watch {
    samples: Arc<Mutex<Samples>>,
    /// Who was there before anything began, by UUID.
    before: BTreeMap<String, Vec<u32>>,
}

impl Watch {
    /// Reads nothing.
    pub(super) fn nothing() -> Self {
        Self { samples: Arc::default(), before: BTreeMap::new() }
    }

    /// Begins to read clocks, power, energy and who is there.
    pub(super) fn start(source: &SourceArgs, uuids: Vec<String>) -> Self {
        Self::read(source, uuids, Extent::Metered, INTERVAL)
    }

    /// Begins to read all that a server would.
    pub(super) fn whole(source: &SourceArgs, uuids: Vec<String>) -> Self {
        Self::read(source, uuids, Extent::Whole, WHOLE_INTERVAL)
    }

    /// Begins to read the GPUs with these UUIDs, and waits for the first readings. Of those that NVML does not know, and
    /// where it is not there, nothing is ever read.
    fn read(source: &SourceArgs, uuids: Vec<String>, extent: Extent, interval: Duration) -> Self {
        let mut watch = Self::nothing();
        if uuids.is_empty() {
            return watch;
        }
        let (kept, source) = (Arc::clone(&watch.samples), source.clone());
        let (tell, first) = mpsc::channel();
        thread::spawn(move || {
            let options = Options { extent, ..Options::new(interval, CommandLines::Own) };
            let keep = |record: &Record| {
                if let Record::Sample(sample) = record {
                    for gpu in sample.gpus.iter().filter(|gpu| gpu.health == Health::Ok) {
                        if let Some(uuid) = gpu.uuid.as_ref().filter(|uuid| uuids.contains(uuid)) {
                            keep(lock(&kept).entry(uuid.clone()).or_default(), gpu);
                        }
                    }
                    // Nobody waits for it but at the start.
                    let _ = tell.send(());
                }
                // Whoever looked once at GPUs has this end with the look.
                if Arc::strong_count(&kept) == 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let _ = source.open().and_then(|source| sampler::run(&source, &options, keep));
        });
        // Where the thread has ended there is nothing to wait for.
        let _ = first.recv_timeout(PATIENCE);
        let samples = lock(&watch.samples);
        let pids = |samples: &Vec<GpuSample>| samples.last().map(Others::pids).unwrap_or_default();
        let before = samples.iter().map(|(uuid, samples)| (uuid.clone(), pids(samples))).collect();
        drop(samples);
        watch.before = before;
        watch
    }

    /// Who of other users computes on this GPU, and still does a moment later.
    pub(super) fn foreign(&self, uuid: &str) -> Others {
        let now = || lock(&self.samples).get(uuid).and_then(|samples| samples.last()).map(Others::foreign);
        let others = now().unwrap_or_default();
        if others.is_empty() {
            return others;
        }
        thread::sleep(LINGERING);
        now().unwrap_or_default()
    }

    /// What was read of this GPU from when to when, in ms since 1970; `None` where nothing was.
    pub(super) fn between(&self, uuid: &str, from_ms: u64, to_ms: u64) -> Option<Load> {
        let before = self.before.get(uuid).map_or(&[][..], Vec::as_slice);
        Load::of(lock(&self.samples).get(uuid)?, from_ms, to_ms, before)
    }

    /// All that was read of this GPU.
    pub(super) fn samples(&self, uuid: &str) -> Vec<GpuSample> {
        lock(&self.samples).get(uuid).cloned().unwrap_or_default()
    }

    /// Watts and degrees Celsius of this GPU, as they were read last.
    pub(super) fn last(&self, uuid: &str) -> (Option<f64>, Option<f64>) {
        let samples = lock(&self.samples);
        let last = samples.get(uuid).and_then(|samples| samples.last());
        (last.and_then(watts), last.and_then(|sample| fresh(&sample.temperature.gpu_celsius)))
    }
}

fn keep(kept: &mut Vec<GpuSample>, gpu: &GpuSample) {
    kept.push(gpu.clone());
    let surplus = kept.len().saturating_sub(KEPT);
    kept.drain(..surplus);
}

fn lock(samples: &Mutex<Samples>) -> MutexGuard<'_, Samples> {
    samples.lock().unwrap_or_else(PoisonError::into_inner)
}
