//! The source of answers to queries: a running server's records, or the driver if there is no
//! record.

use std::{
    ffi::OsString,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::{Duration, Instant},
};

use gpumon_probe::{
    model::Health,
    owner::CommandLines,
    sampler::{self, OneShotReadings, Options},
    untrusted::to_printable,
    vendor::nvml::query::{Answer, Code, Query, QueryBackend, Subject, SystemQuery, Value},
    vendor::{
        GpuAnswers, LatestAnswers, SourceChoice, SourceError,
        nvml::{NvmlBackend, RecordedAnswers},
    },
};

use crate::time_limit::TimeLimited;

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
    /// Reads the server's records, or opens the driver if there are none.
    pub(crate) fn open(source: &AnswerSource<'a>) -> Result<Self, SourceError> {
        let mut driver = Self::new(source);
        driver.refresh()?;
        Ok(driver)
    }

    /// Creates a source that has not read anything yet, for help that needs no answers.
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

    fn is_quick(&self) -> bool {
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
