//! The source of answers to queries: a running server's records, or the driver if there is no
//! record. Calls to the driver have a time limit.

use std::{
    ffi::OsString,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use gpumon_probe::{
    model::Health,
    owner::CommandLines,
    sampler::{self, ONE_SHOT_OPENING_TIME, OPENING_TIME, OneShotReadings, Options},
    untrusted::to_printable,
    vendor::{
        GpuAnswers, LatestAnswers, SourceChoice, SourceError,
        nvml::{
            NvmlBackend, RecordedAnswers,
            query::{Answer, Code, Query, QueryBackend, Subject, SystemQuery, Value},
        },
    },
};

/// The maximum age of simulated answers. Older answers are replaced by new ones, so that monitors
/// show changes.
const MAX_SIMULATION_AGE: Duration = Duration::from_millis(300);

/// The sources from which answers are obtained.
#[derive(Clone)]
pub struct AnswerSource<'a> {
    /// The choice between NVIDIA's driver and simulated GPUs.
    pub choice: SourceChoice,
    /// The path of the driver's library, if the loader does not find it.
    pub library: Option<OsString>,
    /// The server whose records are used in preference to the driver, or `None` to use only the
    /// driver.
    pub server: Option<&'a dyn Server>,
    /// Whether commands that gpumon does not support are passed to NVIDIA's own nvidia-smi. This
    /// never applies to simulated GPUs.
    pub hands_over: bool,
}

/// A running gpumon server that reads the same GPUs.
pub trait Server: Sync {
    /// Returns the server's latest answers, or `None` if no server is running or the answers are
    /// too old.
    fn read_answers(&self) -> Option<RecordedAnswers>;
}

impl AnswerSource<'_> {
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(
            self.choice,
            SourceChoice::Sim(_) | SourceChoice::SimScenario(_)
        )
    }
}

/// A server's records, with the driver as a fallback. The driver is opened only at the first query
/// without a record, because opening it takes most of a command's time.
pub(crate) struct Driver<'a> {
    source: AnswerSource<'a>,
    records: RwLock<Option<Records>>,
    direct: OnceLock<Result<TimeLimited<NvmlBackend>, SourceError>>,
    /// The GPUs whose driver calls hang, according to the server.
    hung: Vec<u32>,
}

/// Recorded answers, and the time at which they were read.
struct Records {
    recorded: RecordedAnswers,
    at: Instant,
}

impl<'a> Driver<'a> {
    /// Reads the server's records. If there are none, opens the driver.
    pub(crate) fn open(source: &AnswerSource<'a>) -> Result<Self, SourceError> {
        let mut driver = Self::new(source);
        driver.refresh()?;
        Ok(driver)
    }

    /// Creates a source that has not read anything yet, for output that needs no answers, such as
    /// help.
    pub(crate) fn new(source: &AnswerSource<'a>) -> Self {
        Self {
            source: source.clone(),
            records: RwLock::default(),
            direct: OnceLock::new(),
            hung: Vec::new(),
        }
    }

    /// Opens the driver without reading a server's records, for monitors that need new readings in
    /// each round.
    pub(crate) fn open_directly(source: &AnswerSource<'a>) -> Result<Self, SourceError> {
        let mut driver = Self::new(source);
        if driver.source.is_simulated() {
            driver.read_simulated_records()?;
        } else {
            driver.hung = driver
                .read_server_records()
                .map(|recorded| recorded.hung_gpus())
                .unwrap_or_default();
            driver.open_backend().as_ref().map_err(Clone::clone)?;
        }
        Ok(driver)
    }

    pub(crate) fn refresh(&mut self) -> Result<(), SourceError> {
        if self.source.is_simulated() {
            return self.read_simulated_records();
        }
        let records = self.read_server_records();
        if records.is_none() {
            self.open_backend().as_ref().map_err(Clone::clone)?;
        }
        self.keep_records(records);
        self.forget_outdated_answers();
        Ok(())
    }

    /// Returns the server's records, if there are any and a server may be used.
    fn read_server_records(&self) -> Option<RecordedAnswers> {
        self.source.server.and_then(Server::read_answers)
    }

    fn open_backend(&self) -> &Result<TimeLimited<NvmlBackend>, SourceError> {
        self.direct
            .get_or_init(|| NvmlBackend::open(self.source.library.clone()).map(TimeLimited::new))
    }

    fn read_simulated_records(&self) -> Result<(), SourceError> {
        self.keep_records(Some(read_simulation(&self.source)?));
        Ok(())
    }

    fn keep_records(&self, recorded: Option<RecordedAnswers>) {
        let records = recorded.map(|recorded| Records {
            recorded,
            at: Instant::now(),
        });
        *self.records.write().unwrap_or_else(PoisonError::into_inner) = records;
    }

    /// Returns the recorded answer to a query, if any. Simulated records that are too old are
    /// replaced first.
    fn find_recorded_answer(
        &self,
        ask: impl Fn(&RecordedAnswers) -> Option<Answer>,
    ) -> Option<Answer> {
        let is_old = |records: &Records| records.at.elapsed() > MAX_SIMULATION_AGE;
        let read = || self.records.read().unwrap_or_else(PoisonError::into_inner);
        if self.source.is_simulated() && read().as_ref().is_some_and(is_old) {
            // The simulation has been opened before, so an error is not expected.
            let _ = self.read_simulated_records();
        }
        read().as_ref().and_then(|records| ask(&records.recorded))
    }

