//! The shares of GPU time of each process, from the driver's samples. The driver's clock can differ
//! from that of the machine.

#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

use std::collections::HashMap;

use crate::vendor::nvml::query::Value;

/// The time for which a process sample is valid. The driver makes a sample at most once a second.
/// If there is no newer sample after this time, the process did not run.
const SAMPLE_LIFE_MS: u64 = 2_000;

/// The maximum time by which a sample may be in the future. A sample further ahead is an erroneous
/// answer. If all samples are further ahead, the driver's clock is ahead.
const FUTURE_US: u64 = 2_000_000;

/// The maximum age of new samples. If they are older although the driver was asked a moment ago,
/// the driver's clock is behind.
const PAST_US: u64 = 10_000_000;

/// The maximum time between two answers for the second one to show how old the newest sample is.
const TIMELY_MS: u64 = 3_000;

/// The time after which a sample from the future shows that the clock was set back, if no newer
/// sample has arrived.
const SILENCE_MS: u64 = 10_000;

#[derive(Debug, Clone, Copy)]
pub(super) struct DriverSample {
    pid: u32,
    /// The time by the driver's clock, in microseconds.
    at_us: u64,
    // The shares in percent, unchecked: the driver sometimes reports more than 100.
    sm: u32,
    memory: u32,
    encoder: u32,
    decoder: u32,
}

impl DriverSample {
    /// Parses the samples of an answer. Each consists of time, PID, SM, memory, encoder, decoder,
    /// JPEG and OFA.
    pub(super) fn all(answer: &Value) -> Vec<Self> {
        let rows = answer.numbers().as_chunks().0;
        let sample = |[at_us, pid, sm, memory, encoder, decoder, _jpeg, _ofa]: &[i128; 8]| {
            let share = |share: &i128| u32::try_from(*share).ok();
            Some(Self {
                pid: u32::try_from(*pid).ok()?,
                at_us: u64::try_from(*at_us).ok()?,
                sm: share(sm)?,
                memory: share(memory)?,
                encoder: share(encoder)?,
                decoder: share(decoder)?,
            })
        };
        rows.iter().filter_map(sample).collect()
    }
}

#[derive(Debug, Default)]
pub(super) struct Shares {
    /// The driver's time of the newest sample, or 0 before the first one.
    newest_us: u64,
    /// The previous value of `newest_us`, from before all samples were requested again.
    known_us: u64,
    /// The time by which the driver's clock is ahead of the machine's.
    ahead_us: i64,
    /// The time of the driver's last answer, and the time of its last new sample (`heard_ms`).
    answered_ms: Option<u64>,
    heard_ms: u64,
    latest: HashMap<u32, Share>,
}

/// The newest sample of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// The time by the machine's clock, in milliseconds since 1970.
    pub(super) at_ms: u64,
    /// The shares, or `None` if the driver's numbers are impossible.
    pub(super) percent: Option<Percent>,
}

/// Shares of the GPU's time, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Percent {
    pub(super) sm: u32,
    pub(super) memory: u32,
    pub(super) encoder: u32,
    pub(super) decoder: u32,
}

impl Shares {
    /// Returns the driver's time after which samples should be requested. 0 requests all samples.
    pub(super) fn newest_us(&self) -> u64 {
        self.newest_us
    }

    /// Returns the recent shares of a process, or `None` if it did not run.
    pub(super) fn of(&self, pid: u32, now_ms: u64) -> Option<Share> {
        self.latest
            .get(&pid)
            .copied()
            .filter(|share| now_ms.saturating_sub(share.at_ms) < SAMPLE_LIFE_MS)
    }

