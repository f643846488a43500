//! Scheduled queries about one GPU. Unsupported queries are not repeated at every tick.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::{Duration, Instant},
};

use foldhash::{HashMap, HashMapExt};

use super::{
    backend::{Backend, GpmResult},
    error::{driver_replaced_error, is_driver_replaced, to_device_error},
    query::{Answer, CachedAnswers, Code, Query, Subject, SystemQuery, Value},
    schedule::{CALLS, Call, IntervalTimer, Lane, Reader, follow_up_calls, is_constant},
};
use crate::{model::now_ms, vendor::DeviceError};

/// The time after which an unsupported query runs again. It is not repeated more often, because the
/// answer "Not supported" is expensive, for example 130 µs for the fan of a board without a fan. It
/// is repeated because the answer can change with the driver's settings.
const RETRY_INTERVAL: Duration = Duration::from_mins(1);

/// Runs queries about one GPU, caches their answers, and detects when the GPU is lost.
pub(super) struct Querier {
    answers: Arc<dyn Backend>,
    index: u32,
    /// The latest answers, shared with threads that may read them while a call to the driver is in
    /// progress.
    cached: Arc<RwLock<CachedAnswers>>,
    /// The unsupported calls, each with the time of the last attempt.
    unsupported: HashMap<QueryKey, Instant>,
    /// The timers for calls that are made only at intervals.
    paced: HashMap<Query, IntervalTimer>,
    votes: CallCounts,
    silence: UnansweredTicks,
    pub(super) is_watched: bool,
}

/// A kind of call. Calls that differ only in `since_us` are of the same kind. The index is that of
/// a MIG device, or `None` for the whole GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum QueryKey {
    About(Option<u32>, Query),
    Activity(Option<u32>),
    ProcessUtilization,
    Samples(u32),
}

/// The number of successful calls since the last check, and the number of failed calls by return
/// code.
#[derive(Debug, Default, Clone, PartialEq)]
struct CallCounts {
    answered: u32,
    failed: BTreeMap<u32, u32>,
}

/// The number of consecutive ticks in which no call succeeded.
#[derive(Debug)]
struct UnansweredTicks {
    ticks: u32,
    /// The most frequent return code in the latest of these ticks.
    code: Option<Code>,
}

/// A GPU counts as failed after this number of consecutive ticks without a successful call. After
/// fewer ticks, the driver may just be busy.
const MAX_UNANSWERED_TICKS: u32 = 3;

impl Querier {
    pub(super) fn new(answers: Arc<dyn Backend>, index: u32) -> Self {
        Self {
            answers,
            index,
            cached: Arc::default(),
            unsupported: HashMap::new(),
            paced: HashMap::new(),
            votes: CallCounts::default(),
            silence: UnansweredTicks::default(),
            is_watched: true,
        }
    }

    /// Returns the cached answers.
    pub(super) fn read_cache(&self) -> RwLockReadGuard<'_, CachedAnswers> {
        self.cached.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a shared reference to the cached answers, which continue to be updated.
    pub(super) fn share_cache(&self) -> Arc<RwLock<CachedAnswers>> {
        Arc::clone(&self.cached)
    }

    fn write_cache(&self) -> RwLockWriteGuard<'_, CachedAnswers> {
        self.cached.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs queries about the GPU, or about the MIG device with the index `mig`. Unsupported
    /// queries are skipped.
    pub(super) fn run_queries(&mut self, mig: Option<u32>, queries: &[Query]) {
        let queries: Vec<_> = queries
            .iter()
            .copied()
            .filter(|own| self.may_query(QueryKey::About(mig, *own)))
            .collect();
        let answers = self.answers.run_queries(
            Subject {
                gpu: self.index,
                mig,
            },
            &queries,
        );
        let at_ms = now_ms();
        for (query, answer) in queries.iter().zip(answers) {
            self.record_answer(QueryKey::About(mig, *query), &answer);
            self.write_cache().store_answer(mig, *query, at_ms, answer);
        }
    }

