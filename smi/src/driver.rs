//! The combined source of answers: records of a running server, and the driver for all others.

use std::{
    ffi::OsString,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::{Duration, Instant},
};

use gpumon_probe::{
    model::Health,
    owner::CommandLines,
    sampler::{self, OneShot, Options},
    untrusted::printable,
    vendor::nvml::query::{Answer, Code, Query, QueryBackend, Subject, SystemQuery, Value},
    vendor::{
        GpuAnswers, LatestAnswers, SourceChoice, SourceError,
        nvml::{NvmlBackend, Recorded},
    },
};

use crate::time_limit::TimeLimited;

/// The maximum age of simulated answers. They are renewed afterwards, so that monitors show
/// changes.
const SIMULATED_FOR: Duration = Duration::from_millis(300);

/// The sources of answers.
#[derive(Clone)]
pub struct AnswerSource<'a> {
    /// The choice between NVIDIA's driver and a simulation.
    pub choice: SourceChoice,
    /// The path of the driver's library, if the loader does not find it.
    pub library: Option<OsString>,
    /// The server to ask before the driver; `None` to read only the driver.
    pub server: Option<&'a dyn Server>,
    /// Whether unsupported commands are passed to NVIDIA's own nvidia-smi. Simulated GPUs are never
    /// passed on.
    pub hands_over: bool,
}

/// A running server that reads the same GPUs.
pub trait Server: Sync {
    /// Returns the server's last answers; `None` if no server is running or its answers are too
    /// old.
    fn recorded(&self) -> Option<Recorded>;
}

impl AnswerSource<'_> {
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(
            self.choice,
            SourceChoice::Sim(_) | SourceChoice::SimScenario(_)
        )
    }
}

/// The records of a server, with the driver as a fallback. The driver is opened only for the first
/// query without a record, because opening takes most of the time of a command.
pub(crate) struct Driver<'a> {
    source: AnswerSource<'a>,
    records: RwLock<Option<Records>>,
    direct: OnceLock<Result<TimeLimited<NvmlBackend>, SourceError>>,
    /// GPUs for which the server has found that driver calls hang.
    hung: Vec<u32>,
}

/// Recorded answers, with the time of reading.
struct Records {
    recorded: Recorded,
    at: Instant,
}

impl<'a> Driver<'a> {
    /// Reads the server's records, or opens the driver.
    pub(crate) fn open(source: &AnswerSource<'a>) -> Result<Self, SourceError> {
        let mut driver = Self::unopened(source);
        driver.refresh()?;
        Ok(driver)
    }

    /// Returns a source that has read nothing yet, for help that needs no answers.
    pub(crate) fn unopened(source: &AnswerSource<'a>) -> Self {
        Self {
            source: source.clone(),
            records: RwLock::default(),
            direct: OnceLock::new(),
            hung: Vec::new(),
        }
    }

    /// Opens only the driver, for monitors that need current readings in each round.
    pub(crate) fn open_directly(source: &AnswerSource<'a>) -> Result<Self, SourceError> {
        let mut driver = Self::unopened(source);
        if driver.source.is_simulated() {
            driver.simulate()?;
        } else {
            driver.hung = driver
                .server_records()
                .map(|recorded| recorded.hung())
                .unwrap_or_default();
            driver.direct().as_ref().map_err(Clone::clone)?;
        }
        Ok(driver)
    }

    pub(crate) fn refresh(&mut self) -> Result<(), SourceError> {
        if self.source.is_simulated() {
            return self.simulate();
        }
        let records = self.server_records();
        if records.is_none() {
            self.direct().as_ref().map_err(Clone::clone)?;
        }
        self.keep(records);
        self.forget();
        Ok(())
    }

    /// Returns the server's records, if a server may be asked and has any.
    fn server_records(&self) -> Option<Recorded> {
        self.source.server.and_then(Server::recorded)
    }

    fn direct(&self) -> &Result<TimeLimited<NvmlBackend>, SourceError> {
        self.direct
            .get_or_init(|| NvmlBackend::open(self.source.library.clone()).map(TimeLimited::new))
    }

    fn simulate(&self) -> Result<(), SourceError> {
        self.keep(Some(simulated(&self.source)?));
        Ok(())
    }

    fn keep(&self, recorded: Option<Recorded>) {
        let records = recorded.map(|recorded| Records {
            recorded,
            at: Instant::now(),
        });
        *self.records.write().unwrap_or_else(PoisonError::into_inner) = records;
    }

    /// Returns the answer in the records. Old simulated records are renewed first.
    fn recorded(&self, ask: impl Fn(&Recorded) -> Option<Answer>) -> Option<Answer> {
        let is_old = |records: &Records| records.at.elapsed() > SIMULATED_FOR;
        let read = || self.records.read().unwrap_or_else(PoisonError::into_inner);
        if self.source.is_simulated() && read().as_ref().is_some_and(is_old) {
            // Opening the simulation worked before, so an error is not expected.
            let _ = self.simulate();
        }
        read().as_ref().and_then(|records| ask(&records.recorded))
    }

    /// Asks the driver, unless the GPUs are simulated.
    fn ask(&self, query: impl FnOnce(&TimeLimited<NvmlBackend>) -> Answer) -> Answer {
        if self.source.is_simulated() {
            return Err(Code::NOT_SUPPORTED);
        }
        self.direct()
            .as_ref()
            .map_or(Err(Code::UNINITIALIZED), query)
    }
}

impl QueryBackend for Driver<'_> {
    fn system(&self, query: SystemQuery) -> Answer {
        let recorded = self.recorded(|records| records.system(query));
        printable_text(recorded.unwrap_or_else(|| self.ask(|driver| driver.system(query))))
    }

    fn about(&self, subject: Subject, query: Query) -> Answer {
        if self.hung.contains(&subject.gpu) {
            return Err(Code::TIMEOUT);
        }
        let recorded = self.recorded(|records| records.about(subject, query));
        printable_text(recorded.unwrap_or_else(|| self.ask(|driver| driver.about(subject, query))))
    }

    fn gpm(&self, subject: Subject, metrics: &[u32]) -> Answer {
        if self.hung.contains(&subject.gpu) {
            return Err(Code::TIMEOUT);
        }
        self.ask(|driver| driver.gpm(subject, metrics))
    }

    fn is_quick(&self) -> bool {
        self.records
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    fn forget(&self) {
        if let Some(Ok(direct)) = self.direct.get() {
            direct.forget();
        }
    }
}

/// Makes text safe for a terminal, because a process chooses its own name.
fn printable_text(answer: Answer) -> Answer {
    answer.map(|value| match value {
        Value::Text(text) => Value::Text(text.chars().map(printable).collect()),
        other => other,
    })
}

fn simulated(source: &AnswerSource<'_>) -> Result<Recorded, SourceError> {
    let source = source
        .choice
        .open(&gpumon_probe::vendor::Roots::default())?;
    let answers = Arc::new(LatestAnswers::default());
    let options = Options {
        answers: Some(Arc::clone(&answers)),
        ..Options::new(Duration::from_secs(1), CommandLines::All)
    };
    let OneShot {
        inventory, sample, ..
    } = sampler::once(&source, &options)?;
    let health = |index| {
        sample
            .gpus
            .iter()
            .find(|gpu| gpu.index == index)
            .map_or(Health::Ok, |gpu| gpu.health.clone())
    };
    let gpus = answers.get().gpus.into_iter();
    let gpus = gpus.map(|(index, answers)| GpuAnswers {
        index,
        health: health(index),
        answers,
    });
    Ok(Recorded::new(inventory.platform, gpus.collect()))
}
