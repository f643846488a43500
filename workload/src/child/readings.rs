//! The driver's readings of GPUs while they work, on a thread that may hang without holding
//! anything up.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

use gpumon_probe::{
    model::{Gpu, GpuSample, Health},
    vendor::ReadDepth,
};

use super::{
    load::{fresh, load_of, watts},
    other_processes::{of_other_users, pids},
};
use crate::protocol::{Load, OtherProcesses};

/// As many samples of each as are of use: of ten minutes.
const KEPT: usize = 6000;
/// How long the driver may take to begin. Without it, work goes on: `gpumon doctor` says why there
/// is nothing to read.
const PATIENCE: Duration = Duration::from_secs(5);
/// A process that has just ended is listed for a moment.
const LINGERING: Duration = Duration::from_millis(400);

/// Reads GPUs by the driver's management library.
pub trait ReadDriver: Send + Sync {
    /// Returns the GPUs of all vendors. It may take as long as the drivers do.
    fn list_gpus(&self) -> Vec<Gpu>;

    /// Reads all GPUs at this interval, and hands each sample on until that breaks off. Returns
    /// where nothing can be read.
    fn read(
        &self,
        depth: ReadDepth,
        interval: Duration,
        on_sample: &mut dyn FnMut(&[GpuSample]) -> ControlFlow<()>,
    );
}

/// As often as a GPU is read for anybody, which does not show in the times; of all of its counters,
/// as often as the driver has something new to say.
fn interval(depth: ReadDepth) -> Duration {
    Duration::from_millis(if depth == ReadDepth::Full { 200 } else { 100 })
}

/// By UUID.
type Samples = BTreeMap<String, Vec<GpuSample>>;

/// The driver's readings of some GPUs, for as long as this is there.
pub(super) struct Readings {
    samples: Arc<Mutex<Samples>>,
    /// Who was there before anything began, by UUID.
    before: BTreeMap<String, Vec<u32>>,
}

impl Readings {
    pub(super) fn none() -> Self {
        Self {
            samples: Arc::default(),
            before: BTreeMap::new(),
        }
    }

    /// Begins to read the GPUs with these UUIDs, and waits for the first readings. Of those that
    /// the driver does not know, and where it is not there, nothing is ever read.
    pub(super) fn start(
        driver: &Arc<dyn ReadDriver>,
        uuids: Vec<String>,
        depth: ReadDepth,
    ) -> Self {
        let mut readings = Self::none();
        if uuids.is_empty() {
            return readings;
        }
        let (kept, driver) = (Arc::clone(&readings.samples), Arc::clone(driver));
        let (sender, first) = mpsc::channel();
        thread::spawn(move || {
            driver.read(depth, interval(depth), &mut |gpus| {
                for gpu in gpus.iter().filter(|gpu| gpu.health == Health::Ok) {
                    if let Some(uuid) = gpu.uuid.as_ref().filter(|uuid| uuids.contains(uuid)) {
                        keep(lock(&kept).entry(uuid.clone()).or_default(), gpu);
                    }
                }
                // Nobody waits for it but at the start.
                let _ = sender.send(());
                // It ends with the readings that somebody wants.
                if Arc::strong_count(&kept) == 1 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        });
        // Where the thread has ended there is nothing to wait for.
        let _ = first.recv_timeout(PATIENCE);
        let samples = lock(&readings.samples);
        let pids = |samples: &Vec<GpuSample>| samples.last().map(pids).unwrap_or_default();
        let before = samples
            .iter()
            .map(|(uuid, samples)| (uuid.clone(), pids(samples)))
            .collect();
        drop(samples);
        readings.before = before;
        readings
    }

    /// Who of other users computes on this GPU, and still does a moment later.
    pub(super) fn foreign_processes(&self, uuid: &str) -> OtherProcesses {
        let now = || {
            lock(&self.samples)
                .get(uuid)
                .and_then(|samples| samples.last())
                .map(of_other_users)
        };
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
        load_of(lock(&self.samples).get(uuid)?, from_ms, to_ms, before)
    }

    pub(super) fn samples(&self, uuid: &str) -> Vec<GpuSample> {
        lock(&self.samples).get(uuid).cloned().unwrap_or_default()
    }

    /// Watts and degrees Celsius of this GPU, as they were read last.
    pub(super) fn last(&self, uuid: &str) -> (Option<f64>, Option<f64>) {
        let samples = lock(&self.samples);
        let last = samples.get(uuid).and_then(|samples| samples.last());
        (
            last.and_then(watts),
            last.and_then(|sample| fresh(&sample.temperature.gpu_celsius)),
        )
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

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Reading};

    use super::*;

    /// Reads one GPU, warmer each time, until nobody wants more.
    struct Warming;

    impl ReadDriver for Warming {
        fn list_gpus(&self) -> Vec<Gpu> {
            Vec::new()
        }

        fn read(
            &self,
            _: ReadDepth,
            _: Duration,
            on_sample: &mut dyn FnMut(&[GpuSample]) -> ControlFlow<()>,
        ) {
            for at_ms in 1.. {
                let mut gpu = GpuSample::absent(
                    0,
                    Some("GPU-a".to_owned()),
                    at_ms,
                    Health::Ok,
                    &Absence::Unknown,
                );
                gpu.temperature.gpu_celsius = Reading::Now(at_ms as f64);
                if on_sample(&[gpu]).is_break() {
                    return;
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    #[test]
    fn what_a_driver_reads_of_the_gpus_that_are_meant_is_kept() {
        let driver: Arc<dyn ReadDriver> = Arc::new(Warming);
        let readings = Readings::start(&driver, vec!["GPU-a".to_owned()], ReadDepth::Metered);
        assert!(readings.last("GPU-a").1.is_some() && !readings.samples("GPU-a").is_empty());
        assert!(
            readings.between("GPU-a", 1, 1).is_some() && readings.between("GPU-a", 0, 0).is_none()
        );
        let of_another = Readings::start(&driver, vec!["GPU-b".to_owned()], ReadDepth::Full);
        assert!(
            of_another.samples("GPU-a").is_empty()
                && of_another.foreign_processes("GPU-b").is_empty()
        );
    }
}
