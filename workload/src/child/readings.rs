//! The driver's readings of GPUs while they work. They are read on a thread that may hang without
//! delaying the work.

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

/// The maximum number of samples of a GPU, which cover ten minutes.
const KEPT: usize = 6000;
/// The time limit for the first reading. After that, the work starts without readings; `gpumon
/// doctor` shows why there are none.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time for which a process may still be listed after its end.
const LINGERING: Duration = Duration::from_millis(400);

/// A reader of GPUs that uses the management library of the driver.
pub trait ReadDriver: Send + Sync {
    /// Returns the GPUs of all vendors, which may take as long as the drivers do.
    fn list_gpus(&self) -> Vec<Gpu>;

    /// Reads all GPUs at this interval, and passes each sample to `on_sample` until that breaks.
    /// Returns early if nothing can be read.
    fn read(
        &self,
        depth: ReadDepth,
        interval: Duration,
        on_sample: &mut dyn FnMut(&[GpuSample]) -> ControlFlow<()>,
    );
}

/// Returns the time between two readings. All counters are read as often as the driver updates
/// them. Other readings are taken more often, which does not affect the measured times.
fn interval(depth: ReadDepth) -> Duration {
    Duration::from_millis(if depth == ReadDepth::Full { 200 } else { 100 })
}

/// The samples of each GPU by its UUID.
type Samples = BTreeMap<String, Vec<GpuSample>>;

/// The driver's readings of some GPUs, which continue until this is dropped.
pub(super) struct Readings {
    samples: Arc<Mutex<Samples>>,
    /// The PIDs on each GPU before the work began, by UUID.
    before: BTreeMap<String, Vec<u32>>,
}

impl Readings {
    pub(super) fn none() -> Self {
        Self {
            samples: Arc::default(),
            before: BTreeMap::new(),
        }
    }

    /// Starts to read the GPUs with these UUIDs, and waits for the first readings. There are never
    /// any readings of GPUs that the driver does not know, or without a driver.
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
                // The receiver only waits for the first sample.
                let _ = sender.send(());
                // Reading ends when nobody uses the readings anymore.
                if Arc::strong_count(&kept) == 1 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        });
        // If the thread has ended, there is nothing to wait for.
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

    /// Returns the processes of other users that compute on a GPU, and still do a moment later.
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

    /// Returns a summary of a GPU's readings in a time range, in milliseconds since 1970; `None` if
    /// there are none.
    pub(super) fn between(&self, uuid: &str, from_ms: u64, to_ms: u64) -> Option<Load> {
        let before = self.before.get(uuid).map_or(&[][..], Vec::as_slice);
        load_of(lock(&self.samples).get(uuid)?, from_ms, to_ms, before)
    }

    pub(super) fn samples(&self, uuid: &str) -> Vec<GpuSample> {
        lock(&self.samples).get(uuid).cloned().unwrap_or_default()
    }

    /// Returns the last readings of a GPU in watts and in degrees Celsius.
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

    /// A reader of one GPU that is warmer in each sample.
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
