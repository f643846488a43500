//! The processes on a GPU, and each process's share of GPU time from the driver's samples. The
//! driver's clock can differ from the machine's clock.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::{
    error::to_absence,
    querier::Querier,
    query::Value,
    schedule::IntervalTimer,
    to_model::{self, TimedAnswers},
};
use crate::model::{Process, Reading, now_ms};

/// The minimum time between two requests for process samples. A request costs 2 ms, and the driver
/// takes new samples at most once a second.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// While nobody is watching, reading the process samples of a GPU with several processes may take
/// about 1/1000 of a core's time. The samples are still needed, because history attributes the
/// GPU's work to processes, and the driver keeps only the latest sample of each process.
const TIME_DIVISOR: u32 = 1000;
const MAX_SHARED_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct ProcessReader {
    every: IntervalTimer,
    /// The result of the last request for process samples: success, or the reason why the samples
    /// are absent.
    sampled: Reading<()>,
    shares: ProcessShares,
    /// The time of the last request, in milliseconds since 1970.
    asked_ms: u64,
    took: Duration,
}

impl ProcessReader {
    pub(super) fn new() -> Self {
        Self {
            every: IntervalTimer::new(SAMPLE_INTERVAL),
            sampled: Reading::Now(()),
            shares: ProcessShares::default(),
            asked_ms: 0,
            took: Duration::ZERO,
        }
    }

    /// Returns all processes on the GPU, sorted by PID, from lists that were read at or after
    /// `begun_ms`. If `is_due` is set, the activity of the processes is read. If several processes
    /// share the GPU, only their activity shows which of them is working, so it is then also read
    /// at other times, but less often.
    pub(super) fn read(
        &mut self,
        querier: &mut Querier,
        begun_ms: u64,
        is_due: bool,
    ) -> Reading<Vec<Process>> {
        let listed =
            match to_model::list_processes(TimedAnswers::new(&querier.read_cache(), begun_ms)) {
                Reading::Now(listed) | Reading::Earlier { value: listed, .. } => listed,
                Reading::Absent(reason) => return Reading::Absent(reason),
            };
        if listed.is_empty() {
            self.shares.retain(|_| false);
            return Reading::Now(Vec::new());
        }
        let is_shared = listed
            .keys()
            .any(|(pid, _)| Some(pid) != listed.keys().next().map(|(first, _)| first));
        let period = if querier.answers_from_memory() {
            Duration::ZERO
        } else if is_due {
            SAMPLE_INTERVAL
        } else {
            self.took
                .saturating_mul(TIME_DIVISOR)
                .clamp(SAMPLE_INTERVAL, MAX_SHARED_INTERVAL)
        };
        if (is_due || is_shared) && self.every.is_due_after(period) {
            let (now, begun) = (now_ms(), Instant::now());
            let samples = querier.query_process_utilization(self.shares.newest_sample_us());
            self.sampled = Reading::from(samples.map_err(to_absence)).map(|samples| {
                self.shares
                    .add_samples(&DriverSample::parse_all(&samples), now);
            });
            (self.asked_ms, self.took) = (now, begun.elapsed());
        }
        self.shares
            .retain(|pid| listed.keys().any(|(listed, _)| *listed == pid));
        Reading::Now(to_model::make_processes(
            &listed,
            &self.shares,
            &self.sampled,
            self.asked_ms,
            begun_ms,
        ))
    }
}

/// How long a process sample is valid, in milliseconds. The driver takes a sample at most once a
/// second. If there is no newer sample after this time, the process has not been running.
const SAMPLE_LIFE_MS: u64 = 2_000;

/// A sample whose time is further in the future than this is wrong. If this applies to all samples,
/// the driver's clock is ahead.
const MAX_FUTURE_US: u64 = 2_000_000;

/// The maximum age of new samples. If new samples are older, the driver's clock is behind.
const MAX_PAST_US: u64 = 10_000_000;

/// The maximum time between two answers that can show that the driver's clock is behind. The
/// samples in the second answer were taken after the first answer. If their times are nevertheless
/// old, the clock is behind.
const MAX_ANSWER_GAP_MS: u64 = 3_000;

/// If the last sample's time is in the future, and no newer sample arrives for this long, the clock
/// may have been set back. All samples are then requested again.
const SILENCE_LIMIT_MS: u64 = 10_000;

#[derive(Debug, Clone, Copy)]
struct DriverSample {
    pid: u32,
    /// The sample's time according to the driver's clock, in microseconds.
    at_us: u64,
    /// The process's shares. They have not been validated, and the driver sometimes reports more
    /// than 100%.
    percent: SharePercents,
}

impl DriverSample {
    /// Parses the samples in an answer. A sample consists of time, PID, SM, memory, encoder,
    /// decoder, JPEG and OFA.
    fn parse_all(answer: &Value) -> Vec<Self> {
        let rows = answer.numbers().as_chunks().0;
        let sample = |[at_us, pid, sm, memory, encoder, decoder, _jpeg, _ofa]: &[i128; 8]| {
            let share = |share: &i128| u32::try_from(*share).ok();
            Some(Self {
                pid: u32::try_from(*pid).ok()?,
                at_us: u64::try_from(*at_us).ok()?,
                percent: SharePercents {
                    sm: share(sm)?,
                    memory: share(memory)?,
                    encoder: share(encoder)?,
                    decoder: share(decoder)?,
                },
            })
        };
        rows.iter().filter_map(sample).collect()
    }
}

