//! A time limit for driver calls, so that a GPU whose calls hang delays no other GPU.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use gpumon_probe::{
    sampler::{OPENING, OPENING_ONCE},
    vendor::nvml::query::{Answer, Code, Query, QueryBackend, Subject, SystemQuery},
};

/// A driver whose calls for each GPU are made by threads that may hang. A GPU with a hanging call
/// answers [`Code::TIMEOUT`] immediately until that call returns.
pub(crate) struct TimeLimited<D> {
    driver: Arc<D>,
    gpus: Mutex<Vec<Arc<Gpu>>>,
    /// The last time at which a GPU answered its first call. Opening takes time, so the deadlines
    /// of other waiting GPUs are counted from then.
    last_opened: Mutex<Option<Instant>>,
}

/// The interval at which a waiting thread checks whether another GPU has been opened in the
/// meantime.
const GLANCE: Duration = Duration::from_millis(50);

/// The threads that make the calls of a GPU.
#[derive(Default)]
struct Gpu {
    has_answered: Mutex<bool>,
    idle: Mutex<Vec<Caller>>,
    stuck: Mutex<Vec<JoinHandle<()>>>,
}

type Call = Box<dyn FnOnce() -> Answer + Send>;

struct Caller {
    calls: Sender<Call>,
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
        let gpu = self.gpu(index);
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
                .deadline(begun)
                .saturating_duration_since(Instant::now());
            match caller.answers.recv_timeout(left.min(GLANCE)) {
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

    fn gpu(&self, index: u32) -> Arc<Gpu> {
        let mut gpus = lock(&self.gpus);
        let known = gpus.len().max(index as usize + 1);
        gpus.resize_with(known, Arc::default);
        Arc::clone(&gpus[index as usize])
    }

    fn deadline(&self, begun: Instant) -> Instant {
        lock(&self.last_opened).map_or(begun + OPENING_ONCE, |opened| opened.max(begun) + OPENING)
    }
}

impl<D: QueryBackend + Send + 'static> QueryBackend for TimeLimited<D> {
    fn system(&self, query: SystemQuery) -> Answer {
        self.driver.system(query)
    }

    fn about(&self, subject: Subject, query: Query) -> Answer {
        self.call(subject.gpu, move |driver| driver.about(subject, query))
    }

    fn gpm(&self, subject: Subject, metrics: &[u32]) -> Answer {
        let metrics = metrics.to_vec();
        self.call(subject.gpu, move |driver| driver.gpm(subject, &metrics))
    }

    fn forget(&self) {
        self.driver.forget();
    }
}

impl Gpu {
    /// Returns whether a call that timed out is still running.
    fn is_stuck(&self) -> bool {
        let mut stuck = lock(&self.stuck);
        stuck.retain(|thread| !thread.is_finished());
        !stuck.is_empty()
    }
}

impl Caller {
    /// Starts a thread that ends when the `Caller` is dropped.
    fn start() -> std::io::Result<Self> {
        let (calls, to_make) = channel::<Call>();
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

    /// A test driver in which GPU 0 answers at once, and GPU 1 waits for the lock.
    struct Holding(Arc<Mutex<()>>);

    impl QueryBackend for Holding {
        fn system(&self, _: SystemQuery) -> Answer {
            Err(Code::NOT_SUPPORTED)
        }

        fn about(&self, subject: Subject, _: Query) -> Answer {
            let _held = (subject.gpu == 1).then(|| lock(&self.0));
            Ok(Value::number(subject.gpu))
        }

        fn gpm(&self, _: Subject, _: &[u32]) -> Answer {
            Err(Code::NOT_SUPPORTED)
        }
    }

    #[test]
    fn a_gpu_answers_again_once_the_call_has_returned() {
        let gate = Arc::new(Mutex::new(()));
        let limited = TimeLimited::new(Holding(Arc::clone(&gate)));
        let ask = |gpu| limited.about(Subject::gpu(gpu), Query::Name);
        let held = lock(&gate);
        assert_eq!((ask(0), ask(1)), (Ok(Value::number(0)), Err(Code::TIMEOUT)));
        let callers = || lock(&limited.gpu(1).stuck).len();
        assert_eq!(
            (ask(1), callers()),
            (Err(Code::TIMEOUT), 1),
            "it is not asked again"
        );
        drop(held);
        while limited.gpu(1).is_stuck() {
            thread::sleep(GLANCE);
        }
        assert_eq!(ask(1), Ok(Value::number(1)));
    }
}
