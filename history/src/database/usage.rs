//! Usage by owner, in periods of 15 minutes: its storage on disk, and its combination with the
//! usage in memory.

use std::ops::Range;

use gpumon_probe::{
    model::{Job, JobKind, Reading},
    usage::{Joules, OwnerUsage, PERIOD_MS, Period, UnheldUsage, Usage, UsageMeter},
};
use rusqlite::{Row, params};

use super::{
    Database, DatabaseError,
    schema::{job_kind_word, parse_job_kind, read_columns},
};

/// The kind of usage for which only the user is known.
const USER_KIND: &str = "user";

/// The kind of usage that cannot be attributed to any listed process.
const UNHELD_KIND: &str = "unheld";

/// The query that adds usage to the row that an earlier bucket or process stored for the same owner
/// and period.
const ADD_USAGE_SQL: &str = "
    INSERT INTO usage (at_ms, kind, id, user, name, gpu_seconds, exclusive_seconds, active_seconds, joules_least,
        joules_most, joules_estimate) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    ON CONFLICT (at_ms, kind, id, user) DO UPDATE SET
        name = coalesce(excluded.name, name),
        gpu_seconds = gpu_seconds + excluded.gpu_seconds,
        exclusive_seconds = exclusive_seconds + excluded.exclusive_seconds,
        active_seconds = active_seconds + excluded.active_seconds,
        joules_least = coalesce(joules_least + excluded.joules_least, joules_least, excluded.joules_least),
        joules_most = coalesce(joules_most + excluded.joules_most, joules_most, excluded.joules_most),
        joules_estimate = coalesce(joules_estimate + excluded.joules_estimate, joules_estimate, excluded.joules_estimate)";

/// The query for each owner's total usage in a span, and the owner's latest name.
const SUM_USAGE_SQL: &str = "
    SELECT kind, id, user, name, sum(gpu_seconds), sum(exclusive_seconds), sum(active_seconds), sum(joules_least),
        sum(joules_most), sum(joules_estimate), max(iif(name IS NULL, 0, at_ms))
    FROM usage WHERE at_ms >= ?1 AND at_ms < ?2 GROUP BY kind, id, user";

impl Database {
    /// Adds the usage in `period` to the stored usage of the same 15 minutes. `period` can contain
    /// the usage of only a part of that time.
    pub(crate) fn add_usage(&self, period: &Period) -> Result<(), rusqlite::Error> {
        let mut add = self.connection.prepare_cached(ADD_USAGE_SQL)?;
        for OwnerUsage {
            user,
            job,
            gpu_seconds,
            exclusive_seconds,
            active_seconds,
            joules,
        } in &period.owners
        {
            let (kind, id) = job.as_ref().map_or((USER_KIND, ""), |job| {
                (job_kind_word(job.kind, job.private), &job.id)
            });
            let name = job.as_ref().and_then(|job| {
                let path = job.path.as_ref().and_then(Reading::value);
                job.name.as_ref().or(path)
            });
            let user = user.as_deref().unwrap_or_default();
            let (least, most, estimate) = match joules {
                Some(Joules {
                    least,
                    most,
                    estimate,
                }) => (Some(least), Some(most), Some(estimate)),
                None => (None, None, None),
            };
            let key = params![period.at_ms as i64, kind, id, user, name];
            let amounts = params![
                gpu_seconds,
                exclusive_seconds,
                active_seconds,
                least,
                most,
                estimate
            ];
            add.execute(&[key, amounts].concat()[..])?;
        }
        // This row is written even if its amounts are zero, because it shows that usage was
        // recorded during the period.
        let UnheldUsage {
            gpu_seconds,
            joules,
        } = period.unheld;
        let (at_ms, none) = (period.at_ms as i64, None::<String>);
        add.execute(params![
            at_ms,
            UNHELD_KIND,
            "",
            "",
            none,
            gpu_seconds,
            0.0,
            0.0,
            joules,
            joules,
            joules
        ])?;
        Ok(())
    }

