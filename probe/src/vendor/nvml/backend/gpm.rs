//! Calls to NVML's GPU Performance Monitoring (GPM).

use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use super::{
    super::turn::TimedLock,
    NvmlBackend,
    gpu::lock,
    raw::{self, function as f},
};
use crate::vendor::nvml::query::{Code, Subject};

/// The lock that all threads of the process must acquire before they call GPM.
static GPM_LOCK: TimedLock = TimedLock::new();

/// The maximum time to wait for the lock. Reading 64 GPUs one after another takes 130 ms.
const MAX_WAIT: Duration = Duration::from_millis(200);

/// The minimum time between two samples. NVML refuses samples that are closer together.
const MIN_WINDOW: Duration = Duration::from_millis(100);

/// The last GPM sample of a GPU and of each of its GPU instances, with the time of each sample.
#[derive(Default)]
pub(super) struct GpmSamples {
    before: Mutex<HashMap<Option<u32>, (Instant, raw::GpmSample)>>,
}

/// The result of a request for GPM metrics.
pub(in crate::vendor) enum GpmResult {
    /// The value of each metric, or the error code.
    Counted(Vec<Result<f64, Code>>),
    /// There is no earlier sample, or it was taken too recently.
    NotYet,
    /// Another thread did not release the GPM lock in time.
    Busy,
}

/// Returns the metrics for the time since the last call. If the last call was too recent, its
/// sample is kept, so that the next call can succeed.
pub(super) fn read_metrics(
    answers: &NvmlBackend,
    subject: Subject,
    metrics: &[u32],
) -> Result<GpmResult, Code> {
    let (library, gpu) = (answers.library, answers.find_gpu(subject.gpu)?);
    let device = gpu.open_device(library, None)?;
    let instance = if subject.mig.is_none() {
        None
    } else {
        let device = gpu.open_device(library, subject.mig)?;
        Some(library.get_one(&f::nvmlDeviceGetGpuInstanceId, device, &[])?)
    };
    let mut before = lock(&gpu.counted.before);
    // Another thread may hang inside GPM while it holds the lock.
    let Some(_turn) = GPM_LOCK.acquire(MAX_WAIT) else {
        return Ok(GpmResult::Busy);
    };
    let earlier = before.get(&instance);
    if earlier.is_none() && !library.counts_activity(device)? {
        return Err(Code::NOT_SUPPORTED);
    }
    if earlier.is_some_and(|(at, _)| at.elapsed() < MIN_WINDOW) {
        return Ok(GpmResult::NotYet);
    }
    let now = raw::GpmSample::take_sample(library, device, instance)?;
    let counted = earlier.map(|(_, earlier)| earlier.compute_metrics(&now, metrics));
    before.insert(instance, (Instant::now(), now));
    counted.map_or(Ok(GpmResult::NotYet), |values| {
        values.map(GpmResult::Counted)
    })
}

impl Drop for GpmSamples {
    /// Frees the samples, which also requires calls to GPM.
    fn drop(&mut self) {
        // Another thread may hang inside GPM, so the wait for the lock is limited.
        let _turn = GPM_LOCK.acquire(MAX_WAIT);
        lock(&self.before).clear();
    }
}
