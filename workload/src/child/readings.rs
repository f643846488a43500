//! The driver's readings of GPUs while they work. They are read on a separate thread, so that a
//! hanging driver does not delay the work.

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
    load::{current_watts, fresh_value, summarize_load},
    other_processes::{computing_pids, find_other_users},
};
use crate::protocol::{Load, OtherProcesses};

/// The maximum number of samples kept for a GPU, enough for ten minutes.
const MAX_SAMPLES: usize = 6000;
/// The time limit for the first reading. If it is exceeded, the work starts without readings.
/// `gpumon doctor` shows why there are none.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for which the driver may still list a process after it has ended.
const LISTING_DELAY: Duration = Duration::from_millis(400);

/// A reader of GPUs that uses the driver's management library.
pub trait DriverReader: Send + Sync {
    /// Returns the GPUs of all vendors. The call takes as long as the drivers take to respond.
    fn list_gpus(&self) -> Vec<Gpu>;

    /// Reads all GPUs at this interval, and passes each sample to `on_sample` until that returns
    /// `Break`. Returns early if there is nothing to read.
    fn read_gpus(
        &self,
        depth: ReadDepth,
        interval: Duration,
        on_sample: &mut dyn FnMut(&[GpuSample]) -> ControlFlow<()>,
    );
}

/// Returns the interval between readings. A full reading includes all counters, which the driver
/// updates every 200 ms. Other readings are taken twice as often, because this does not affect the
/// measured times.
fn read_interval(depth: ReadDepth) -> Duration {
    Duration::from_millis(if depth == ReadDepth::Full { 200 } else { 100 })
}

/// The samples of each GPU, by UUID.
type Samples = BTreeMap<String, Vec<GpuSample>>;

/// The driver's readings of some GPUs. They continue until this value is dropped.
pub(super) struct GpuReadings {
    samples: Arc<Mutex<Samples>>,
    /// The PIDs of processes that were computing on each GPU before the work began, by UUID.
    before: BTreeMap<String, Vec<u32>>,
}

impl GpuReadings {
    pub(super) fn empty() -> Self {
        Self {
            samples: Arc::default(),
            before: BTreeMap::new(),
        }
    }

    /// Starts to read the GPUs with these UUIDs, and waits for the first readings. If there is no
    /// driver, or if the driver does not know a GPU, its readings stay empty.
    pub(super) fn start(
        driver: &Arc<dyn DriverReader>,
        uuids: Vec<String>,
        depth: ReadDepth,
    ) -> Self {
        let mut readings = Self::empty();
        if uuids.is_empty() {
            return readings;
        }
        let (kept, driver) = (Arc::clone(&readings.samples), Arc::clone(driver));
        let (sender, first) = mpsc::channel();
        thread::spawn(move || {
            driver.read_gpus(depth, read_interval(depth), &mut |gpus| {
                for gpu in gpus.iter().filter(|gpu| gpu.health == Health::Ok) {
                    if let Some(uuid) = gpu.uuid.as_ref().filter(|uuid| uuids.contains(uuid)) {
                        keep_sample(lock_samples(&kept).entry(uuid.clone()).or_default(), gpu);
                    }
                }
                // Sending can fail, because the receiver only waits for the first sample.
                let _ = sender.send(());
                // Reading ends when this thread is the last owner of the samples.
                if Arc::strong_count(&kept) == 1 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        });
        // Waiting fails if the thread has already ended. The work then starts without readings.
        let _ = first.recv_timeout(START_TIMEOUT);
        let samples = lock_samples(&readings.samples);
        let pids =
            |samples: &Vec<GpuSample>| samples.last().map(computing_pids).unwrap_or_default();
        let before = samples
            .iter()
            .map(|(uuid, samples)| (uuid.clone(), pids(samples)))
            .collect();
        drop(samples);
        readings.before = before;
        readings
    }

    /// Returns the processes of other users that are computing on a GPU now and also a moment
    /// later.
    pub(super) fn foreign_processes(&self, uuid: &str) -> OtherProcesses {
        let now = || {
            lock_samples(&self.samples)
                .get(uuid)
                .and_then(|samples| samples.last())
                .map(find_other_users)
        };
        let others = now().unwrap_or_default();
        if others.is_empty() {
            return others;
        }
        thread::sleep(LISTING_DELAY);
        now().unwrap_or_default()
    }

    /// Returns a summary of a GPU's readings in a time range, in milliseconds since 1970. Returns
    /// `None` if there are no readings.
    pub(super) fn load_between(&self, uuid: &str, from_ms: u64, to_ms: u64) -> Option<Load> {
        let before = self.before.get(uuid).map_or(&[][..], Vec::as_slice);
        summarize_load(
            lock_samples(&self.samples).get(uuid)?,
            from_ms,
            to_ms,
            before,
        )
    }

    pub(super) fn samples_of_gpu(&self, uuid: &str) -> Vec<GpuSample> {
        lock_samples(&self.samples)
            .get(uuid)
            .cloned()
            .unwrap_or_default()
    }

    /// Returns a GPU's last power draw in watts and its last temperature in degrees Celsius.
    pub(super) fn last_watts_and_celsius(&self, uuid: &str) -> (Option<f64>, Option<f64>) {
        let samples = lock_samples(&self.samples);
        let last = samples.get(uuid).and_then(|samples| samples.last());
        (
            last.and_then(current_watts),
            last.and_then(|sample| fresh_value(&sample.temperature.gpu_celsius)),
        )
    }
}

fn keep_sample(kept: &mut Vec<GpuSample>, gpu: &GpuSample) {
    kept.push(gpu.clone());
    let surplus = kept.len().saturating_sub(MAX_SAMPLES);
    kept.drain(..surplus);
}

fn lock_samples(samples: &Mutex<Samples>) -> MutexGuard<'_, Samples> {
    samples.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Reading};

    use super::*;

    /// A reader of one GPU, which is warmer in each sample.
    struct WarmingGpuReader;

    impl DriverReader for WarmingGpuReader {
        fn list_gpus(&self) -> Vec<Gpu> {
            Vec::new()
        }

        fn read_gpus(
            &self,
            _: ReadDepth,
            _: Duration,
            on_sample: &mut dyn FnMut(&[GpuSample]) -> ControlFlow<()>,
        ) {
            for at_ms in 1.. {
                let mut gpu = GpuSample::new_absent(
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
    fn readings_of_requested_gpus_are_kept() {
        let driver: Arc<dyn DriverReader> = Arc::new(WarmingGpuReader);
        let readings = GpuReadings::start(&driver, vec!["GPU-a".to_owned()], ReadDepth::Metered);
        assert!(
            readings.last_watts_and_celsius("GPU-a").1.is_some()
                && !readings.samples_of_gpu("GPU-a").is_empty()
        );
        assert!(
            readings.load_between("GPU-a", 1, 1).is_some()
                && readings.load_between("GPU-a", 0, 0).is_none()
        );
        let of_another = GpuReadings::start(&driver, vec!["GPU-b".to_owned()], ReadDepth::Full);
        assert!(
            of_another.samples_of_gpu("GPU-a").is_empty()
                && of_another.foreign_processes("GPU-b").is_empty()
        );
    }
}
