//! What the hardware counted between two calls.

use std::{collections::HashMap, sync::Mutex, time::Instant};

use super::{
    super::gpm::{PATIENCE, SHORTEST_WINDOW, TURN},
    NvmlAnswers,
    gpu::lock,
    raw::{self, function as f},
};
use crate::question::{Answer, Code, Subject, Value};

/// The last sample of a GPU and of each of its GPU instances, and when it was taken.
#[derive(Default)]
pub(super) struct Counted {
    before: Mutex<HashMap<Option<u32>, (Instant, raw::Sample)>>,
}

/// The metrics since the last time. Where that is too short a while ago, the sample of then stays, so that the next
/// time is not.
pub(super) fn answer(answers: &NvmlAnswers, subject: Subject, metrics: &[u32]) -> Answer {
    let (library, gpu) = (answers.library, answers.gpu(subject.gpu)?);
    let device = gpu.device(library, None)?;
    let instance = match subject.mig {
        None => None,
        Some(_) => Some(library.out(&f::GPU_INSTANCE_ID, gpu.device(library, subject.mig)?)?),
    };
    let mut before = lock(&gpu.counted.before);
    // Another thread may not come out of GPM.
    let _turn = TURN.take(PATIENCE).ok_or(Code::TIMEOUT)?;
    let earlier = before.get(&instance);
    if earlier.is_none() && !library.counts_activity(device)? {
        return Err(Code::NOT_SUPPORTED);
    }
    if earlier.is_some_and(|(at, _)| at.elapsed() < SHORTEST_WINDOW) {
        return Err(Code::NOT_READY);
    }
    let now = raw::Sample::take(library, device, instance)?;
    let counted = earlier.map_or(Err(Code::NOT_READY), |(_, earlier)| earlier.metrics(&now, metrics));
    before.insert(instance, (Instant::now(), now));
    counted.map(Value::Reals)
}

impl Drop for Counted {
    /// Freeing a sample is a call, too.
    fn drop(&mut self) {
        // Another thread may not come out of GPM.
        let _turn = TURN.take(PATIENCE);
        lock(&self.before).clear();
    }
}
