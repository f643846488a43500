//! Usage by owner in a span. Combines the periods in memory and on disk without counting any usage
//! twice.

use std::ops::Range;

use gpumon_probe::usage::{PERIOD_MS, Period, Usage, UsageMeter};

use crate::database::{Database, DatabaseError};

/// The usage that this process has recorded.
#[derive(Debug, Default)]
pub struct UsageInMemory {
    periods: Vec<Period>,
    /// The first and last time with recorded usage.
    reach_ms: Option<(u64, u64)>,
    /// The time after which memory contains all recorded usage, including usage that has not been
    /// written to disk.
    whole_from_ms: Option<u64>,
}

/// The usage that is on disk.
#[derive(Debug)]
pub struct StoredUsage {
    /// The usage before the time that is covered by memory.
    sum: Period,
    /// The start of the first period and the end of the last one.
    reach_ms: (u64, u64),
}

impl UsageInMemory {
    /// Returns the usage that a meter has accumulated.
    pub fn from_meter(meter: &UsageMeter) -> Self {
        let (since_ms, at_ms) = meter.time_range_ms();
        let periods: Vec<_> = meter.periods().collect();
        let first_from = |from_ms: u64| {
            periods
                .iter()
                .map(|period| period.at_ms)
                .filter(|ms| *ms >= from_ms)
                .min()
        };
        // In the first seconds after the start, owners are not known yet.
        let oldest_ms = first_from(0).unwrap_or(0).max(since_ms);
        Self {
            reach_ms: (since_ms > 0).then_some((oldest_ms, at_ms)),
            whole_from_ms: first_from(since_ms),
            periods,
        }
    }
}

impl StoredUsage {
    /// Reads the part of a span that is not in memory. Returns `None` if no usage is stored.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn read(
        disk: &Database,
        memory: &UsageInMemory,
        span: &Range<u64>,
    ) -> Result<Option<Self>, DatabaseError> {
        let Some((first_ms, last_ms)) = disk.usage_time_range_ms()? else {
            return Ok(None);
        };
        let Range { start, end } = extend_to_periods(span);
        let sum = disk.read_usage(
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

/// Extends a span to whole usage periods.
fn extend_to_periods(span: &Range<u64>) -> Range<u64> {
    span.start / PERIOD_MS * PERIOD_MS..span.end.div_ceil(PERIOD_MS).saturating_mul(PERIOD_MS)
}

/// Returns the usage by owner in the periods that overlap a span.
pub fn combine_usage(
    memory: UsageInMemory,
    stored: Option<StoredUsage>,
    span: &Range<u64>,
) -> Usage {
    let span = extend_to_periods(span);
    let ends = memory
        .reach_ms
        .into_iter()
        .chain(stored.as_ref().map(|stored| stored.reach_ms));
    let oldest_ms = ends.clone().map(|(first_ms, _)| first_ms).min();
    // The last period on disk may not have ended. If memory has usage, the newest sample is the
    // end.
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

    fn make_period(number: u64, gpu_seconds: f64) -> Period {
        Period {
            at_ms: number * PERIOD_MS,
            unheld: UnheldUsage {
                gpu_seconds,
                joules: 0.0,
            },
            ..Period::default()
        }
    }

    /// Returns the usage of a process that was started during the 10th period. The current period
    /// is the 12th.
    fn make_memory_usage() -> UsageInMemory {
        let reach_ms = Some((10 * PERIOD_MS + 300_000, 12 * PERIOD_MS + 60_000));
        let periods = vec![
            make_period(10, 1.0),
            make_period(11, 2.0),
            make_period(12, 3.0),
            make_period(12, 0.5),
        ];
        UsageInMemory {
            periods,
            reach_ms,
            whole_from_ms: Some(11 * PERIOD_MS),
        }
    }

    fn summarize(usage: &Usage) -> (f64, u64, u64) {
        (usage.unheld.gpu_seconds, usage.since_ms, usage.at_ms)
    }

    #[test]
    fn usage_without_disk_comes_from_memory() {
        let of = |from: u64, to: u64| {
            combine_usage(
                make_memory_usage(),
                None,
                &(from * PERIOD_MS..to * PERIOD_MS),
            )
        };
        let oldest_ms = 10 * PERIOD_MS + 300_000;
        assert_eq!(
            summarize(&of(0, 20)),
            (6.5, oldest_ms, 12 * PERIOD_MS + 60_000)
        );
        assert_eq!(
            summarize(&of(11, 12)),
            (2.0, 11 * PERIOD_MS, 12 * PERIOD_MS)
        );
        assert_eq!(
            summarize(&of(3, 5)),
            (0.0, 5 * PERIOD_MS, 5 * PERIOD_MS),
            "nothing is known of it"
        );
        assert!(of(3, 5).oldest_ms == Some(oldest_ms) && of(3, 5).owners.is_empty());
        assert_eq!(
            combine_usage(UsageInMemory::default(), None, &(0..PERIOD_MS)).oldest_ms,
            Some(0)
        );
    }

    #[test]
    fn stored_and_remembered_usage_is_counted_once() {
        // The stored usage of the 10th period includes both the earlier process and this one.
        let stored = |sum: f64| StoredUsage {
            sum: make_period(0, sum),
            reach_ms: (2 * PERIOD_MS, 13 * PERIOD_MS),
        };
        let whole = combine_usage(
            make_memory_usage(),
            Some(stored(70.0)),
            &(0..20 * PERIOD_MS),
        );
        assert_eq!(
            summarize(&whole),
            (75.5, 2 * PERIOD_MS, 12 * PERIOD_MS + 60_000)
        );
        assert_eq!(whole.oldest_ms, Some(2 * PERIOD_MS));
        let before = combine_usage(
            make_memory_usage(),
            Some(stored(7.0)),
            &(3 * PERIOD_MS..11 * PERIOD_MS),
        );
        assert_eq!(summarize(&before), (7.0, 3 * PERIOD_MS, 11 * PERIOD_MS));
        let alone = combine_usage(
            UsageInMemory::default(),
            Some(stored(7.0)),
            &(0..20 * PERIOD_MS),
        );
        assert_eq!(summarize(&alone), (7.0, 2 * PERIOD_MS, 13 * PERIOD_MS));
        assert_eq!(
            extend_to_periods(&(PERIOD_MS + 1..2 * PERIOD_MS + 1)),
            PERIOD_MS..3 * PERIOD_MS
        );
    }
}
