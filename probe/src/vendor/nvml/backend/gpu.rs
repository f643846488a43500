//! The data that this process keeps about one GPU: its handle, the handles of its MIG devices,
//! constant responses, and GPM samples.

use std::{
    collections::HashMap,
    sync::{Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{
    NvmlBackend,
    ffi::{self, function as f},
};
use crate::vendor::{
    lock,
    nvml::query::{Answer, Code, Query, Subject},
};

/// The key of a remembered response: the MIG device, or `None` for the whole GPU, and the query.
type AnswerKey = (Option<u32>, Query);

/// A GPU that is opened by the first query about it.
pub(super) struct OpenedGpu {
    index: u32,
    /// The device handles, by MIG device index. `None` stands for the whole GPU.
    handles: Mutex<HashMap<Option<u32>, Result<ffi::Device, Code>>>,
    remembered: Mutex<HashMap<AnswerKey, Answer>>,
    /// Queries whose newest function is missing in the driver. For each, the value is the position
    /// of the newest function that the driver has, in the list of functions.
    only_older: Mutex<HashMap<AnswerKey, usize>>,
    pub(super) counted: GpmSamples,
}

impl OpenedGpu {
    pub(super) fn new(index: u32) -> Self {
        Self {
            index,
            handles: Mutex::default(),
            remembered: Mutex::default(),
            only_older: Mutex::default(),
            counted: GpmSamples::default(),
        }
    }

    /// Returns the handle of the GPU or of one of its MIG devices. If another thread is already
    /// opening the GPU, waits for that thread.
    pub(super) fn open_device(
        &self,
        library: &ffi::Library,
        mig: Option<u32>,
    ) -> Result<ffi::Device, Code> {
        let mut handles = lock(&self.handles);
        let gpu = *handles
            .entry(None)
            .or_insert_with(|| library.find_device(self.index));
        match mig {
            None => gpu,
            Some(index) => *handles
                .entry(mig)
                .or_insert_with(|| library.find_mig_device(gpu?, index)),
        }
    }

    /// Returns the remembered response for `key`. If there is none, calls `ask` and remembers its
    /// result. An error is remembered only if it means that the query is unsupported.
    pub(super) fn get_or_query(&self, key: AnswerKey, ask: impl FnOnce() -> Answer) -> Answer {
        if let Some(known) = lock(&self.remembered).get(&key) {
            return known.clone();
        }
        let answer = ask();
        if matches!(
            answer,
            Ok(_) | Err(Code::NOT_SUPPORTED | Code::FUNCTION_NOT_FOUND | Code::DEPRECATED)
        ) {
            lock(&self.remembered).insert(key, answer.clone());
        }
        answer
    }

    /// Calls the newest of `functions` that the driver has, and returns its response. The functions
    /// are tried in order, the newest first. Later calls skip those that are missing.
    pub(super) fn call_newest_function(
        &self,
        key: AnswerKey,
        functions: &[&dyn Fn() -> Answer],
    ) -> Answer {
        let first = lock(&self.only_older).get(&key).copied().unwrap_or(0);
        let mut answer = Err(Code::FUNCTION_NOT_FOUND);
        for (place, ask) in functions.iter().enumerate().skip(first) {
            answer = ask();
            if !matches!(
                answer,
                Err(Code::FUNCTION_NOT_FOUND | Code::ARGUMENT_VERSION_MISMATCH)
            ) {
                if place > first {
                    lock(&self.only_older).insert(key, place);
                }
                break;
            }
        }
        answer
    }

    /// Forgets the handles of MIG devices, and the responses about them.
    pub(super) fn forget_mig_devices(&self) {
        lock(&self.handles).retain(|mig, _| mig.is_none());
        lock(&self.remembered).retain(|(mig, _), _| mig.is_none());
    }

    pub(super) fn forget_answers(&self) {
        lock(&self.remembered).clear();
    }

    /// Forgets all handles, and the responses about MIG devices. If another thread is just opening
    /// the GPU, the handles are kept, because waiting for that thread could hang.
    pub(super) fn forget_handles(&self) {
        if let Ok(mut handles) = self.handles.try_lock() {
            handles.clear();
        }
        lock(&self.remembered).retain(|(mig, _), _| mig.is_none());
    }
}

/// The lock that all threads of the process must acquire before they call GPU Performance
/// Monitoring (GPM).
static GPM_LOCK: TimedLock = TimedLock::new();

/// The maximum time to wait for the GPM lock. Reading 64 GPUs one after another takes 130 ms.
const MAX_GPM_LOCK_WAIT: Duration = Duration::from_millis(200);

/// The minimum time between two GPM samples. NVML refuses samples that are closer together.
const MIN_GPM_INTERVAL: Duration = Duration::from_millis(100);

/// The last GPM sample of a GPU and of each of its GPU instances, with the time of each sample.
#[derive(Default)]
pub(super) struct GpmSamples {
    before: Mutex<HashMap<Option<u32>, (Instant, ffi::GpmSample)>>,
}

/// The result of a request for GPM metrics.
pub(crate) enum GpmResult {
    /// The value of each metric, or the error code.
    Counted(Vec<Result<f64, Code>>),
    /// There is no earlier sample, or it was taken too recently.
    NotYet,
    /// Another thread did not release the GPM lock in time.
    Busy,
}

/// Returns the GPM metrics for the time since the last call. If that call was too recent, there are
/// no metrics, and its sample is kept so that the next call can succeed.
pub(super) fn read_gpm_metrics(
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
    let Some(_guard) = GPM_LOCK.acquire(MAX_GPM_LOCK_WAIT) else {
        return Ok(GpmResult::Busy);
    };
    let earlier = before.get(&instance);
    if earlier.is_none() && !library.supports_gpm(device)? {
        return Err(Code::NOT_SUPPORTED);
    }
    if earlier.is_some_and(|(at, _)| at.elapsed() < MIN_GPM_INTERVAL) {
        return Ok(GpmResult::NotYet);
    }
    let now = ffi::GpmSample::take_sample(library, device, instance)?;
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
        let _guard = GPM_LOCK.acquire(MAX_GPM_LOCK_WAIT);
        lock(&self.before).clear();
    }
}

/// A lock with a limit on the wait for it, because the thread that holds the lock may hang in the
/// driver.
pub(crate) struct TimedLock {
    taken: Mutex<bool>,
    freed: Condvar,
}

/// A guard that releases the lock when it is dropped.
pub(crate) struct TimedLockGuard<'a>(&'a TimedLock);

