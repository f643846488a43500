//! Queries about one GPU, sent lane by lane. Unsupported queries are not repeated at every tick.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::{Duration, Instant},
};

use foldhash::{HashMap, HashMapExt};

use super::{
    backend::{Activity, Backend},
    error::{device_error, driver_replaced, is_driver_replaced},
    lanes::{CALLS, Call, Lane, Reader, follow_up_calls, is_constant},
    paced::Every,
};
use crate::{
    model::now_ms,
    vendor::DeviceError,
    vendor::nvml::query::{Answer, CachedAnswers, Code, Query, Subject, SystemQuery, Value},
};

/// The time after which an unsupported query is asked again. "Not supported" is an expensive
/// answer, for example 130 µs for the fan of a board without one, and it can change with the
/// driver's settings.
const ASK_AGAIN: Duration = Duration::from_mins(1);

/// A sender of queries about one GPU, which caches the answers and notices when the GPU is lost.
pub(super) struct Querier {
    answers: Arc<dyn Backend>,
    index: u32,
    /// The latest answers, shared with threads that read them while the driver is being asked.
    cached: Arc<RwLock<CachedAnswers>>,
    /// The unsupported calls, and when that was last determined.
    unsupported: HashMap<QueryKey, Instant>,
    /// The timers of calls that are made less often.
    paced: HashMap<Query, Every>,
    votes: Votes,
    silence: UnansweredTicks,
    pub(super) is_watched: bool,
}

/// A kind of call about the GPU, or about the MIG device with this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum QueryKey {
    About(Option<u32>, Query),
    Activity(Option<u32>),
    ProcessUtilization,
    Samples(u32),
}

/// The number of successful calls since the last verdict, and the number of failed calls by code.
#[derive(Debug, Default, Clone, PartialEq)]
struct Votes {
    answered: u32,
    failed: BTreeMap<u32, u32>,
}

/// The number of consecutive ticks in which every call failed.
#[derive(Debug)]
struct UnansweredTicks {
    ticks: u32,
    /// The most frequent return code in the latest of these ticks.
    code: Option<Code>,
}

/// The number of consecutive ticks without a successful call after which a GPU counts as failed. A
/// shorter time can mean that the driver is busy.
const FAILED_AFTER: u32 = 3;

impl Querier {
    pub(super) fn new(answers: Arc<dyn Backend>, index: u32) -> Self {
        Self {
            answers,
            index,
            cached: Arc::default(),
            unsupported: HashMap::new(),
            paced: HashMap::new(),
            votes: Votes::default(),
            silence: UnansweredTicks::default(),
            is_watched: true,
        }
    }

    /// Returns the answers so far.
    pub(super) fn cached(&self) -> RwLockReadGuard<'_, CachedAnswers> {
        self.cached.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the shared answers, which continue to be updated.
    pub(super) fn shared(&self) -> Arc<RwLock<CachedAnswers>> {
        Arc::clone(&self.cached)
    }

    fn cached_mut(&self) -> RwLockWriteGuard<'_, CachedAnswers> {
        self.cached.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks these queries about the GPU, or about the MIG device with this index. Unsupported
    /// queries are skipped.
    pub(super) fn ask(&mut self, mig: Option<u32>, queries: &[Query]) {
        let queries: Vec<_> = queries
            .iter()
            .copied()
            .filter(|own| self.has(QueryKey::About(mig, *own)))
            .collect();
        let answers = self.answers.ask_each(
            Subject {
                gpu: self.index,
                mig,
            },
            &queries,
        );
        let at_ms = now_ms();
        for (query, answer) in queries.iter().zip(answers) {
            self.note(QueryKey::About(mig, *query), &answer);
            self.cached_mut().keep(mig, *query, at_ms, answer);
        }
    }

    /// Caches an answer that was obtained without a query.
    pub(super) fn keep(&mut self, query: Query, answer: Answer) {
        self.cached_mut().keep(None, query, now_ms(), answer);
    }

    /// Asks the queries of these lanes for this reader, and then the follow-up queries to the
    /// answers.
    pub(super) fn ask_lanes(&mut self, reader: Reader, is_due: impl Fn(Lane) -> bool) {
        let begun_ms = now_ms();
        let is_due = |call: &Call| is_due(call.lane);
        let mut due: Vec<_> = CALLS
            .iter()
            .filter(|call| call.reader == reader && is_due(call))
            .copied()
            .collect();
        loop {
            due.retain(|call| self.is_time(call, begun_ms));
            if due.is_empty() {
                return;
            }
            let queries: Vec<_> = due.iter().map(|call| call.query).collect();
            self.ask(None, &queries);
            let cached = self.cached();
            let answered = queries
                .iter()
                .filter_map(|own| Some((*own, cached.get(None, *own)?)));
            due = answered
                .flat_map(|(query, cached)| follow_up_calls(query, &cached.answer))
                .filter(is_due)
                .collect();
        }
    }

