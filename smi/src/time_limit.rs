//! A time limit for driver calls, so that a GPU whose calls hang does not delay other GPUs.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use gpumon_probe::{
    sampler::{ONE_SHOT_OPENING_TIME, OPENING_TIME},
    vendor::nvml::query::{Answer, Code, Query, QueryBackend, Subject, SystemQuery},
};

/// A driver whose calls are made on separate threads for each GPU, because calls may hang. While a
/// GPU's call hangs, all other queries about that GPU return [`Code::TIMEOUT`] immediately.
pub(crate) struct TimeLimited<D> {
    driver: Arc<D>,
    gpus: Mutex<Vec<Arc<GpuCallers>>>,
    /// The last time at which any GPU completed its first call. Opening a GPU takes time, so the
    /// deadlines of GPUs that are waiting start at this time.
    last_opened: Mutex<Option<Instant>>,
}

/// The interval at which a waiting thread checks whether another GPU has been opened.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The threads that make a GPU's driver calls.
#[derive(Default)]
struct GpuCallers {
    has_answered: Mutex<bool>,
    idle: Mutex<Vec<Caller>>,
    stuck: Mutex<Vec<JoinHandle<()>>>,
}

type DriverCall = Box<dyn FnOnce() -> Answer + Send>;

struct Caller {
    calls: Sender<DriverCall>,
    answers: Receiver<Answer>,
    thread: JoinHandle<()>,
}

impl<D: QueryBackend + Send + 'static> TimeLimited<D> {
    pub(crate) fn new(driver: D) -> Self {
        Self {
            driver: Arc::new(driver),
            gpus: Mutex::default(),
            last_opened: Mutex::default(),
        }
    }

    fn call(&self, index: u32, call: impl FnOnce(&D) -> Answer + Send + 'static) -> Answer {
        let gpu = self.find_gpu(index);
        if gpu.is_stuck() {
            return Err(Code::TIMEOUT);
        }
        let idle = lock(&gpu.idle).pop();
        let caller = idle
            .map_or_else(Caller::start, Ok)
            .map_err(|_| Code::UNKNOWN)?;
        let driver = Arc::clone(&self.driver);
        caller
            .calls
            .send(Box::new(move || call(&driver)))
            .map_err(|_| Code::UNKNOWN)?;
        let begun = Instant::now();
        loop {
            let left = self
                .find_deadline(begun)
                .saturating_duration_since(Instant::now());
            match caller.answers.recv_timeout(left.min(POLL_INTERVAL)) {
                Ok(answer) => {
                    lock(&gpu.idle).push(caller);
                    if !std::mem::replace(&mut *lock(&gpu.has_answered), true) {
                        *lock(&self.last_opened) = Some(Instant::now());
                    }
                    return answer;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Code::UNKNOWN),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    lock(&gpu.stuck).push(caller.thread);
                    return Err(Code::TIMEOUT);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn find_gpu(&self, index: u32) -> Arc<GpuCallers> {
        let mut gpus = lock(&self.gpus);
        let known = gpus.len().max(index as usize + 1);
        gpus.resize_with(known, Arc::default);
        Arc::clone(&gpus[index as usize])
    }

    fn find_deadline(&self, begun: Instant) -> Instant {
        lock(&self.last_opened).map_or(begun + ONE_SHOT_OPENING_TIME, |opened| {
            opened.max(begun) + OPENING_TIME
        })
    }
}

impl<D: QueryBackend + Send + 'static> QueryBackend for TimeLimited<D> {
    fn answer_system(&self, query: SystemQuery) -> Answer {
        self.driver.answer_system(query)
    }

    fn answer_query(&self, subject: Subject, query: Query) -> Answer {
        self.call(subject.gpu, move |driver| {
            driver.answer_query(subject, query)
        })
    }

    fn answer_gpm(&self, subject: Subject, metrics: &[u32]) -> Answer {
        let metrics = metrics.to_vec();
        self.call(subject.gpu, move |driver| {
            driver.answer_gpm(subject, &metrics)
        })
    }

    fn forget_outdated_answers(&self) {
        self.driver.forget_outdated_answers();
    }
}

impl GpuCallers {
    /// Returns `true` if a call that has timed out is still running.
    fn is_stuck(&self) -> bool {
        let mut stuck = lock(&self.stuck);
        stuck.retain(|thread| !thread.is_finished());
        !stuck.is_empty()
    }
}

impl Caller {
    /// Starts a thread that ends when the `Caller` is dropped.
    fn start() -> std::io::Result<Self> {
        let (calls, to_make) = channel::<DriverCall>();
        let (made, answers) = channel();
        let work = move || {
            for call in to_make {
                if made.send(call()).is_err() {
                    break;
                }
            }
        };
        Ok(Self {
            calls,
            answers,
            thread: thread::Builder::new().name("driver".into()).spawn(work)?,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use gpumon_probe::vendor::nvml::query::Value;

    use super::*;

    /// A test driver in which GPU 0 returns immediately and GPU 1 blocks until the lock is free.
    struct BlockingBackend(Arc<Mutex<()>>);

    impl QueryBackend for BlockingBackend {
        fn answer_system(&self, _: SystemQuery) -> Answer {
            Err(Code::NOT_SUPPORTED)
        }

        fn answer_query(&self, subject: Subject, _: Query) -> Answer {
            let _held = (subject.gpu == 1).then(|| lock(&self.0));
            Ok(Value::from_number(subject.gpu))
        }

        fn answer_gpm(&self, _: Subject, _: &[u32]) -> Answer {
            Err(Code::NOT_SUPPORTED)
        }
    }

    #[test]
    fn gpu_answers_again_after_hanging_call() {
        let gate = Arc::new(Mutex::new(()));
        let limited = TimeLimited::new(BlockingBackend(Arc::clone(&gate)));
        let ask = |gpu| limited.answer_query(Subject::from_gpu(gpu), Query::Name);
        let held = lock(&gate);
        assert_eq!(
            (ask(0), ask(1)),
            (Ok(Value::from_number(0)), Err(Code::TIMEOUT))
        );
        let callers = || lock(&limited.find_gpu(1).stuck).len();
        assert_eq!(
            (ask(1), callers()),
            (Err(Code::TIMEOUT), 1),
            "it is not asked again"
        );
        drop(held);
        while limited.find_gpu(1).is_stuck() {
            thread::sleep(POLL_INTERVAL);
        }
        assert_eq!(ask(1), Ok(Value::from_number(1)));
    }
}
