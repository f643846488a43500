//! Who used how much in a span of time, from memory and disk, and nothing of it twice.

use std::ops::Range;

use gpumon_probe::usage::{PERIOD_MS, Period, Usage, UsageMeter};

use crate::database::{Database, DatabaseError};

/// What a process has seen.
#[derive(Debug, Default)]
pub struct Remembered {
    periods: Vec<Period>,
    /// The first and the last moment of it; `None` where there is none.
    reach_ms: Option<(u64, u64)>,
    /// From here on, memory knows all that the disk does, and what has not been written.
    whole_from_ms: Option<u64>,
}

/// What the disk knows.
#[derive(Debug)]
pub struct Stored {
    /// Of the time before memory knows better.
    sum: Period,
    /// When the first period begins, and the last one ends.
    reach_ms: (u64, u64),
}

impl Remembered {
    /// What this meter has added up.
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
        // Of the first seconds, it is not known yet whose they were.
        let oldest_ms = first_from(0).unwrap_or(0).max(since_ms);
        Self {
            reach_ms: (since_ms > 0).then_some((oldest_ms, at_ms)),
            whole_from_ms: first_from(since_ms),
            periods,
        }
    }
}

impl Stored {
    /// What is not in memory of a span; `None` where the disk knows nothing of any time.
    ///
    /// # Errors
    /// Where it cannot be read.
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

/// The periods that a span touches, from their first moment to their last.
fn whole_periods(span: &Range<u64>) -> Range<u64> {
    span.start / PERIOD_MS * PERIOD_MS..span.end.div_ceil(PERIOD_MS).saturating_mul(PERIOD_MS)
}

/// Who used how much in the periods that a span touches, as far as they are known.
pub fn usage(memory: Remembered, stored: Option<Stored>, span: &Range<u64>) -> Usage {
    let span = whole_periods(span);
    let ends = memory
        .reach_ms
        .into_iter()
        .chain(stored.as_ref().map(|stored| stored.reach_ms));
    let oldest_ms = ends.clone().map(|(first_ms, _)| first_ms).min();
    // The last period on disk may not be over; the newest sample tells when that was.
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

    /// Of a process that was started amid the 10th period, and knows the 12th to be running.
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
        // Of the 10th, the disk has what both processes saw.
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
