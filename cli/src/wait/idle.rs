//! For how long each candidate has done nothing, as far as it was watched.

use std::{collections::HashMap, time::Duration};

use gpumon_probe::model::Reading;

use super::candidate::Candidate;

/// What counts as nothing: drivers show 1 % now and then on a GPU that rests.
pub(super) const IDLE_PERCENT: f64 = 1.0;

/// A longer time than this between two readings, and nobody knows what ran in between.
const GAP_MS: u64 = 10_000;

/// A clock for each candidate, which starts when it is first seen idle.
#[derive(Debug, Default)]
pub(super) struct IdleClocks(HashMap<String, Clock>);

#[derive(Debug, Clone, Copy)]
struct Clock {
    since_ms: u64,
    last_ms: u64,
}

impl IdleClocks {
    /// Takes in a reading, and says for how long nothing has run; `None` where something does, or it is not known.
    pub(super) fn update(&mut self, candidate: &Candidate, interval: Duration) -> Option<Duration> {
        let uuid = candidate.uuid.as_ref()?;
        let busy = candidate
            .state
            .as_ref()
            .ok()
            .map(|state| &state.busy_percent);
        if !matches!(busy, Some(Reading::Now(percent)) if *percent <= IDLE_PERCENT) {
            self.0.remove(uuid);
            return None;
        }
        let at_ms = candidate.at_ms;
        let longest = GAP_MS.max(3 * interval.as_millis() as u64);
        let clock = self.0.entry(uuid.clone()).or_insert(Clock {
            since_ms: at_ms,
            last_ms: at_ms,
        });
        if at_ms < clock.last_ms || at_ms - clock.last_ms > longest {
            clock.since_ms = at_ms;
        }
        clock.last_ms = at_ms;
        Some(Duration::from_millis(at_ms - clock.since_ms))
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Vendor};

    use super::{
        super::candidate::{State, Trouble},
        *,
    };

    fn at(at_ms: u64, busy_percent: Reading<f64>) -> Candidate {
        let absent = || Reading::Absent(Absence::Unknown);
        let state = Ok(State {
            free_bytes: absent(),
            busy_percent,
            users: Reading::Absent(Absence::Unknown),
        });
        Candidate {
            gpu: 0,
            mig: None,
            uuid: Some("GPU-0".into()),
            vendor: Vendor::Nvidia,
            visible_as: None,
            at_ms,
            capacity_bytes: absent(),
            state,
        }
    }

    #[test]
    fn only_what_was_watched_without_a_break_counts() {
        let mut clocks = IdleClocks::default();
        let mut look = |candidate: &Candidate| {
            clocks
                .update(candidate, Duration::from_secs(1))
                .map(|idle| idle.as_millis())
        };
        assert_eq!(look(&at(1_000, Reading::Now(0.0))), Some(0));
        assert_eq!(look(&at(3_000, Reading::Now(1.0))), Some(2_000));
        assert_eq!(look(&at(4_000, Reading::Now(2.0))), None, "something ran");
        assert_eq!(look(&at(5_000, Reading::Now(0.0))), Some(0));
        assert_eq!(look(&at(15_000, Reading::Now(0.0))), Some(10_000));
        assert_eq!(
            look(&at(25_001, Reading::Now(0.0))),
            Some(0),
            "the machine slept"
        );
        assert_eq!(
            look(&at(25_000, Reading::Now(0.0))),
            Some(0),
            "the clock was set back"
        );
        assert_eq!(look(&at(26_000, Reading::Absent(Absence::Unknown))), None);
        let mut hung = at(27_000, Reading::Now(0.0));
        hung.state = Err(Trouble {
            what: "hung".into(),
            gone: false,
        });
        assert_eq!(look(&hung), None);
        assert_eq!(
            look(&at(28_000, Reading::Now(0.0))),
            Some(0),
            "nobody knows what ran meanwhile"
        );
    }
}
