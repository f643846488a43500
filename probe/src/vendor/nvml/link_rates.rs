//! `NVLink` rates of GPUs without GPM, calculated from the growth of two counters that cover all
//! links.

use std::time::{Duration, Instant};

use super::{
    cached::TimedAnswers, lanes, paced::IntervalTimer, querier::Querier, to_model::DATA_UNIT_BYTES,
};
use crate::model::{Absence, Absent, Reading, absent, now_ms};

/// The minimum time between two readings of the counters. Reading both counters costs 2.7 ms.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// The traffic over a link in each direction, in bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LinkRates {
    pub(super) tx: Reading<f64>,
    pub(super) rx: Reading<f64>,
}

absent! { LinkRates { tx, rx } }

impl LinkRates {
    pub(super) fn with_time(self, at_ms: u64) -> Self {
        Self {
            tx: self.tx.with_time(at_ms),
            rx: self.rx.with_time(at_ms),
        }
    }
}

pub(super) struct LinkRateReader {
    every: IntervalTimer,
    before: Option<(Instant, [f64; 2])>,
    latest: LinkRates,
}

impl LinkRateReader {
    pub(super) fn new() -> Self {
        Self {
            every: IntervalTimer::new(READ_INTERVAL),
            before: None,
            latest: LinkRates::new_absent(&Absence::WarmingUp),
        }
    }

    /// Returns the rates between the last two readings of the counters, with the time of the later
    /// one.
    pub(super) fn read(&mut self, querier: &mut Querier) -> LinkRates {
        if self.every.is_due() {
            querier.run_queries(None, &lanes::TOTAL_TRAFFIC_QUERIES);
            let [tx, rx] = lanes::TOTAL_TRAFFIC_QUERIES
                .map(|query| TimedAnswers::new(&querier.read_cache(), 0).read_float(query));
            self.latest = match (tx, rx) {
                (Reading::Now(tx), Reading::Now(rx)) => {
                    self.compute_rates(Instant::now(), [tx, rx])
                }
                (Reading::Absent(reason), _) | (_, Reading::Absent(reason)) => {
                    LinkRates::new_absent(&reason)
                }
                _ => LinkRates::new_absent(&Absence::Unknown),
            };
        }
        self.latest.clone()
    }

    fn compute_rates(&mut self, at: Instant, counters: [f64; 2]) -> LinkRates {
        let Some((before_at, before)) = self.before.replace((at, counters)) else {
            return LinkRates::new_absent(&Absence::WarmingUp);
        };
        let (seconds, at_ms) = (at.duration_since(before_at).as_secs_f64(), now_ms());
        let [tx, rx] = [0, 1].map(|direction| match counters[direction] - before[direction] {
            // The counters have restarted, for example after a reset.
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
    fn rate_is_counter_growth_over_time() {
        let mut reader = LinkRateReader::new();
        let begun = Instant::now();
        assert_eq!(
            reader.compute_rates(begun, [1000.0, 5.0]),
            LinkRates::new_absent(&Absence::WarmingUp)
        );
        let later = reader.compute_rates(begun + Duration::from_secs(2), [3000.0, 4.0]);
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
