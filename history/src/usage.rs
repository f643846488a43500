//! Usage by owner in a span of time. Periods in memory and on disk are combined without counting
//! any usage twice.

use std::ops::Range;

use gpumon_probe::usage::{PERIOD_MS, Period, Usage, UsageMeter};

use crate::database::{Database, DatabaseError};

/// The usage that this process has seen.
#[derive(Debug, Default)]
pub struct Remembered {
    periods: Vec<Period>,
    /// The first and last time with known usage.
    reach_ms: Option<(u64, u64)>,
    /// The time from which memory has all usage that the disk has, and the usage that has not been
    /// written.
    whole_from_ms: Option<u64>,
}

/// The usage that is on disk.
#[derive(Debug)]
pub struct Stored {
    /// The usage of the time before that covered by memory.
    sum: Period,
    /// The start of the first period and the end of the last one.
    reach_ms: (u64, u64),
}

impl Remembered {
    /// Returns the usage that a meter has added up.
    pub fn of(meter: &UsageMeter) -> Self {
        let (since_ms, at_ms) = meter.reach_ms();
        let periods: Vec<_> = meter.periods().collect();
        let first_from = |from_ms: u64| {
            periods
                .iter()
                .map(|period| period.at_ms)
                .filter(|ms| *ms >= from_ms)
                .min()
        };
        // The owners of the first seconds are not known yet.
        let oldest_ms = first_from(0).unwrap_or(0).max(since_ms);
        Self {
            reach_ms: (since_ms > 0).then_some((oldest_ms, at_ms)),
            whole_from_ms: first_from(since_ms),
            periods,
        }
    }
}

impl Stored {
    /// Reads the part of a span that is not in memory. Returns `None` if no usage is stored.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn read(
        disk: &Database,
        memory: &Remembered,
        span: &Range<u64>,
    ) -> Result<Option<Self>, DatabaseError> {
        let Some((first_ms, last_ms)) = disk.usage_reach_ms()? else {
            return Ok(None);
        };
        let Range { start, end } = whole_periods(span);
        let sum = disk.usage(
            start,
            memory
                .whole_from_ms
                .map_or(end, |whole_ms| whole_ms.min(end)),
        )?;
        Ok(Some(Self {
            sum,
            reach_ms: (first_ms, last_ms + PERIOD_MS),
        }))
    }
}

/// Extends a span to whole periods.
fn whole_periods(span: &Range<u64>) -> Range<u64> {
    span.start / PERIOD_MS * PERIOD_MS..span.end.div_ceil(PERIOD_MS).saturating_mul(PERIOD_MS)
}

/// Returns the usage by owner in the periods that overlap a span.
pub fn usage(memory: Remembered, stored: Option<Stored>, span: &Range<u64>) -> Usage {
    let span = whole_periods(span);
    let ends = memory
        .reach_ms
        .into_iter()
        .chain(stored.as_ref().map(|stored| stored.reach_ms));
    let oldest_ms = ends.clone().map(|(first_ms, _)| first_ms).min();
    // The last period on disk may not be over. In that case, the newest sample defines the end.
    let newest_ms = memory
        .reach_ms
        .or(ends.last())
        .map_or(span.end, |(_, last_ms)| last_ms);
    let in_memory_ms = if stored.is_some() {
        memory.whole_from_ms.unwrap_or(span.end)
    } else {
        0
    };
    let is_meant = |period: &Period| span.contains(&period.at_ms) && period.at_ms >= in_memory_ms;
    let of_memory = memory.periods.into_iter().filter(is_meant);
    let at_ms = span.end.min(newest_ms).max(span.start);
    Usage {
        since_ms: span.start.max(oldest_ms.unwrap_or(at_ms)).min(at_ms),
        at_ms,
        oldest_ms: Some(oldest_ms.unwrap_or(0)),
        ..Usage::sum(of_memory.chain(stored.map(|stored| stored.sum)))
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::usage::UnheldUsage;

    use super::*;

    fn period(number: u64, gpu_seconds: f64) -> Period {
        Period {
            at_ms: number * PERIOD_MS,
            unheld: UnheldUsage {
                gpu_seconds,
                joules: 0.0,
            },
            ..Period::default()
        }
    }

    /// Returns the usage of a process that was started during the 10th period; the 12th is the
    /// current one.
    fn memory() -> Remembered {
        let reach_ms = Some((10 * PERIOD_MS + 300_000, 12 * PERIOD_MS + 60_000));
        let periods = vec![
            period(10, 1.0),
            period(11, 2.0),
            period(12, 3.0),
            period(12, 0.5),
        ];
        Remembered {
            periods,
            reach_ms,
            whole_from_ms: Some(11 * PERIOD_MS),
        }
    }

    fn told(usage: &Usage) -> (f64, u64, u64) {
        (usage.unheld.gpu_seconds, usage.since_ms, usage.at_ms)
    }

    #[test]
    fn without_a_disk_it_is_what_is_remembered() {
        let of = |from: u64, to: u64| usage(memory(), None, &(from * PERIOD_MS..to * PERIOD_MS));
        let oldest_ms = 10 * PERIOD_MS + 300_000;
        assert_eq!(told(&of(0, 20)), (6.5, oldest_ms, 12 * PERIOD_MS + 60_000));
        assert_eq!(told(&of(11, 12)), (2.0, 11 * PERIOD_MS, 12 * PERIOD_MS));
        assert_eq!(
            told(&of(3, 5)),
            (0.0, 5 * PERIOD_MS, 5 * PERIOD_MS),
            "nothing is known of it"
        );
        assert!(of(3, 5).oldest_ms == Some(oldest_ms) && of(3, 5).owners.is_empty());
        assert_eq!(
            usage(Remembered::default(), None, &(0..PERIOD_MS)).oldest_ms,
            Some(0)
        );
    }

    #[test]
    fn what_an_earlier_process_has_seen_is_from_disk_and_nothing_counts_twice() {
        // The stored usage of the 10th period is that of both processes.
        let stored = |sum: f64| Stored {
            sum: period(0, sum),
            reach_ms: (2 * PERIOD_MS, 13 * PERIOD_MS),
        };
        let whole = usage(memory(), Some(stored(70.0)), &(0..20 * PERIOD_MS));
        assert_eq!(told(&whole), (75.5, 2 * PERIOD_MS, 12 * PERIOD_MS + 60_000));
        assert_eq!(whole.oldest_ms, Some(2 * PERIOD_MS));
        let before = usage(
            memory(),
            Some(stored(7.0)),
            &(3 * PERIOD_MS..11 * PERIOD_MS),
        );
        assert_eq!(told(&before), (7.0, 3 * PERIOD_MS, 11 * PERIOD_MS));
        let alone = usage(
            Remembered::default(),
            Some(stored(7.0)),
            &(0..20 * PERIOD_MS),
        );
        assert_eq!(told(&alone), (7.0, 2 * PERIOD_MS, 13 * PERIOD_MS));
        assert_eq!(
            whole_periods(&(PERIOD_MS + 1..2 * PERIOD_MS + 1)),
            PERIOD_MS..3 * PERIOD_MS
        );
    }
}