    /// Returns the total usage of the periods that start in a span.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn read_usage(&self, from_ms: u64, to_ms: u64) -> Result<Period, DatabaseError> {
        let mut sum = Period {
            at_ms: from_ms,
            ..Period::default()
        };
        if !self.has_usage()? {
            return Ok(sum);
        }
        let mut statement = self.connection.prepare(SUM_USAGE_SQL)?;
        let mut rows = statement.query(params![from_ms as i64, to_ms as i64])?;
        while let Some(row) = rows.next()? {
            if row.get::<_, String>(0)? == UNHELD_KIND {
                sum.unheld = UnheldUsage {
                    gpu_seconds: row.get(4)?,
                    joules: row.get(8)?,
                };
            } else {
                sum.owners.push(parse_owner(row)?);
            }
        }
        Ok(sum)
    }

    /// Returns the starts of the first and the last period with recorded usage.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn usage_time_range_ms(&self) -> Result<Option<(u64, u64)>, DatabaseError> {
        if !self.has_usage()? {
            return Ok(None);
        }
        // SQLite uses the index only if a query has a single `min` or `max`.
        let edge = |which: &str| {
            let sql = format!("SELECT {which}(at_ms) FROM usage");
            self.connection
                .query_row(&sql, [], |row| row.get::<_, Option<i64>>(0))
        };
        Ok(edge("min")?
            .zip(edge("max")?)
            .map(|(first, last)| (first as u64, last as u64)))
    }

    /// Returns `true` if the file has a table for usage. A file from an earlier version has none
    /// until it is opened for writing.
    fn has_usage(&self) -> Result<bool, DatabaseError> {
        Ok(!read_columns(&self.connection, "usage")?.is_empty())
    }
}

fn parse_owner(row: &Row<'_>) -> Result<OwnerUsage, rusqlite::Error> {
    let (kind, user): (String, String) = (row.get(0)?, row.get(2)?);
    // Usage with a job kind that only newer versions know is attributed to the user.
    let job = parse_job_kind(&kind).map(|(kind, private)| {
        let name: Option<String> = row.get(3)?;
        let (path, name) = if kind == JobKind::Notebook {
            (name.map(Reading::Now), None)
        } else {
            (None, name)
        };
        Ok::<_, rusqlite::Error>(Job {
            kind,
            id: row.get(1)?,
            path,
            name,
            private,
        })
    });
    let joules: [Option<f64>; 3] = [row.get(7)?, row.get(8)?, row.get(9)?];
    let joules = match joules {
        [Some(least), Some(most), Some(estimate)] => Some(Joules {
            least,
            most,
            estimate,
        }),
        _ => None,
    };
    let (gpu_seconds, exclusive_seconds, active_seconds) = (row.get(4)?, row.get(5)?, row.get(6)?);
    let user = Some(user).filter(|user| !user.is_empty());
    Ok(OwnerUsage {
        user,
        job: job.transpose()?,
        gpu_seconds,
        exclusive_seconds,
        active_seconds,
        joules,
    })
}

/// The usage that this process has recorded.
#[derive(Debug, Default)]
pub struct UsageInMemory {
    periods: Vec<Period>,
    /// The times of the first and the last recorded usage.
    reach_ms: Option<(u64, u64)>,
    /// All usage that was recorded after this time is in memory, whether or not it is also on disk.
    whole_from_ms: Option<u64>,
}

/// The usage that is on disk.
#[derive(Debug)]
pub struct StoredUsage {
    /// The total usage on disk up to the time at which the usage in memory starts.
    sum: Period,
    /// The start of the first usage period and the end of the last one.
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
        // In the first seconds after the start, owners are unknown. Usage therefore cannot start
        // before `since_ms`.
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

/// Returns the usage by owner in the periods that overlap a span. Combines the periods in memory
/// and on disk without counting any usage twice.
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
    // The last period on disk may still be in progress. If there is usage in memory, the time of
    // its newest sample is therefore used as the end.
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
    use super::*;