    /// Runs a query with the driver, unless the GPUs are simulated.
    fn run_driver_query(&self, query: impl FnOnce(&TimeLimited<NvmlBackend>) -> Answer) -> Answer {
        if self.source.is_simulated() {
            return Err(Code::NOT_SUPPORTED);
        }
        self.open_backend()
            .as_ref()
            .map_or(Err(Code::UNINITIALIZED), query)
    }
}

impl QueryBackend for Driver<'_> {
    fn answer_system(&self, query: SystemQuery) -> Answer {
        let recorded = self.find_recorded_answer(|records| records.answer_system(query));
        make_text_printable(
            recorded.unwrap_or_else(|| self.run_driver_query(|driver| driver.answer_system(query))),
        )
    }

    fn answer_query(&self, subject: Subject, query: Query) -> Answer {
        if self.hung.contains(&subject.gpu) {
            return Err(Code::TIMEOUT);
        }
        let recorded = self.find_recorded_answer(|records| records.answer_query(subject, query));
        make_text_printable(
            recorded.unwrap_or_else(|| {
                self.run_driver_query(|driver| driver.answer_query(subject, query))
            }),
        )
    }

    fn answer_gpm(&self, subject: Subject, metrics: &[u32]) -> Answer {
        if self.hung.contains(&subject.gpu) {
            return Err(Code::TIMEOUT);
        }
        self.run_driver_query(|driver| driver.answer_gpm(subject, metrics))
    }

    fn answers_from_memory(&self) -> bool {
        self.records
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    fn forget_outdated_answers(&self) {
        if let Some(Ok(direct)) = self.direct.get() {
            direct.forget_outdated_answers();
        }
    }
}

/// Makes text safe to print in a terminal. Processes choose their own names, which can contain
/// escape sequences.
fn make_text_printable(answer: Answer) -> Answer {
    answer.map(|value| match value {
        Value::Text(text) => Value::Text(text.chars().map(to_printable).collect()),
        other => other,
    })
}

fn read_simulation(source: &AnswerSource<'_>) -> Result<RecordedAnswers, SourceError> {
    let source = source
        .choice
        .open(&gpumon_probe::vendor::Roots::default())?;
    let answers = Arc::new(LatestAnswers::default());
    let options = Options {
        answers: Some(Arc::clone(&answers)),
        ..Options::new(Duration::from_secs(1), CommandLines::All)
    };
    let OneShotReadings {
        inventory, sample, ..
    } = sampler::sample_once(&source, &options)?;
    let health = |index| {
        sample
            .gpus
            .iter()
            .find(|gpu| gpu.index == index)
            .map_or(Health::Ok, |gpu| gpu.health.clone())
    };
    let gpus = answers.collect_answers().gpus.into_iter();
    let gpus = gpus.map(|(index, answers)| GpuAnswers {
        index,
        health: health(index),
        answers,
    });
    Ok(RecordedAnswers::new(inventory.platform, gpus.collect()))
}

// A time limit for driver calls, so that a GPU whose calls hang does not delay other GPUs.

/// The interval at which a waiting thread checks whether another GPU has been opened.
const OPENING_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A driver whose calls are made on separate threads for each GPU, because calls may hang. While a
/// GPU's call hangs, all other queries about that GPU return [`Code::TIMEOUT`] immediately.
pub(crate) struct TimeLimited<D> {
    driver: Arc<D>,
    gpus: Mutex<Vec<Arc<GpuCallers>>>,
    /// The time at which any GPU most recently completed its first call. Opening GPUs takes time,
    /// so the time limit for GPUs that are still waiting starts at this time.
    last_opened: Mutex<Option<Instant>>,
}

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

    fn call_with_deadline(
        &self,
        index: u32,
        call: impl FnOnce(&D) -> Answer + Send + 'static,
    ) -> Answer {
        let gpu = self.get_or_add_gpu(index);
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
            match caller.answers.recv_timeout(left.min(OPENING_POLL_INTERVAL)) {
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

    fn get_or_add_gpu(&self, index: u32) -> Arc<GpuCallers> {
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
        self.call_with_deadline(subject.gpu, move |driver| {
            driver.answer_query(subject, query)
        })
    }

    fn answer_gpm(&self, subject: Subject, metrics: &[u32]) -> Answer {
        let metrics = metrics.to_vec();
        self.call_with_deadline(subject.gpu, move |driver| {
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
        let callers = || lock(&limited.get_or_add_gpu(1).stuck).len();
        assert_eq!(
            (ask(1), callers()),
            (Err(Code::TIMEOUT), 1),
            "it is not asked again"
        );
        drop(held);
        while limited.get_or_add_gpu(1).is_stuck() {
            thread::sleep(OPENING_POLL_INTERVAL);
        }
        assert_eq!(ask(1), Ok(Value::from_number(1)));
    }
}