    pub(super) fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        self.latest.retain(|pid, _| is_there(*pid));
    }

    /// Adds the samples that the driver made since [`newest_us`](Self::newest_us).
    pub(super) fn take_in(&mut self, samples: &[DriverSample], now_ms: u64) {
        let machine_us = now_ms.saturating_mul(1000);
        let latest_us = machine_us.saturating_add(FUTURE_US);
        let is_timely = self.newest_us > 0
            && self
                .answered_ms
                .is_some_and(|at| now_ms.abs_diff(at) < TIMELY_MS);
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
            self.look_again_after_silence(now_ms);
            return;
        };
        self.heard_ms = now_ms;
        let is_behind = is_timely && newest_us.saturating_add(PAST_US) < machine_us;
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
            self.keep(sample);
        }
    }

    fn look_again_after_silence(&mut self, now_ms: u64) {
        if self.newest_us > now_ms.saturating_mul(1000).saturating_add(FUTURE_US)
            && now_ms.abs_diff(self.heard_ms) > SILENCE_MS
        {
            (self.known_us, self.newest_us, self.heard_ms) = (self.newest_us, 0, now_ms);
            self.latest.clear();
        } else if self.newest_us == 0 {
            // The driver's clock really is ahead, because all samples were requested again, and no
            // new one has arrived.
            self.newest_us = self.known_us;
        }
    }

    /// Stores a sample if it is the newest of its process. Shares above 100 occur and are
    /// meaningless: the previous sample is kept as long as it is valid.
    fn keep(&mut self, sample: &DriverSample) {
        let at_ms = sample
            .at_us
            .saturating_add_signed(self.ahead_us.saturating_neg())
            / 1000;
        let DriverSample {
            sm,
            memory,
            encoder,
            decoder,
            ..
        } = *sample;
        let is_possible = [sm, memory, encoder, decoder]
            .iter()
            .all(|share| *share <= 100);
        let percent = is_possible.then_some(Percent {
            sm,
            memory,
            encoder,
            decoder,
        });
        let stands = |known: &Share| {
            let lives = at_ms.saturating_sub(known.at_ms) < SAMPLE_LIFE_MS;
            known.at_ms >= at_ms || (percent.is_none() && known.percent.is_some() && lives)
        };
        if !self.latest.get(&sample.pid).is_some_and(stands) {
            self.latest.insert(sample.pid, Share { at_ms, percent });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_763_630_000_000;

    fn sample(pid: u32, at_ms: u64, sm: u32) -> DriverSample {
        DriverSample {
            pid,
            at_us: at_ms * 1000,
            sm,
            memory: 1,
            encoder: 0,
            decoder: 0,
        }
    }

    fn sm(shares: &Shares, pid: u32, now_ms: u64) -> Option<u32> {
        shares.of(pid, now_ms)?.percent.map(|percent| percent.sm)
    }

    #[test]
    fn what_the_driver_keeps_of_the_past_is_not_what_a_process_does_now() {
        let mut shares = Shares::default();
        assert_eq!(shares.newest_us(), 0);
        shares.take_in(
            &[sample(1, NOW_MS - 500, 40), sample(2, NOW_MS - 5_000, 90)],
            NOW_MS,
        );
        assert_eq!(
            (sm(&shares, 1, NOW_MS), sm(&shares, 2, NOW_MS)),
            (Some(40), None)
        );
        assert_eq!(shares.newest_us(), (NOW_MS - 500) * 1000);
        shares.take_in(&[], NOW_MS + 1000);
        assert_eq!(sm(&shares, 1, NOW_MS + 1000), Some(40));
        assert_eq!(sm(&shares, 1, NOW_MS + 2000), None, "nothing ran since");
    }

    #[test]
    fn a_clock_that_differs_by_an_hour_hides_nothing() {
        const HOUR_MS: u64 = 3_600_000;
        for clock in [NOW_MS - HOUR_MS, NOW_MS + HOUR_MS] {
            let mut shares = Shares::default();
            for second in 0..5 {
                shares.take_in(
                    &[sample(1, clock + second * 1000, 40)],
                    NOW_MS + second * 1000 + 20,
                );
                // The first answer cannot show that the clock is behind. The second one does.
                assert!(
                    second == 0 || sm(&shares, 1, NOW_MS + second * 1000 + 20) == Some(40),
                    "{clock} {second}"
                );
            }
            assert_eq!(sm(&shares, 1, NOW_MS + 7_000), None);
        }
    }

    #[test]
    fn a_gpu_that_hung_does_not_show_what_was_before() {
        let mut shares = Shares::default();
        shares.take_in(&[sample(1, NOW_MS, 40)], NOW_MS);
        shares.take_in(&[sample(1, NOW_MS + 1000, 40)], NOW_MS + 60_000);
        assert_eq!(sm(&shares, 1, NOW_MS + 60_000), None);
    }

    #[test]
    fn a_clock_that_was_set_back_is_noticed_and_one_that_is_ahead_is_left_alone() {
        let old = sample(1, NOW_MS + 100_000, 40);
        let mut shares = Shares::default();
        shares.take_in(&[old], NOW_MS + 100_000);
        shares.take_in(&[], NOW_MS);
        assert_eq!(shares.newest_us(), 0, "the clock was set back");
        shares.take_in(&[old, sample(1, NOW_MS + 900, 50)], NOW_MS + 1000);
        assert_eq!(
            (sm(&shares, 1, NOW_MS + 1000), shares.newest_us()),
            (Some(50), (NOW_MS + 900) * 1000)
        );

        // The driver's clock is an hour ahead, and the GPU is idle, so that the last sample does
        // not count as a new one.
        let mut shares = Shares::default();
        let last = sample(1, NOW_MS + 3_600_000, 40);
        shares.take_in(&[last], NOW_MS);
        shares.take_in(&[], NOW_MS + 11_000);
        assert_eq!(shares.newest_us(), 0);
        shares.take_in(&[last], NOW_MS + 12_000);
        assert_eq!(
            (sm(&shares, 1, NOW_MS + 12_000), shares.newest_us()),
            (None, last.at_us)
        );
    }

    #[test]
    fn shares_that_cannot_be_are_unknown_once_the_last_good_one_is_old() {
        let mut shares = Shares::default();
        shares.take_in(&[sample(1, NOW_MS, 40)], NOW_MS);
        shares.take_in(&[sample(1, NOW_MS + 1000, 4_000_000)], NOW_MS + 1000);
        assert_eq!(sm(&shares, 1, NOW_MS + 1000), Some(40));
        shares.take_in(&[sample(1, NOW_MS + 2000, 4_000_000)], NOW_MS + 2000);
        assert_eq!(
            shares.of(1, NOW_MS + 2000),
            Some(Share {
                at_ms: NOW_MS + 2000,
                percent: None
            })
        );
        shares.take_in(&[sample(1, NOW_MS + 3000, 50)], NOW_MS + 3000);
        assert_eq!(sm(&shares, 1, NOW_MS + 3000), Some(50));
    }
}