    const AT_MS: u64 = 1_800_000_000_000;

    fn make_usage(
        user: &str,
        job: Option<Job>,
        seconds: f64,
        joules: Option<[f64; 3]>,
    ) -> OwnerUsage {
        let joules = joules.map(|[least, estimate, most]| Joules {
            least,
            most,
            estimate,
        });
        let user = Some(user.to_owned()).filter(|user| !user.is_empty());
        OwnerUsage {
            user,
            job,
            gpu_seconds: seconds,
            exclusive_seconds: 0.0,
            active_seconds: 1.0,
            joules,
        }
    }

    fn make_notebook(path: Option<&str>) -> Job {
        let path = path.map(|path| Reading::Now(path.to_owned()));
        Job {
            kind: JobKind::Notebook,
            id: "5f3a".to_owned(),
            path,
            name: None,
            private: false,
        }
    }

    #[test]
    fn usage_is_added_and_summed_by_owner() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path()).unwrap();
        assert_eq!(database.usage_time_range_ms().unwrap(), None);
        let unheld = UnheldUsage {
            gpu_seconds: 2.0,
            joules: 100.0,
        };
        let add = |at_ms, owners| {
            database
                .add_usage(&Period {
                    at_ms,
                    owners,
                    unheld,
                })
                .unwrap();
        };
        add(
            AT_MS,
            vec![
                make_usage("ana", Some(make_notebook(None)), 10.0, None),
                make_usage("", None, 5.0, Some([1.0, 2.0, 3.0])),
            ],
        );
        add(
            AT_MS,
            vec![make_usage(
                "ana",
                Some(make_notebook(Some("a/b.ipynb"))),
                10.0,
                Some([5.0, 5.0, 5.0]),
            )],
        );
        add(
            AT_MS + PERIOD_MS,
            vec![
                make_usage("ana", Some(make_notebook(None)), 1.0, None),
                make_usage("ana", None, 7.0, None),
            ],
        );

        let sum = |from_ms, to_ms| database.read_usage(from_ms, to_ms).unwrap();
        let all = sum(AT_MS, AT_MS + 2 * PERIOD_MS);
        assert_eq!(
            all.unheld,
            UnheldUsage {
                gpu_seconds: 6.0,
                joules: 300.0
            }
        );
        let of = |user: Option<&str>, has_job: bool| {
            let is_meant = |owner: &&OwnerUsage| {
                owner.user.as_deref() == user && owner.job.is_some() == has_job
            };
            all.owners.iter().find(is_meant).unwrap()
        };
        let with_job = of(Some("ana"), true);
        assert_eq!(
            (&with_job.job, with_job.gpu_seconds),
            (&Some(make_notebook(Some("a/b.ipynb"))), 21.0)
        );
        assert_eq!(
            with_job.joules,
            Some(Joules {
                least: 5.0,
                most: 5.0,
                estimate: 5.0
            })
        );
        assert_eq!(
            (of(Some("ana"), false).joules, of(None, false).gpu_seconds),
            (None, 5.0)
        );
        assert_eq!(all.owners.len(), 3);
        let first = sum(AT_MS, AT_MS + PERIOD_MS);
        assert_eq!((first.owners.len(), first.unheld.gpu_seconds), (2, 4.0));
        assert_eq!(sum(0, AT_MS), Period::default());
        assert_eq!(
            database.usage_time_range_ms().unwrap(),
            Some((AT_MS, AT_MS + PERIOD_MS))
        );
    }
}

#[cfg(test)]
mod combination_tests {
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
    fn usage_without_database_comes_from_memory() {
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
    fn usage_in_database_and_memory_is_counted_once() {
        // The stored usage of the 10th period includes the usage from the earlier process and from
        // the current one.
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
