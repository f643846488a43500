//! Calls of GPU Performance Monitoring (GPM).

use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use super::{
    super::turn::Turn,
    NvmlBackend,
    gpu::lock,
    raw::{self, function as f},
};
use crate::vendor::nvml::query::{Code, Subject};

/// The lock for GPM, shared by all threads of the process.
static TURN: Turn = Turn::new();

/// The maximum time to wait for the lock. 64 GPUs one after another take 130 ms.
const PATIENCE: Duration = Duration::from_millis(200);

/// The minimum time between two samples. NVML refuses samples that are closer together.
const SHORTEST_WINDOW: Duration = Duration::from_millis(100);

/// The last sample of a GPU and of each of its GPU instances, with the times when they were taken.
#[derive(Default)]
pub(super) struct Counted {
    before: Mutex<HashMap<Option<u32>, (Instant, raw::Sample)>>,
}

/// The result of a request for metrics.
pub(in crate::vendor) enum Activity {
    /// The value of each metric, or the error code.
    Counted(Vec<Result<f64, Code>>),
    /// There is no earlier sample, or it was taken too recently.
    NotYet,
    /// Another thread did not leave GPM in time.
    Busy,
}

/// Returns the metrics since the last call. If that call was too recent, its sample is kept, so
/// that the next call can succeed.
pub(super) fn metrics(
    answers: &NvmlBackend,
    subject: Subject,
    metrics: &[u32],
) -> Result<Activity, Code> {
    let (library, gpu) = (answers.library, answers.gpu(subject.gpu)?);
    let device = gpu.device(library, None)?;
    let instance = if subject.mig.is_none() {
        None
    } else {
        let device = gpu.device(library, subject.mig)?;
        Some(library.get_one(&f::nvmlDeviceGetGpuInstanceId, device, &[])?)
    };
    let mut before = lock(&gpu.counted.before);
    // Another thread may hang in GPM.
    let Some(_turn) = TURN.take(PATIENCE) else {
        return Ok(Activity::Busy);
    };
    let earlier = before.get(&instance);
    if earlier.is_none() && !library.counts_activity(device)? {
        return Err(Code::NOT_SUPPORTED);
    }
    if earlier.is_some_and(|(at, _)| at.elapsed() < SHORTEST_WINDOW) {
        return Ok(Activity::NotYet);
    }
    let now = raw::Sample::take(library, device, instance)?;
    let counted = earlier.map(|(_, earlier)| earlier.metrics(&now, metrics));
    before.insert(instance, (Instant::now(), now));
    counted.map_or(Ok(Activity::NotYet), |values| values.map(Activity::Counted))
}

impl Drop for Counted {
    /// Frees the samples, which are calls of GPM too.
    fn drop(&mut self) {
        // Another thread may hang in GPM, so that the lock is not waited for indefinitely.
        let _turn = TURN.take(PATIENCE);
        lock(&self.before).clear();
    }
}
