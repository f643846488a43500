//! Hysteresis: conditions start and end after a delay, so that they do not flap.

use super::clock::Moment;

/// The time without readings after which a pending condition is dropped.
const UNKNOWN_BEFORE_MS: u64 = 10_000;

/// The time without readings after which an active condition ends.
const UNKNOWN_DURING_MS: u64 = 60_000;

/// The state of a condition in one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation<T> {
    /// The condition is present, with this value.
    Active(T),
    /// The condition is absent.
    Inactive,
    /// The condition counts as absent, but keeps this value until its end delay has passed.
    Weakening(T),
    /// The condition is absent and will not return soon, so it ends without delay.
    Ended,
    /// The condition neither starts nor ends, because the value is between the two thresholds.
    Inconclusive,
    /// The sample has no reading.
    Unknown,
}

impl<T> Observation<T> {
    /// Converts the value, if any.
    pub(super) fn map<U>(self, with: impl FnOnce(T) -> U) -> Observation<U> {
        match self {
            Self::Active(value) => Observation::Active(with(value)),
            Self::Weakening(value) => Observation::Weakening(with(value)),
            Self::Inactive => Observation::Inactive,
            Self::Ended => Observation::Ended,
            Self::Inconclusive => Observation::Inconclusive,
            Self::Unknown => Observation::Unknown,
        }
    }
}

/// A condition that starts after it has been active without interruption for some time, and ends
/// after it has been inactive for some time.
#[derive(Debug)]
pub struct Hysteresis<T> {
    begin_after_ms: u64,
    end_after_ms: u64,
    since: Option<Moment>,
    latest: Option<T>,
    has_begun: bool,
    clear_since: Option<Moment>,
    unknown_since: Option<Moment>,
}

impl<T> Hysteresis<T> {
    /// Creates a condition with delays for its start and its end, in milliseconds.
    pub fn new(begin_after_ms: u64, end_after_ms: u64) -> Self {
        Self {
            begin_after_ms,
            end_after_ms,
            since: None,
            latest: None,
            has_begun: false,
            clear_since: None,
            unknown_since: None,
        }
    }

    /// Applies an observation. Returns the start and the latest value while the condition lasts.
    pub fn update(&mut self, observation: Observation<T>, now: Moment) -> Option<(Moment, &T)> {
        if !matches!(observation, Observation::Unknown) {
            self.unknown_since = None;
        }
        match observation {
            Observation::Active(seen) => {
                self.latest = Some(seen);
                self.clear_since = None;
                let since = *self.since.get_or_insert(now);
                self.has_begun |= now.ms_since(since) >= self.begin_after_ms;
            }
            Observation::Inactive => self.clear(now),
            Observation::Weakening(seen) => {
                self.latest = Some(seen);
                self.clear(now);
            }
            Observation::Inconclusive if self.has_begun => {}
            Observation::Inconclusive | Observation::Ended => self.forget(),
            Observation::Unknown => {
                let since = *self.unknown_since.get_or_insert(now);
                if now.ms_since(since)
                    >= if self.has_begun {
                        UNKNOWN_DURING_MS
                    } else {
                        UNKNOWN_BEFORE_MS
                    }
                {
                    self.forget();
                }
            }
        }
        self.ongoing_start_and_value()
    }

    /// Returns the start and the latest value while the condition lasts.
    pub fn ongoing_start_and_value(&self) -> Option<(Moment, &T)> {
        let since = self.since.filter(|_| self.has_begun)?;
        Some((since, self.latest.as_ref()?))
    }

    fn clear(&mut self, now: Moment) {
        let since = *self.clear_since.get_or_insert(now);
        if !self.has_begun || now.ms_since(since) >= self.end_after_ms {
            self.forget();
        }
    }

    /// Resumes a condition that started before the program did.
    pub fn resume(&mut self, since: Moment, latest: T) {
        self.forget();
        self.since = Some(since);
        self.latest = Some(latest);
        self.has_begun = true;
    }

    /// Returns `true` if the condition has started and has not ended.
    pub fn is_ongoing(&self) -> bool {
        self.has_begun
    }

    /// Returns the start and the latest value of a pending condition, which is active but has not
    /// yet started.
    pub fn pending_start_and_value(&self) -> Option<(Moment, &T)> {
        Some((
            self.since.filter(|_| !self.has_begun)?,
            self.latest.as_ref()?,
        ))
    }

