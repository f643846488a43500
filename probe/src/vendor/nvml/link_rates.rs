//! `NVLink` rates of GPUs without GPM, computed from the growth of two counters over all links.

use std::time::{Duration, Instant};

use super::{cached::Answers, lanes, paced::Every, querier::Querier, to_model::DATA_UNIT_BYTES};
use crate::model::{Absence, Absent, Reading, absent, now_ms};

/// The minimum time between readings of the two counters, which cost 2.7 ms together.
const EVERY: Duration = Duration::from_secs(1);

/// The traffic of a link in both directions, in bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LinkRates {
    pub(super) tx: Reading<f64>,
    pub(super) rx: Reading<f64>,
}

absent! { LinkRates { tx, rx } }

impl LinkRates {
    pub(super) fn with_time(self, at_ms: u64) -> Self {
        Self {
            tx: self.tx.dated(at_ms),
            rx: self.rx.dated(at_ms),
        }
    }
}

pub(super) struct LinkRateReader {
    every: Every,
    before: Option<(Instant, [f64; 2])>,
    latest: LinkRates,
}

impl LinkRateReader {
    pub(super) fn new() -> Self {
        Self {
            every: Every::new(EVERY),
            before: None,
            latest: LinkRates::absent(&Absence::WarmingUp),
        }
    }

    /// Returns the rates between the last two readings of the counters, with their time.
    pub(super) fn read(&mut self, querier: &mut Querier) -> LinkRates {
        if self.every.is_due() {
            querier.ask(None, &lanes::ALL_LINKS);
            let [tx, rx] =
                lanes::ALL_LINKS.map(|query| Answers::new(&querier.cached(), 0).real(query));
            self.latest = match (tx, rx) {
                (Reading::Now(tx), Reading::Now(rx)) => {
                    self.rates_since_last(Instant::now(), [tx, rx])
                }
                (Reading::Absent(reason), _) | (_, Reading::Absent(reason)) => {
                    LinkRates::absent(&reason)
                }
                _ => LinkRates::absent(&Absence::Unknown),
            };
        }
        self.latest.clone()
    }

    fn rates_since_last(&mut self, at: Instant, counters: [f64; 2]) -> LinkRates {
        let Some((before_at, before)) = self.before.replace((at, counters)) else {
            return LinkRates::absent(&Absence::WarmingUp);
        };
        let (seconds, at_ms) = (at.duration_since(before_at).as_secs_f64(), now_ms());
        let [tx, rx] = [0, 1].map(|direction| match counters[direction] - before[direction] {
            // The counters restarted, for example after a reset.
            backwards if backwards < 0.0 => Reading::Absent(Absence::WarmingUp),
            data => Reading::Earlier {
                value: (data * DATA_UNIT_BYTES / seconds).round(),
                at_ms,
            },
        });
        LinkRates { tx, rx }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_growth_of_a_counter_over_its_time() {
        let mut reader = LinkRateReader::new();
        let begun = Instant::now();
        assert_eq!(
            reader.rates_since_last(begun, [1000.0, 5.0]),
            LinkRates::absent(&Absence::WarmingUp)
        );
        let later = reader.rates_since_last(begun + Duration::from_secs(2), [3000.0, 4.0]);
        assert!(
            matches!(later.tx, Reading::Earlier { value, .. } if (value - 1_024_000.0).abs() < 1.0),
            "{later:?}"
        );
        assert_eq!(
            later.rx,
            Reading::Absent(Absence::WarmingUp),
            "it began anew"
        );
    }
}