    /// Caches an answer that was not obtained by running the query.
    pub(super) fn cache_answer(&mut self, query: Query, answer: Answer) {
        self.write_cache()
            .store_answer(None, query, now_ms(), answer);
    }

    /// Runs the queries for `reader` whose lanes are due according to `is_due`. Then runs the
    /// follow-up queries that the answers require.
    pub(super) fn run_due_queries(&mut self, reader: Reader, is_due: impl Fn(Lane) -> bool) {
        let begun_ms = now_ms();
        let is_due = |call: &Call| is_due(call.lane);
        let mut due: Vec<_> = CALLS
            .iter()
            .filter(|call| call.reader == reader && is_due(call))
            .copied()
            .collect();
        loop {
            due.retain(|call| self.is_call_due(call, begun_ms));
            if due.is_empty() {
                return;
            }
            let queries: Vec<_> = due.iter().map(|call| call.query).collect();
            self.run_queries(None, &queries);
            let cached = self.read_cache();
            let answered = queries
                .iter()
                .filter_map(|own| Some((*own, cached.get(None, *own)?)));
            due = answered
                .flat_map(|(query, cached)| follow_up_calls(query, &cached.answer))
                .filter(is_due)
                .collect();
        }
    }

    /// Returns `true` if `call` must be made now. The caller has already checked that the call's
    /// lane is due. This function checks that enough time has passed since the last call.
    fn is_call_due(&mut self, call: &Call, begun_ms: u64) -> bool {
        let known_ms = self
            .read_cache()
            .get(None, call.query)
            .map(|cached| cached.at_ms);
        let period = if self.answers_from_memory() {
            Duration::ZERO
        } else {
            call.min_period(self.is_watched)
        };
        if call.lane == Lane::Once {
            known_ms.is_none()
        } else if period.is_zero() {
            // Two answers can require the same follow-up query, so a query that has already run at
            // this tick is skipped.
            known_ms.is_none_or(|at_ms| at_ms < begun_ms)
        } else {
            self.paced
                .entry(call.query)
                .or_insert(IntervalTimer::new(period))
                .is_due_after(period)
        }
    }

    /// Returns `true` if queries are answered from memory, so that the intervals for expensive
    /// queries are not needed.
    pub(super) fn answers_from_memory(&self) -> bool {
        self.answers.answers_from_memory()
    }

    /// Opens the GPU again.
    ///
    /// # Errors
    /// Returns the driver's error as a [`DeviceError`].
    pub(super) fn reopen_gpu(&self) -> Result<(), DeviceError> {
        self.answers.open_gpu(self.index).map_err(to_device_error)
    }

    /// Runs a query about the machine.
    pub(super) fn query_system(&mut self, query: SystemQuery) -> Answer {
        self.answers.query_system(query)
    }

    /// Returns the GPM metrics for the time since the last call, in the order of `metrics`.
    pub(super) fn read_gpm(
        &mut self,
        mig: Option<u32>,
        metrics: &[u32],
    ) -> Result<GpmResult, Code> {
        let subject = Subject {
            gpu: self.index,
            mig,
        };
        self.make_call(QueryKey::Activity(mig), |answers| {
            answers.read_gpm_metrics(subject, metrics)
        })
    }

    /// Returns the driver's process samples taken after `since_us`, in microseconds since 1970
    /// according to the driver's clock.
    pub(super) fn query_process_utilization(&mut self, since_us: u64) -> Answer {
        let subject = Subject::from_gpu(self.index);
        let query = Query::ProcessUtilization(since_us);
        match self.make_call(QueryKey::ProcessUtilization, |answers| {
            answers.run_query(subject, query)
        }) {
            // No process has been active since `since_us`.
            Err(Code::NOT_FOUND) => Ok(Value::Numbers(Vec::new())),
            answer => answer,
        }
    }

