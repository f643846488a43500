//! Answers of a running server, as far as its records go, and of the driver for the rest.

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

/// Simulated GPUs are looked at anew after this time, so that what loops by itself sees them move.
const SIMULATED_FOR: Duration = Duration::from_millis(300);

/// Where answers come from.
#[derive(Clone)]
pub struct AnswerSource<'a> {
    /// NVIDIA's driver, or a simulation.
    pub choice: SourceChoice,
    /// The driver's library, where the loader does not find it by itself.
    pub library: Option<OsString>,
    /// The server that is asked before the driver; `None` to read the driver alone.
    pub server: Option<&'a dyn Server>,
    /// Whether NVIDIA's own nvidia-smi does what gpumon does not. It knows nothing of simulated
    /// GPUs.
    pub hands_over: bool,
}

/// A running server that reads the same GPUs.
pub trait Server: Sync {
    /// What it was answered last; `None` where none runs, or its answers are too old to tell how
    /// things are.
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

/// A server's records before the driver. The driver is opened at the first query that the records
/// leave open, which takes most of the time that a look takes.
pub(crate) struct Driver<'a> {
    source: AnswerSource<'a>,
    records: RwLock<Option<Records>>,
    direct: OnceLock<Result<TimeLimited<NvmlBackend>, SourceError>>,
    /// GPUs of which a server has found out that the driver does not return from them.
    hung: Vec<u32>,
}

/// What was read, and when.
struct Records {
    recorded: Recorded,
    at: Instant,
}

impl<'a> Driver<'a> {
    /// The server's records, or else the driver.
    pub(crate) fn open(source: &AnswerSource<'a>) -> Result<Self, SourceError> {
        let mut driver = Self::unopened(source);
        driver.refresh()?;
        Ok(driver)
    }

    /// Neither is opened yet: help needs no answers.
    pub(crate) fn unopened(source: &AnswerSource<'a>) -> Self {
        Self {
            source: source.clone(),
            records: RwLock::default(),
            direct: OnceLock::new(),
            hung: Vec::new(),
        }
    }

    /// The driver alone, for what loops by itself and wants to know how things are each time.
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

    /// The server's records, if a server may be asked and has any.
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

    /// The answer in the records. Simulated ones that are old are replaced first.
    fn recorded(&self, ask: impl Fn(&Recorded) -> Option<Answer>) -> Option<Answer> {
        let is_old = |records: &Records| records.at.elapsed() > SIMULATED_FOR;
        let read = || self.records.read().unwrap_or_else(PoisonError::into_inner);
        if self.source.is_simulated() && read().as_ref().is_some_and(is_old) {
            // A simulation that was there is still there.
            let _ = self.simulate();
        }
        read().as_ref().and_then(|records| ask(&records.recorded))
    }

    /// Asks the driver, where there is one behind the records.
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

/// Makes text safe for a terminal: a process chooses its own name.
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