    /// Resets the condition to its initial state.
    pub fn forget(&mut self) {
        *self = Self::new(self.begin_after_ms, self.end_after_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::clock::Clock, Observation::*, *};

    /// Applies the observations at intervals of `step_ms` to a condition that starts after 3 s and
    /// ends after 10 s. Returns whether the condition lasts after each observation.
    fn observe_all(step_ms: u64, observations: &[Observation<u8>]) -> Vec<bool> {
        let mut clock = Clock::default();
        let mut hysteresis = Hysteresis::new(3_000, 10_000);
        let mut now_ms = 1_000_000;
        let mut observe = |observation: &Observation<u8>| {
            now_ms += step_ms;
            hysteresis
                .update(*observation, clock.advance(now_ms, true))
                .is_some()
        };
        observations.iter().map(&mut observe).collect()
    }

    /// Returns the indexes of the observations at which the condition starts and ends.
    fn find_transitions(
        step_ms: u64,
        observations: &[Observation<u8>],
    ) -> (Option<usize>, Option<usize>) {
        let lasting = observe_all(step_ms, observations);
        let begun = lasting.iter().position(|lasts| *lasts);
        let ended = begun.and_then(|begun| {
            lasting
                .iter()
                .skip(begun)
                .position(|lasts| !lasts)
                .map(|end| begun + end)
        });
        (begun, ended)
    }

    #[test]
    fn delays_depend_on_time_not_samples() {
        for (step_ms, begins, ends) in [(1_000, 3, 110), (100, 30, 200), (10_000, 1, 101)] {
            let observations: Vec<_> = (0..300)
                .map(|at| if at < 100 { Active(0) } else { Inactive })
                .collect();
            assert_eq!(
                find_transitions(step_ms, &observations),
                (Some(begins), Some(ends)),
                "{step_ms}"
            );
        }
    }

    #[test]
    fn condition_does_not_flap() {
        let blinking: Vec<_> = (0..100)
            .map(|at| if at % 2 == 0 { Active(0) } else { Inactive })
            .collect();
        assert_eq!(
            find_transitions(1_000, &blinking),
            (None, None),
            "never active for long"
        );
        let rarely: Vec<_> = (0..100)
            .map(|at| {
                if at < 5 || at % 8 == 0 {
                    Active(0)
                } else {
                    Inactive
                }
            })
            .collect();
        assert_eq!(
            find_transitions(1_000, &rarely),
            (Some(3), None),
            "never inactive for long"
        );
    }

    #[test]
    fn missing_readings_end_condition_eventually() {
        assert_eq!(find_transitions(1_000, &[Unknown; 200]), (None, None));
        let lost: Vec<_> = (0..200)
            .map(|at| if at < 10 { Active(0) } else { Unknown })
            .collect();
        assert_eq!(find_transitions(1_000, &lost), (Some(3), Some(70)));
        let once = [Active(0), Active(0), Unknown, Active(0)];
        assert_eq!(
            observe_all(1_000, &once),
            [false, false, false, true],
            "a single miss is no break"
        );
        let long: Vec<_> = (0..14)
            .map(|at| {
                if (1..13).contains(&at) {
                    Unknown
                } else {
                    Active(0)
                }
            })
            .collect();
        assert_eq!(find_transitions(1_000, &long), (None, None));
    }

    #[test]
    fn inconclusive_observation_changes_nothing() {
        assert_eq!(
            observe_all(2_000, &[Active(0), Inconclusive, Active(0), Active(0)]),
            [false; 4]
        );
        let observations: Vec<_> = (0..100)
            .map(|at| if at < 5 { Active(0) } else { Inconclusive })
            .collect();
        assert_eq!(find_transitions(1_000, &observations), (Some(3), None));
    }

    #[test]
    fn update_returns_start_and_latest_value() {
        let mut clock = Clock::default();
        let mut hysteresis = Hysteresis::new(1_000, 10_000);
        let first = clock.advance(5_000, true);
        hysteresis.update(Active('a'), first);
        hysteresis.update(Active('b'), clock.advance(6_000, true));
        assert_eq!(
            hysteresis.update(Inactive, clock.advance(7_000, true)),
            Some((first, &'b'))
        );
    }
}