    /// Returns `true` if this call is due, given that its lane is.
    fn is_time(&mut self, call: &Call, begun_ms: u64) -> bool {
        let known_ms = self
            .cached()
            .get(None, call.query)
            .map(|cached| cached.at_ms);
        let period = if self.is_quick() {
            Duration::ZERO
        } else {
            call.period(self.is_watched)
        };
        if call.lane == Lane::Once {
            known_ms.is_none()
        } else if period.is_zero() {
            // Two answers can have the same follow-up query.
            known_ms.is_none_or(|at_ms| at_ms < begun_ms)
        } else {
            self.paced
                .entry(call.query)
                .or_insert(Every::new(period))
                .is_due_after(period)
        }
    }

    /// Returns `true` if queries are answered from memory, so that none is too expensive.
    pub(super) fn is_quick(&self) -> bool {
        self.answers.is_quick()
    }

    /// Opens the GPU again.
    ///
    /// # Errors
    /// Returns the driver's error as a [`DeviceError`].
    pub(super) fn open(&self) -> Result<(), DeviceError> {
        self.answers.open_gpu(self.index).map_err(device_error)
    }

    /// Asks a query about the machine.
    pub(super) fn system(&mut self, query: SystemQuery) -> Answer {
        self.answers.ask_system(query)
    }

    /// Returns GPM's values since the last call, in the order of `metrics`.
    pub(super) fn gpm(&mut self, mig: Option<u32>, metrics: &[u32]) -> Result<Activity, Code> {
        let subject = Subject {
            gpu: self.index,
            mig,
        };
        self.call(QueryKey::Activity(mig), |answers| {
            answers.read_activity(subject, metrics)
        })
    }

    /// Returns the driver's process samples since this time, in microseconds since 1970 by the
    /// driver's clock.
    pub(super) fn process_utilization(&mut self, since_us: u64) -> Answer {
        let subject = Subject::gpu(self.index);
        let query = Query::ProcessUtilization(since_us);
        match self.call(QueryKey::ProcessUtilization, |answers| {
            answers.ask(subject, query)
        }) {
            // No process was active since then.
            Err(Code::NOT_FOUND) => Ok(Value::Numbers(Vec::new())),
            answer => answer,
        }
    }

    /// Returns the driver's samples of this `nvmlSamplingType_t` after `since_us`, or `None` if
    /// there are none.
    pub(super) fn samples(&mut self, kind: u32, since_us: u64) -> Option<Value> {
        let subject = Subject::gpu(self.index);
        self.call(QueryKey::Samples(kind), |answers| {
            answers.ask(subject, Query::Samples(kind, since_us))
        })
        .ok()
    }

    /// Makes a call, unless it is recorded as unsupported.
    fn call<T>(
        &mut self,
        asked: QueryKey,
        call: impl FnOnce(&dyn Backend) -> Result<T, Code>,
    ) -> Result<T, Code> {
        if !self.has(asked) {
            return Err(Code::NOT_SUPPORTED);
        }
        let answer = call(&*self.answers);
        self.note(asked, &answer);
        answer
    }

    fn has(&self, asked: QueryKey) -> bool {
        self.unsupported
            .get(&asked)
            .is_none_or(|since| since.elapsed() >= ASK_AGAIN)
    }

    fn note<T>(&mut self, asked: QueryKey, answer: &Result<T, Code>) {
        match answer {
            Ok(_) => {
                self.unsupported.remove(&asked);
            }
            Err(Code::NOT_SUPPORTED | Code::FUNCTION_NOT_FOUND | Code::DEPRECATED) => {
                self.unsupported.insert(asked, Instant::now());
            }
            Err(_) => {}
        }
        // Constant answers come from memory, so that they say nothing about the driver.
        if !matches!(asked, QueryKey::About(_, query) if is_constant(query)) {
            self.votes.count(answer.as_ref().err().copied());
        }
    }

    /// Returns an error if the calls of a tick show that the GPU is lost or has failed, or that the
    /// driver is gone.
    pub(super) fn verdict_of_tick(&mut self) -> Result<(), DeviceError> {
        let votes = std::mem::take(&mut self.votes);
        votes.is_gone()?;
        self.silence.update(&votes)
    }

    /// Returns an error if the calls for details show that the GPU or the driver is gone.
    pub(super) fn verdict_of_details(&mut self) -> Result<(), DeviceError> {
        std::mem::take(&mut self.votes).is_gone()
    }

    /// Forgets the MIG devices, because other devices may have their indices now.
    pub(super) fn forget_mig_devices(&mut self) {
        self.answers.forget_mig_devices(self.index);
        self.cached_mut().forget_mig_devices();
        self.unsupported.retain(|asked, _| {
            !matches!(
                asked,
                QueryKey::About(Some(_), _) | QueryKey::Activity(Some(_))
            )
        });
    }

    /// Forgets which queries are unsupported, because the GPU's configuration has changed.
    pub(super) fn forget_what_is_missing(&mut self) {
        self.unsupported.clear();
    }

    /// Forgets the answers to these queries. Those that were recently unsupported are not asked
    /// again yet.
    pub(super) fn forget(&mut self, is_one: impl Fn(Query) -> bool) {
        self.unsupported.retain(|asked, since| match asked {
            QueryKey::About(_, query) => !is_one(*query) || since.elapsed() < ASK_AGAIN,
            _ => true,
        });
        self.cached_mut().forget(is_one);
    }
}

