//! What processes did lately: the driver's samples of them, also of a driver whose clock is not the
//! machine's.

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

/// The driver makes a sample up to once a second, so a value stands for this long. After that, no
/// sample means that nothing ran.
const SAMPLE_LIFE_MS: u64 = 2_000;

/// A sample from further ahead than this is no sample but a driver's odd answer; where all of them
/// are, its clock is ahead.
const FUTURE_US: u64 = 2_000_000;

/// What is new since a moment ago and yet older than this is of a clock that is behind.
const PAST_US: u64 = 10_000_000;

/// Answers further apart than this do not tell how old the newest sample is.
const TIMELY_MS: u64 = 3_000;

/// Where nothing newer than a sample from the future has come for so long, the clock was set back.
const SILENCE_MS: u64 = 10_000;

#[derive(Debug, Clone, Copy)]
pub(super) struct DriverSample {
    pid: u32,
    /// By the driver's clock.
    at_us: u64,
    // In percent, as the driver gave them, which is more than 100 at times.
    sm: u32,
    memory: u32,
    encoder: u32,
    decoder: u32,
}

impl DriverSample {
    /// Those of an answer: time, PID, SM, memory, encoder, decoder, JPEG, OFA of each.
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
    /// The driver's time of the newest sample; 0 before there is one.
    newest_us: u64,
    /// Up to where samples were known when all were asked for anew.
    known_us: u64,
    /// How far the driver's clock is ahead.
    ahead_us: i64,
    /// When the driver answered last, and when it had something new.
    answered_ms: Option<u64>,
    heard_ms: u64,
    latest: HashMap<u32, Share>,
}

/// The newest sample of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// By the machine's clock.
    pub(super) at_ms: u64,
    /// In percent; `None` where the driver's numbers cannot be.
    pub(super) percent: Option<Percent>,
}

/// Shares of the time, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Percent {
    pub(super) sm: u32,
    pub(super) memory: u32,
    pub(super) encoder: u32,
    pub(super) decoder: u32,
}

impl Shares {
    /// The driver's time from which on samples are to be asked for; 0 is all that it keeps.
    pub(super) fn newest_us(&self) -> u64 {
        self.newest_us
    }

    /// What a process did lately; `None` where nothing of it ran.
    pub(super) fn of(&self, pid: u32, now_ms: u64) -> Option<Share> {
        self.latest
            .get(&pid)
            .copied()
            .filter(|share| now_ms.saturating_sub(share.at_ms) < SAMPLE_LIFE_MS)
    }

    pub(super) fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        self.latest.retain(|pid, _| is_there(*pid));
    }

    /// Takes in what the driver has made since [`newest_us`](Self::newest_us).
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
            // It was the driver's clock, and nothing ran.
            self.newest_us = self.known_us;
        }
    }

    /// Keeps a sample, if it is the newest of its process. Shares above 100 occur and mean nothing:
    /// what was known before stands for as long as it can.
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
                // One that is behind is known when something new is old.
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

        // An hour ahead, and idle: the last sample is no new one.
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