    /// Returns the driver's samples of the `nvmlSamplingType_t` `kind` after `since_us`, or `None`
    /// if there are no samples.
    pub(super) fn query_samples(&mut self, kind: u32, since_us: u64) -> Option<Value> {
        let subject = Subject::from_gpu(self.index);
        self.make_call(QueryKey::Samples(kind), |answers| {
            answers.run_query(subject, Query::Samples(kind, since_us))
        })
        .ok()
    }

    /// Makes a call, unless it is known to be unsupported.
    fn make_call<T>(
        &mut self,
        asked: QueryKey,
        call: impl FnOnce(&dyn Backend) -> Result<T, Code>,
    ) -> Result<T, Code> {
        if !self.may_query(asked) {
            return Err(Code::NOT_SUPPORTED);
        }
        let answer = call(&*self.answers);
        self.record_answer(asked, &answer);
        answer
    }

    fn may_query(&self, asked: QueryKey) -> bool {
        self.unsupported
            .get(&asked)
            .is_none_or(|since| since.elapsed() >= RETRY_INTERVAL)
    }

    fn record_answer<T>(&mut self, asked: QueryKey, answer: &Result<T, Code>) {
        match answer {
            Ok(_) => {
                self.unsupported.remove(&asked);
            }
            Err(Code::NOT_SUPPORTED | Code::FUNCTION_NOT_FOUND | Code::DEPRECATED) => {
                self.unsupported.insert(asked, Instant::now());
            }
            Err(_) => {}
        }
        // Constant answers come from memory, so they do not show whether the driver responds.
        if !matches!(asked, QueryKey::About(_, query) if is_constant(query)) {
            self.votes.count_call(answer.as_ref().err().copied());
        }
    }

    /// Returns an error if the calls of a tick show that the GPU is lost or failed, or that the
    /// driver is no longer loaded.
    pub(super) fn check_gpu_after_tick(&mut self) -> Result<(), DeviceError> {
        let votes = std::mem::take(&mut self.votes);
        votes.check_gpu_and_driver_exist()?;
        self.silence.update(&votes)
    }

    /// Returns an error if the calls for details show that the GPU is lost or the driver is no
    /// longer loaded.
    pub(super) fn check_gpu_after_details(&mut self) -> Result<(), DeviceError> {
        std::mem::take(&mut self.votes).check_gpu_and_driver_exist()
    }

    /// Forgets everything about MIG devices, because other devices may have the same indices now.
    pub(super) fn forget_mig_devices(&mut self) {
        self.answers.forget_mig_devices(self.index);
        self.write_cache().forget_mig_devices();
        self.unsupported.retain(|asked, _| {
            !matches!(
                asked,
                QueryKey::About(Some(_), _) | QueryKey::Activity(Some(_))
            )
        });
    }

    /// Forgets which queries are unsupported. This is called when the GPU's configuration has
    /// changed.
    pub(super) fn forget_unsupported(&mut self) {
        self.unsupported.clear();
    }

    /// Forgets the answers to the queries for which `is_one` returns `true`. Queries that were
    /// recently unsupported are still skipped.
    pub(super) fn forget_answers(&mut self, is_one: impl Fn(Query) -> bool) {
        self.unsupported.retain(|asked, since| match asked {
            QueryKey::About(_, query) => !is_one(*query) || since.elapsed() < RETRY_INTERVAL,
            _ => true,
        });
        self.write_cache().forget_answers(is_one);
    }
}

impl CallCounts {
    fn count_call(&mut self, error: Option<Code>) {
        let votes = match error {
            None => &mut self.answered,
            // The library lacks this function, so the driver was not called.
            Some(Code::FUNCTION_NOT_FOUND) => return,
            Some(code) => self.failed.entry(code.0).or_default(),
        };
        *votes = votes.saturating_add(1);
    }