impl TimedLock {
    pub(crate) const fn new() -> Self {
        Self {
            taken: Mutex::new(false),
            freed: Condvar::new(),
        }
    }

    /// Acquires the lock. Returns `None` if the lock does not become free within `patience`.
    pub(crate) fn acquire(&self, patience: Duration) -> Option<TimedLockGuard<'_>> {
        let taken = lock(&self.taken);
        let waited = self
            .freed
            .wait_timeout_while(taken, patience, |taken| *taken);
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *taken {
            return None;
        }
        *taken = true;
        Some(TimedLockGuard(self))
    }
}

impl Drop for TimedLockGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.0.taken) = false;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::nvml::query::Value;

    #[test]
    fn only_successful_gpu_answers_are_cached() {
        let gpu = OpenedGpu::new(0);
        let ask = |mig, answer: Answer| gpu.get_or_query((mig, Query::Name), || answer);
        let named = |name: &str| Ok(Value::Text(name.to_owned()));
        assert_eq!(ask(None, Err(Code::GPU_IS_LOST)), Err(Code::GPU_IS_LOST));
        assert_eq!(ask(None, named("first")), named("first"));
        assert_eq!(ask(Some(0), named("part")), named("part"));
        assert_eq!(
            (ask(None, named("second")), ask(Some(0), named("other"))),
            (named("first"), named("part"))
        );
        gpu.forget_handles();
        assert_eq!(
            (ask(None, named("second")), ask(Some(0), named("other"))),
            (named("first"), named("other"))
        );
    }

    #[test]
    fn unsupported_query_is_sent_once() {
        let gpu = OpenedGpu::new(0);
        for _ in 0..2 {
            let answer = gpu.get_or_query((None, Query::Serial), || Err(Code::NOT_SUPPORTED));
            assert_eq!(answer, Err(Code::NOT_SUPPORTED));
        }
        let later = gpu.get_or_query((None, Query::Serial), || unreachable!());
        assert_eq!(later, Err(Code::NOT_SUPPORTED));
    }

    #[test]
    fn missing_function_is_called_once() {
        let gpu = OpenedGpu::new(0);
        let ask = |newer: &dyn Fn() -> Answer| {
            gpu.call_newest_function(
                (None, Query::Temperature),
                &[newer, &|| Ok(Value::from_number(40))],
            )
        };
        assert_eq!(
            ask(&|| Err(Code::GPU_IS_LOST)),
            Err(Code::GPU_IS_LOST),
            "which is no reason to call the older"
        );
        assert_eq!(
            ask(&|| Err(Code::FUNCTION_NOT_FOUND)),
            Ok(Value::from_number(40))
        );
        assert_eq!(ask(&|| unreachable!()), Ok(Value::from_number(40)));
    }
}

#[cfg(test)]
mod timed_lock_tests {
    use super::*;

    #[test]
    fn second_thread_stops_waiting_for_lock_after_limit() {
        let lock = TimedLock::new();
        let first = lock.acquire(Duration::ZERO);
        assert!(first.is_some());
        assert!(lock.acquire(Duration::from_millis(5)).is_none());
        drop(first);
        assert!(lock.acquire(Duration::ZERO).is_some());
    }

    #[test]
    fn waiting_thread_continues_when_lock_is_released() {
        let lock = TimedLock::new();
        std::thread::scope(|scope| {
            let first = lock.acquire(Duration::ZERO);
            let second = scope.spawn(|| lock.acquire(Duration::from_secs(30)).is_some());
            std::thread::sleep(Duration::from_millis(10));
            drop(first);
            assert!(second.join().unwrap());
        });
    }
}