impl Votes {
    fn count(&mut self, error: Option<Code>) {
        let votes = match error {
            None => &mut self.answered,
            // The library lacks this function, so that the driver was not called.
            Some(Code::FUNCTION_NOT_FOUND) => return,
            Some(code) => self.failed.entry(code.0).or_default(),
        };
        *votes = votes.saturating_add(1);
    }

    /// Returns an error if most calls reported that the GPU or the driver is gone. A few such codes
    /// prove nothing: a single function can be defective. Conversely, some functions succeed for a
    /// while because they are answered from memory.
    fn is_gone(&self) -> Result<(), DeviceError> {
        let failed = self
            .failed
            .iter()
            .map(|(code, count)| (Code(*code), *count));
        let replaced: Vec<_> = failed
            .filter(|(code, _)| is_driver_replaced(*code))
            .collect();
        if self
            .failed
            .get(&Code::GPU_IS_LOST.0)
            .is_some_and(|lost| *lost > self.answered)
        {
            return Err(DeviceError::Lost);
        }
        match replaced.last() {
            Some((code, _))
                if replaced.iter().map(|(_, count)| count).sum::<u32>() > self.answered =>
            {
                Err(driver_replaced(code.0))
            }
            _ => Ok(()),
        }
    }

    /// Returns the most frequent error code.
    fn most_frequent(&self) -> Option<Code> {
        self.failed
            .iter()
            .max_by_key(|(_, count)| **count)
            .map(|(code, _)| Code(*code))
    }
}

/// The state of a newly opened GPU, which counts as failed after the first tick without a
/// successful call. Otherwise, a failed GPU would look healthy each time it is opened again.
impl Default for UnansweredTicks {
    fn default() -> Self {
        Self {
            ticks: FAILED_AFTER - 1,
            code: None,
        }
    }
}

impl UnansweredTicks {
    fn update(&mut self, votes: &Votes) -> Result<(), DeviceError> {
        if votes.answered > 0 {
            *self = Self {
                ticks: 0,
                code: None,
            };
            return Ok(());
        }
        // A tick can consist of no calls at all, because unsupported ones are not repeated.
        let Some(code) = votes.most_frequent().or(self.code) else {
            return Ok(());
        };
        self.code = Some(code);
        self.ticks = self.ticks.saturating_add(1);
        if self.ticks >= FAILED_AFTER {
            Err(device_error(code))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn votes(answered: u32, failed: &[(u32, u32)]) -> Votes {
        let mut votes = Votes::default();
        (0..answered).for_each(|_| votes.count(None));
        for (code, count) in failed {
            (0..*count).for_each(|_| votes.count(Some(Code(*code))));
        }
        votes
    }

    #[test]
    fn one_function_alone_that_says_that_the_gpu_is_gone_has_a_defect_of_its_own() {
        let verdict = |answered, failed: &[(u32, u32)]| votes(answered, failed).is_gone();
        assert_eq!(verdict(1, &[]), Ok(()));
        assert_eq!(verdict(0, &[(15, 1)]), Err(DeviceError::Lost));
        assert_eq!(verdict(0, &[(18, 1)]), Err(driver_replaced(18)));
        assert_eq!(verdict(1, &[(15, 1), (18, 1)]), Ok(()));
    }

    /// Returns the verdict of each tick for a newly opened GPU.
    fn verdicts(ticks: &[Votes]) -> Vec<Result<(), DeviceError>> {
        let mut silence = UnansweredTicks::default();
        ticks.iter().map(|votes| silence.update(votes)).collect()
    }

    #[test]
    fn three_unanswered_ticks_are_a_failure() {
        let well = || votes(20, &[(3, 4), (999, 2)]);
        for code in [2, 3, 4, 6, 10, 16, 17, 27, 999] {
            let silent = || votes(0, &[(code, 20), (1000, 2)]);
            let failed = Err(device_error(Code(code)));
            let ticks = [
                well(),
                silent(),
                silent(),
                well(),
                silent(),
                silent(),
                silent(),
                well(),
            ];
            let ok = || Ok(());
            assert_eq!(
                verdicts(&ticks),
                [ok(), ok(), ok(), ok(), ok(), ok(), failed.clone(), ok()],
                "{code}"
            );
            assert_eq!(
                verdicts(&[silent(), well()]),
                [failed, ok()],
                "it was just opened: {code}"
            );
        }
    }

    #[test]
    fn unsupported_calls_do_not_end_silence() {
        let none = || votes(0, &[]);
        let failed = Err(device_error(Code::NOT_SUPPORTED));
        assert_eq!(
            verdicts(&[votes(1, &[]), votes(0, &[(3, 20)]), none(), none()])[3],
            failed
        );
    }

    #[test]
    fn missing_library_functions_are_no_failure() {
        assert_eq!(
            verdicts(&[votes(0, &[(13, 20)]), votes(0, &[(13, 20)])]),
            [Ok(()), Ok(())]
        );
    }
}
