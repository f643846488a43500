//! What the hardware counted between two calls.

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

/// All threads of the process take this turn.
static TURN: Turn = Turn::new();

/// 64 GPUs take 130 ms one after another.
const PATIENCE: Duration = Duration::from_millis(200);

/// NVML refuses two samples that are closer together.
const SHORTEST_WINDOW: Duration = Duration::from_millis(100);

/// The last sample of a GPU and of each of its GPU instances, and when it was taken.
#[derive(Default)]
pub(super) struct Counted {
    before: Mutex<HashMap<Option<u32>, (Instant, raw::Sample)>>,
}

/// What came of asking for metrics.
pub(in crate::vendor) enum Activity {
    /// Each metric, or why it is not to be had.
    Counted(Vec<Result<f64, Code>>),
    /// There is no earlier sample to compare with, or it is too short a while ago.
    NotYet,
    /// Another thread did not come out of GPM in time.
    Busy,
}

/// The metrics since the last time. Where that is too short a while ago, the sample of then stays,
/// so that the next time is not.
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
    // Another thread may not come out of GPM.
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
    /// Freeing a sample is a call, too.
    fn drop(&mut self) {
        // Another thread may not come out of GPM.
        let _turn = TURN.take(PATIENCE);
        lock(&self.before).clear();
    }
}