#[derive(Debug, Default)]
pub(super) struct ProcessShares {
    /// The newest sample's time according to the driver's clock, or 0 before the first sample.
    newest_us: u64,
    /// The value that `newest_us` had before it was reset to request all samples again.
    known_us: u64,
    /// The difference between the driver's clock and the machine's clock, which is positive if the
    /// driver's clock is ahead.
    ahead_us: i64,
    /// The time at which the driver last answered a request for samples. `heard_ms` is the time of
    /// the last answer that contained a new sample.
    answered_ms: Option<u64>,
    heard_ms: u64,
    latest: HashMap<u32, ProcessShare>,
}

/// The newest sample of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessShare {
    /// The sample's time according to the machine's clock, in milliseconds since 1970.
    pub(super) at_ms: u64,
    /// The process's shares, or `None` if the driver reported impossible numbers.
    pub(super) percent: Option<SharePercents>,
}

/// Shares of the GPU's time, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SharePercents {
    pub(super) sm: u32,
    pub(super) memory: u32,
    pub(super) encoder: u32,
    pub(super) decoder: u32,
}

impl ProcessShares {
    /// Returns the time after which samples must be requested, according to the driver's clock. The
    /// value 0 requests all samples.
    fn newest_sample_us(&self) -> u64 {
        self.newest_us
    }

    /// Returns a process's recent shares, or `None` if the process has not been running.
    pub(super) fn find_recent(&self, pid: u32, now_ms: u64) -> Option<ProcessShare> {
        self.latest
            .get(&pid)
            .copied()
            .filter(|share| now_ms.saturating_sub(share.at_ms) < SAMPLE_LIFE_MS)
    }

    fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        self.latest.retain(|pid, _| is_there(*pid));
    }

    /// Adds the samples that the driver has taken since
    /// [`newest_sample_us`](Self::newest_sample_us).
    fn add_samples(&mut self, samples: &[DriverSample], now_ms: u64) {
        let machine_us = now_ms.saturating_mul(1000);
        let latest_us = machine_us.saturating_add(MAX_FUTURE_US);
        let is_timely = self.newest_us > 0
            && self
                .answered_ms
                .is_some_and(|at| now_ms.abs_diff(at) < MAX_ANSWER_GAP_MS);
        self.answered_ms = Some(now_ms);
        let is_ahead = samples.iter().all(|sample| sample.at_us > latest_us);
        let is_odd = |sample: &&DriverSample| !is_ahead && sample.at_us > latest_us;
        let newest = samples
            .iter()
            .filter(|sample| !is_odd(sample))
            .map(|sample| sample.at_us)
            .max();
        let Some(newest_us) =
            newest.filter(|newest| *newest > self.newest_us && *newest != self.known_us)
        else {
            self.handle_missing_samples(now_ms);
            return;
        };
        self.heard_ms = now_ms;
        let is_behind = is_timely && newest_us.saturating_add(MAX_PAST_US) < machine_us;
        if is_ahead || is_behind {
            self.ahead_us = newest_us.wrapping_sub(machine_us).cast_signed();
        } else if is_timely {
            self.ahead_us = 0;
        }
        let known_us = std::mem::replace(&mut self.newest_us, newest_us);
        for sample in samples
            .iter()
            .filter(|sample| !is_odd(sample) && sample.at_us > known_us)
        {
            self.store_if_newest(sample);
        }
    }

    fn handle_missing_samples(&mut self, now_ms: u64) {
        if self.newest_us > now_ms.saturating_mul(1000).saturating_add(MAX_FUTURE_US)
            && now_ms.abs_diff(self.heard_ms) > SILENCE_LIMIT_MS
        {
            (self.known_us, self.newest_us, self.heard_ms) = (self.newest_us, 0, now_ms);
            self.latest.clear();
        } else if self.newest_us == 0 {
            // All samples were requested again, and none of them was new. The clock was therefore
            // not set back: the driver's clock really is ahead.
            self.newest_us = self.known_us;
        }
    }

    /// Stores a sample if it is the newest of its process. Shares above 100 are meaningless, so a
    /// sample with such shares does not replace a previous sample that is still valid.
    fn store_if_newest(&mut self, sample: &DriverSample) {
        let at_ms = sample
            .at_us
            .saturating_add_signed(self.ahead_us.saturating_neg())
            / 1000;
        let own = sample.percent;
        let is_possible = [own.sm, own.memory, own.encoder, own.decoder]
            .iter()
            .all(|share| *share <= 100);
        let percent = is_possible.then_some(own);
        let stands = |known: &ProcessShare| {
            let lives = at_ms.saturating_sub(known.at_ms) < SAMPLE_LIFE_MS;
            known.at_ms >= at_ms || (percent.is_none() && known.percent.is_some() && lives)
        };
        if !self.latest.get(&sample.pid).is_some_and(stands) {
            self.latest
                .insert(sample.pid, ProcessShare { at_ms, percent });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_763_630_000_000;

    fn make_sample(pid: u32, at_ms: u64, sm: u32) -> DriverSample {
        DriverSample {
            pid,
            at_us: at_ms * 1000,
            percent: SharePercents {
                sm,
                memory: 1,
                encoder: 0,
                decoder: 0,
            },
        }
    }

    fn find_sm(shares: &ProcessShares, pid: u32, now_ms: u64) -> Option<u32> {
        shares
            .find_recent(pid, now_ms)?
            .percent
            .map(|percent| percent.sm)
    }

    #[test]
    fn old_samples_do_not_count_toward_recent_shares() {
        let mut shares = ProcessShares::default();
        assert_eq!(shares.newest_sample_us(), 0);
        shares.add_samples(
            &[
                make_sample(1, NOW_MS - 500, 40),
                make_sample(2, NOW_MS - 5_000, 90),
            ],
            NOW_MS,
        );
        assert_eq!(
            (find_sm(&shares, 1, NOW_MS), find_sm(&shares, 2, NOW_MS)),
            (Some(40), None)
        );
        assert_eq!(shares.newest_sample_us(), (NOW_MS - 500) * 1000);
        shares.add_samples(&[], NOW_MS + 1000);
        assert_eq!(find_sm(&shares, 1, NOW_MS + 1000), Some(40));
        assert_eq!(
            find_sm(&shares, 1, NOW_MS + 2000),
            None,
            "nothing ran since"
        );
    }

    #[test]
    fn clock_difference_does_not_hide_samples() {
        const HOUR_MS: u64 = 3_600_000;
        for clock in [NOW_MS - HOUR_MS, NOW_MS + HOUR_MS] {
            let mut shares = ProcessShares::default();
            for second in 0..5 {
                shares.add_samples(
                    &[make_sample(1, clock + second * 1000, 40)],
                    NOW_MS + second * 1000 + 20,
                );
                // Only the second answer can show that the driver's clock is behind.
                assert!(
                    second == 0 || find_sm(&shares, 1, NOW_MS + second * 1000 + 20) == Some(40),
                    "{clock} {second}"
                );
            }
            assert_eq!(find_sm(&shares, 1, NOW_MS + 7_000), None);
        }
    }

    #[test]
    fn process_shares_from_before_hang_are_not_reported() {
        let mut shares = ProcessShares::default();
        shares.add_samples(&[make_sample(1, NOW_MS, 40)], NOW_MS);
        shares.add_samples(&[make_sample(1, NOW_MS + 1000, 40)], NOW_MS + 60_000);
        assert_eq!(find_sm(&shares, 1, NOW_MS + 60_000), None);
    }

    #[test]
    fn clock_set_back_is_detected() {
        let old = make_sample(1, NOW_MS + 100_000, 40);
        let mut shares = ProcessShares::default();
        shares.add_samples(&[old], NOW_MS + 100_000);
        shares.add_samples(&[], NOW_MS);
        assert_eq!(shares.newest_sample_us(), 0, "the clock was set back");
        shares.add_samples(&[old, make_sample(1, NOW_MS + 900, 50)], NOW_MS + 1000);
        assert_eq!(
            (
                find_sm(&shares, 1, NOW_MS + 1000),
                shares.newest_sample_us()
            ),
            (Some(50), (NOW_MS + 900) * 1000)
        );

        // The driver's clock is an hour ahead. The GPU is idle, so the driver returns the same last
        // sample again, which must not count as new.
        let mut shares = ProcessShares::default();
        let last = make_sample(1, NOW_MS + 3_600_000, 40);
        shares.add_samples(&[last], NOW_MS);
        shares.add_samples(&[], NOW_MS + 11_000);
        assert_eq!(shares.newest_sample_us(), 0);
        shares.add_samples(&[last], NOW_MS + 12_000);
        assert_eq!(
            (
                find_sm(&shares, 1, NOW_MS + 12_000),
                shares.newest_sample_us()
            ),
            (None, last.at_us)
        );
    }

    #[test]
    fn impossible_process_share_is_unknown_after_previous_expires() {
        let mut shares = ProcessShares::default();
        shares.add_samples(&[make_sample(1, NOW_MS, 40)], NOW_MS);
        shares.add_samples(&[make_sample(1, NOW_MS + 1000, 4_000_000)], NOW_MS + 1000);
        assert_eq!(find_sm(&shares, 1, NOW_MS + 1000), Some(40));
        shares.add_samples(&[make_sample(1, NOW_MS + 2000, 4_000_000)], NOW_MS + 2000);
        assert_eq!(
            shares.find_recent(1, NOW_MS + 2000),
            Some(ProcessShare {
                at_ms: NOW_MS + 2000,
                percent: None
            })
        );
        shares.add_samples(&[make_sample(1, NOW_MS + 3000, 50)], NOW_MS + 3000);
        assert_eq!(find_sm(&shares, 1, NOW_MS + 3000), Some(50));
    }
}
