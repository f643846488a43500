//! Asking about one GPU, lane by lane, and not asking again what it does not have.

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

/// "Not supported" is no cheap answer (130 us for the fan of a board without one), and it can
/// change with a driver setting, so it is asked again only this often.
const ASK_AGAIN: Duration = Duration::from_mins(1);

/// Asks, keeps the answers, and notices when the GPU is lost.
pub(super) struct Querier {
    answers: Arc<dyn Backend>,
    index: u32,
    /// Shared with those who read answers while the driver is asked for others.
    cached: Arc<RwLock<CachedAnswers>>,
    /// What it does not have, and since when that is known.
    unsupported: HashMap<QueryKey, Instant>,
    /// When what is asked more rarely is asked next.
    paced: HashMap<Query, Every>,
    votes: Votes,
    silence: UnansweredTicks,
    /// Whether somebody watches.
    pub(super) is_watched: bool,
}

/// What can be asked, about the GPU or the MIG device of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum QueryKey {
    About(Option<u32>, Query),
    Activity(Option<u32>),
    ProcessUtilization,
    Samples(u32),
}

/// Counts of the calls since the last verdict: those that were answered, and those that failed, by
/// code.
#[derive(Debug, Default, Clone, PartialEq)]
struct Votes {
    answered: u32,
    failed: BTreeMap<u32, u32>,
}

/// The number of consecutive ticks in which no call was answered.
#[derive(Debug)]
struct UnansweredTicks {
    ticks: u32,
    /// The code that most calls of the latest of these ticks returned.
    code: Option<Code>,
}

/// After this many ticks without an answer, a GPU that answered before has failed. The driver may
/// be busy for a moment.
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

    /// The answers so far.
    pub(super) fn cached(&self) -> RwLockReadGuard<'_, CachedAnswers> {
        self.cached.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answers so far and those to come.
    pub(super) fn shared(&self) -> Arc<RwLock<CachedAnswers>> {
        Arc::clone(&self.cached)
    }

    fn cached_mut(&self) -> RwLockWriteGuard<'_, CachedAnswers> {
        self.cached.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks these about the GPU or the MIG device of this index, but for what it does not have.
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

    /// Keeps what was found out in another way.
    pub(super) fn keep(&mut self, query: Query, answer: Answer) {
        self.cached_mut().keep(None, query, now_ms(), answer);
    }

    /// Asks what the table has for these lanes and this reader, and then what the answers raise.
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

    /// Whether it is this call's time, whose lane it is.
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
            // Two answers may raise the same query.
            known_ms.is_none_or(|at_ms| at_ms < begun_ms)
        } else {
            self.paced
                .entry(call.query)
                .or_insert(Every::new(period))
                .is_due_after(period)
        }
    }

    /// Returns `true` if asking costs nothing, so that no query needs to be rare.
    pub(super) fn is_quick(&self) -> bool {
        self.answers.is_quick()
    }

    /// Opens the GPU anew.
    ///
    /// # Errors
    /// [`DeviceError`] as the driver gives it.
    pub(super) fn open(&self) -> Result<(), DeviceError> {
        self.answers.open_gpu(self.index).map_err(device_error)
    }

    /// Asks about the machine.
    pub(super) fn system(&mut self, query: SystemQuery) -> Answer {
        self.answers.ask_system(query)
    }

    /// What GPM counted since the last time, metric by metric.
    pub(super) fn gpm(&mut self, mig: Option<u32>, metrics: &[u32]) -> Result<Activity, Code> {
        let subject = Subject {
            gpu: self.index,
            mig,
        };
        self.call(QueryKey::Activity(mig), |answers| {
            answers.read_activity(subject, metrics)
        })
    }

    /// What the driver sampled of processes since this time (us since the epoch, by its clock).
    pub(super) fn process_utilization(&mut self, since_us: u64) -> Answer {
        let subject = Subject::gpu(self.index);
        let query = Query::ProcessUtilization(since_us);
        match self.call(QueryKey::ProcessUtilization, |answers| {
            answers.ask(subject, query)
        }) {
            // No process did anything since then.
            Err(Code::NOT_FOUND) => Ok(Value::Numbers(Vec::new())),
            answer => answer,
        }
    }

    /// What the driver keeps of this `nvmlSamplingType_t` from after this time on; `None` where
    /// that is nothing.
    pub(super) fn samples(&mut self, kind: u32, since_us: u64) -> Option<Value> {
        let subject = Subject::gpu(self.index);
        self.call(QueryKey::Samples(kind), |answers| {
            answers.ask(subject, Query::Samples(kind, since_us))
        })
        .ok()
    }

    /// Makes another call, unless it is known that there is no such thing.
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
        // Constant answers come from memory, not from the driver.
        if !matches!(asked, QueryKey::About(_, query) if is_constant(query)) {
            self.votes.count(answer.as_ref().err().copied());
        }
    }

    /// Returns an error if a tick's calls show that the GPU or the driver is gone, or that the GPU
    /// has failed.
    pub(super) fn verdict_of_tick(&mut self) -> Result<(), DeviceError> {
        let votes = std::mem::take(&mut self.votes);
        votes.is_gone()?;
        self.silence.update(&votes)
    }

    /// Returns an error if the calls for details show that the GPU or the driver is gone.
    pub(super) fn verdict_of_details(&mut self) -> Result<(), DeviceError> {
        std::mem::take(&mut self.votes).is_gone()
    }

    /// Looks for the GPU's MIG devices anew, since others may stand at their places.
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

    /// Asks everything again: the GPU has been changed.
    pub(super) fn forget_what_is_missing(&mut self) {
        self.unsupported.clear();
    }

    /// Forgets the answers to these queries, also that there are none.
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
            // The library lacks the function, so the driver was not called.
            Some(Code::FUNCTION_NOT_FOUND) => return,
            Some(code) => self.failed.entry(code.0).or_default(),
        };
        *votes = votes.saturating_add(1);
    }

    /// Returns an error if most calls reported that the GPU or the driver is gone. A single
    /// function that reports this is itself defective, and some functions are answered from memory
    /// for a while.
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

    /// Returns the code that most calls failed with.
    fn most_frequent(&self) -> Option<Code> {
        self.failed
            .iter()
            .max_by_key(|(_, count)| **count)
            .map(|(code, _)| Code(*code))
    }
}

/// A GPU that was just opened has failed with the first tick in which no call is answered.
/// Otherwise, a failed GPU would seem to be well each time it is opened.
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
        // Unsupported calls are not repeated at every tick.
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

    /// Returns the verdict of each of these ticks for a GPU that was just opened.
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