    /// Returns an error if most calls reported that the GPU is lost or the driver is unloaded. A
    /// few such codes prove nothing, because a single function can be defective. A few successful
    /// calls prove nothing either, because some functions return values from memory for a while
    /// after a failure.
    fn check_gpu_and_driver_exist(&self) -> Result<(), DeviceError> {
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
                Err(driver_replaced_error(code.0))
            }
            _ => Ok(()),
        }
    }

    /// Returns the most frequent error code among the failed calls.
    fn most_frequent_error(&self) -> Option<Code> {
        self.failed
            .iter()
            .max_by_key(|(_, count)| **count)
            .map(|(code, _)| Code(*code))
    }
}

/// Creates the state for a newly opened GPU, which counts as failed after its first tick without a
/// successful call. If more ticks were allowed, a failed GPU would look healthy each time it is
/// reopened.
impl Default for UnansweredTicks {
    fn default() -> Self {
        Self {
            ticks: MAX_UNANSWERED_TICKS - 1,
            code: None,
        }
    }
}

impl UnansweredTicks {
    fn update(&mut self, votes: &CallCounts) -> Result<(), DeviceError> {
        if votes.answered > 0 {
            *self = Self {
                ticks: 0,
                code: None,
            };
            return Ok(());
        }
        // Unsupported calls are not repeated, so a tick can consist of no calls at all. The
        // previous tick's code then still applies.
        let Some(code) = votes.most_frequent_error().or(self.code) else {
            return Ok(());
        };
        self.code = Some(code);
        self.ticks = self.ticks.saturating_add(1);
        if self.ticks >= MAX_UNANSWERED_TICKS {
            Err(to_device_error(code))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_counts(answered: u32, failed: &[(u32, u32)]) -> CallCounts {
        let mut votes = CallCounts::default();
        (0..answered).for_each(|_| votes.count_call(None));
        for (code, count) in failed {
            (0..*count).for_each(|_| votes.count_call(Some(Code(*code))));
        }
        votes
    }

    #[test]
    fn gpu_is_lost_only_if_no_call_succeeds() {
        let verdict = |answered, failed: &[(u32, u32)]| {
            make_counts(answered, failed).check_gpu_and_driver_exist()
        };
        assert_eq!(verdict(1, &[]), Ok(()));
        assert_eq!(verdict(0, &[(15, 1)]), Err(DeviceError::Lost));
        assert_eq!(verdict(0, &[(18, 1)]), Err(driver_replaced_error(18)));
        assert_eq!(verdict(1, &[(15, 1), (18, 1)]), Ok(()));
    }

    /// Returns the result of the check after each tick, for a newly opened GPU.
    fn check_gpu_after_each_tick(ticks: &[CallCounts]) -> Vec<Result<(), DeviceError>> {
        let mut silence = UnansweredTicks::default();
        ticks.iter().map(|votes| silence.update(votes)).collect()
    }

    #[test]
    fn gpu_fails_after_three_consecutive_unanswered_ticks() {
        let well = || make_counts(20, &[(3, 4), (999, 2)]);
        for code in [2, 3, 4, 6, 10, 16, 17, 27, 999] {
            let silent = || make_counts(0, &[(code, 20), (1000, 2)]);
            let failed = Err(to_device_error(Code(code)));
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
                check_gpu_after_each_tick(&ticks),
                [ok(), ok(), ok(), ok(), ok(), ok(), failed.clone(), ok()],
                "{code}"
            );
            assert_eq!(
                check_gpu_after_each_tick(&[silent(), well()]),
                [failed, ok()],
                "it was just opened: {code}"
            );
        }
    }

    #[test]
    fn unsupported_calls_do_not_count_as_answers() {
        let none = || make_counts(0, &[]);
        let failed = Err(to_device_error(Code::NOT_SUPPORTED));
        assert_eq!(
            check_gpu_after_each_tick(&[
                make_counts(1, &[]),
                make_counts(0, &[(3, 20)]),
                none(),
                none()
            ])[3],
            failed
        );
    }

    #[test]
    fn missing_library_functions_do_not_count_as_failure() {
        assert_eq!(
            check_gpu_after_each_tick(&[make_counts(0, &[(13, 20)]), make_counts(0, &[(13, 20)])]),
            [Ok(()), Ok(())]
        );
    }
}
