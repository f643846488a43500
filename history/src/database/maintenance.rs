//! Maintenance of the database, in steps small enough not to delay other work. Rows are aggregated
//! into coarser tiers, and old rows are deleted. If the database is too large, the oldest remaining
//! rows are deleted too.
//!
//! The system clock can be wrong by years, after booting or at any other time. Age is therefore
//! measured from the newest row in the file. In addition, for each day that this process runs, at
//! most one day of history is deleted because of its age. With a correct clock, this limit has no
//! effect, because rows are not added any faster. Periods without rows do not count toward the
//! limit.

use std::{collections::BTreeMap, ops::RangeInclusive, time::Duration};

use gpumon_probe::stat::{Stat, Window};
use rusqlite::params;

use super::{
    DAY_MS, Database, TIERS,
    schema::{IS_PROCESS_EVENT, Subject, TABLES},
    write::read_row,
};
use crate::grid::field_stat;

/// The latest time that a row can have.
const MAX_TIME_MS: u64 = i64::MAX as u64;

/// All possible times of rows.
pub(super) const ALL_TIMES: RangeInclusive<u64> = 0..=MAX_TIME_MS;

/// The maximum number of rows deleted from a table in one step. Only about 50 rows are added per
/// minute.
const MAX_DELETED_ROWS: i64 = 1000;

/// The time for which process events are kept. It is shorter than for other events, because process
/// events are frequent.
const PROCESS_EVENT_KEEP_MS: u64 = 30 * DAY_MS;

/// How much history may be deleted from each tier because of its age, in milliseconds. The
/// allowance grows with this process's run time, up to one day.
#[derive(Debug, Default)]
pub(crate) struct Allowance([u64; TIERS.len()]);

impl Allowance {
    /// Increases the allowance by the elapsed time, which a monotonic clock has measured.
    pub(crate) fn add_elapsed_time(&mut self, passed: Duration) {
        for tier in &mut self.0 {
            *tier = (*tier + passed.as_millis() as u64).min(DAY_MS);
        }
    }
}

impl Database {
    /// Deletes rows that are older than their tier's `keep_ms`, as far as the allowance permits. If
    /// the file exceeds its size limit, also deletes the oldest rows of every table. The deleted
    /// fraction is the same for each table, so that the history of all resolutions shrinks alike.
    pub(crate) fn delete_excess_rows(
        &self,
        now_ms: u64,
        allowance: &mut Allowance,
        max_bytes: u64,
    ) -> Result<(), rusqlite::Error> {
        // If the clock is later than the newest row, the age of rows is measured from this row,
        // because the clock may be wrong.
        if let Some(newest_ms) = self.newest_row_ms()? {
            self.delete_expired_rows(now_ms.min(newest_ms), allowance)?;
        }
        if self.used_bytes()? > max_bytes {
            self.delete_oldest_hundredth()?;
        }
        // SQLite reuses free pages. They are therefore returned to the file system only if the file
        // exceeds its size limit.
        if self.read_pragma("page_count")? * self.read_pragma("page_size")? > max_bytes {
            // The pragma returns one row for each page that it frees. A page is freed only when its
            // row is read.
            let mut vacuum = self.connection.prepare("PRAGMA incremental_vacuum(512)")?;
            let mut pages = vacuum.query([])?;
            while pages.next()?.is_some() {}
        }
        Ok(())
    }

    /// Returns the time of the newest row of any tier.
    fn newest_row_ms(&self) -> Result<Option<u64>, rusqlite::Error> {
        let newest =
            (0..TIERS.len()).map(|tier| self.find_first_or_last_time("max", tier, ALL_TIMES));
        Ok(newest
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .max()
            .flatten())
    }

    fn delete_expired_rows(
        &self,
        now_ms: u64,
        allowance: &mut Allowance,
    ) -> Result<(), rusqlite::Error> {
        // For each tier, the time of the oldest remaining row.
        let mut oldest = [None; TIERS.len()];
        for (tier, (stored, allowed_ms)) in TIERS.iter().zip(&mut allowance.0).enumerate() {
            let edge = || self.find_first_or_last_time("min", tier, ALL_TIMES);
            let Some(before_ms) = edge()? else { continue };
            let allowed_until_ms =
                before_ms + *allowed_ms / stored.resolution_ms * stored.resolution_ms;
            let bound_ms = now_ms.saturating_sub(stored.keep_ms).min(allowed_until_ms);
            for subject in Subject::ALL {
                self.delete_matching_rows(
                    &subject.table_name(tier),
                    "at_ms < ?1",
                    bound_ms as i64,
                )?;
            }
            oldest[tier] = edge()?;
            let deleted_ms = oldest[tier]
                .map_or(bound_ms, |oldest_ms| oldest_ms.min(bound_ms))
                .saturating_sub(before_ms);
            *allowed_ms = allowed_ms.saturating_sub(deleted_ms);
        }
        // The allowance must limit deletions in the other tables too. Their rows are therefore
        // deleted only if they are older than the oldest remaining row of a tier that keeps its
        // rows at least as long.
        let bound = |keep_ms: u64| {
            let same = TIERS
                .iter()
                .position(|tier| tier.keep_ms >= keep_ms)
                .unwrap_or(TIERS.len() - 1);
            oldest[same].map(|oldest_ms| now_ms.saturating_sub(keep_ms).min(oldest_ms) as i64)
        };
        for (table, (time, keep_ms)) in list_prunable_tables() {
            if let Some(bound) = bound(keep_ms) {
                self.delete_matching_rows(table, &format!("{time} < ?1"), bound)?;
            }
        }
        if let Some(bound) = bound(PROCESS_EVENT_KEEP_MS) {
            self.delete_matching_rows(
                "event",
                &format!("{IS_PROCESS_EVENT} AND at_ms < ?1"),
                bound,
            )?;
        }
        Ok(())
    }

    /// Returns the size of the pages in use, in bytes.
    pub(crate) fn used_bytes(&self) -> Result<u64, rusqlite::Error> {
        Ok(
            (self.read_pragma("page_count")? - self.read_pragma("freelist_count")?)
                * self.read_pragma("page_size")?,
        )
    }

    fn read_pragma(&self, pragma: &str) -> Result<u64, rusqlite::Error> {
        self.connection
            .pragma_query_value(None, pragma, |row| row.get::<_, i64>(0))
            .map(|number| number as u64)
    }

    fn delete_matching_rows(
        &self,
        table: &str,
        which: &str,
        bound: i64,
    ) -> Result<(), rusqlite::Error> {
        let sql = format!(
            "DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE {which} LIMIT \
             {MAX_DELETED_ROWS})"
        );
        self.connection.execute(&sql, [bound])?;
        Ok(())
    }

    /// Divides the time that each table covers into a hundred parts, and deletes the rows in the
    /// oldest part, at most [`MAX_DELETED_ROWS`] per table.
    fn delete_oldest_hundredth(&self) -> Result<(), rusqlite::Error> {
        let tiers = Subject::ALL
            .into_iter()
            .flat_map(|subject| (0..TIERS.len()).map(move |tier| subject.table_name(tier)));
        let others = list_prunable_tables().map(|(table, (time, _))| (table.to_owned(), time));
        for (table, time) in tiers.map(|table| (table, "at_ms")).chain(others) {
            // SQLite uses the index only if a query has a single `min` or `max`, so each has its
            // own subquery.
            let sql = format!(
                "SELECT oldest + (newest - oldest) / 100
                 FROM (SELECT (SELECT min({time}) FROM {table}) AS oldest, (SELECT max({time}) FROM {table}) AS newest)"
            );
            let bound: Option<i64> = self.connection.query_row(&sql, [], |row| row.get(0))?;
            if let Some(bound) = bound {
                self.delete_matching_rows(&table, &format!("{time} <= ?1"), bound)?;
            }
        }
        Ok(())
    }
}

/// Returns the tables from which old rows are deleted, except for the tiers. Each entry is the
/// name, the time column, and the time for which rows are kept, in milliseconds.
fn list_prunable_tables() -> impl Iterator<Item = (&'static str, (&'static str, u64))> {
    TABLES
        .iter()
        .filter_map(|table| Some((table.name, table.kept?)))
}

// Aggregation of each tier's rows into the next coarser tier.

/// The time up to which each coarser tier is complete, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct RollUpProgress([u64; TIERS.len()]);

impl RollUpProgress {
    /// Creates the progress at which everything before `at_ms` counts as aggregated into the
    /// coarser tiers. Rows that are added later with an earlier time are not aggregated.
    pub(crate) fn new_from(at_ms: u64) -> Self {
        Self(TIERS.map(|tier| at_ms / tier.resolution_ms * tier.resolution_ms))
    }
}

impl Database {
    /// Returns the times up to which the file's coarser tiers are complete.
    pub(crate) fn roll_up_progress(&self) -> Result<RollUpProgress, rusqlite::Error> {
        let mut until = [0; TIERS.len()];
        for (tier, until) in until.iter_mut().enumerate().skip(1) {
            let resolution_ms = TIERS[tier].resolution_ms;
            let newest = self.find_first_or_last_time("max", tier, ALL_TIMES)?;
            *until = newest.map_or(0, |newest| newest + resolution_ms);
        }
        Ok(RollUpProgress(until))
    }

    /// Creates all rows of the coarser tiers whose period has ended by `now_ms`.
    pub(crate) fn roll_up(
        &self,
        until: &mut RollUpProgress,
        now_ms: u64,
    ) -> Result<(), rusqlite::Error> {
        for (tier, until) in until.0.iter_mut().enumerate().skip(1) {
            let resolution_ms = TIERS[tier].resolution_ms;
            // If the clock was set back, the progress is in the future. It is therefore reduced to
            // the current time, so that later rows are created again.
            *until = (*until).min(now_ms / resolution_ms * resolution_ms);
            // The search for the next row skips periods without rows.
            while let Some(next) =
                self.find_first_or_last_time("min", tier - 1, *until..=MAX_TIME_MS)?
            {
                let from_ms = next / resolution_ms * resolution_ms;
                if from_ms + resolution_ms > now_ms {
                    break;
                }
                self.roll_up_row(Subject::Gpu, tier, from_ms)?;
                self.roll_up_row(Subject::Host, tier, from_ms)?;
                *until = from_ms + resolution_ms;
            }
        }
        Ok(())
    }

    /// Recreates the existing coarser rows whose period contains `at_ms`, because finer rows have
    /// been added.
    pub(crate) fn recreate_coarser_rows(
        &self,
        until: &RollUpProgress,
        at_ms: u64,
    ) -> Result<(), rusqlite::Error> {
        for (tier, until) in until.0.iter().enumerate().skip(1) {
            let from_ms = at_ms / TIERS[tier].resolution_ms * TIERS[tier].resolution_ms;
            if from_ms < *until {
                self.roll_up_row(Subject::Gpu, tier, from_ms)?;
                self.roll_up_row(Subject::Host, tier, from_ms)?;
            }
        }
        Ok(())
    }

    /// Returns the time of the first or last row of a tier in a span. `which` is `min` or `max`.
    /// The host has a row for every time.
    pub(super) fn find_first_or_last_time(
        &self,
        which: &str,
        tier: usize,
        span: RangeInclusive<u64>,
    ) -> Result<Option<u64>, rusqlite::Error> {
        let sql = format!(
            "SELECT {which}(at_ms) FROM {} WHERE at_ms BETWEEN ?1 AND ?2",
            Subject::Host.table_name(tier)
        );
        let bounds = params![*span.start() as i64, *span.end() as i64];
        let edge: Option<i64> = self
            .connection
            .prepare_cached(&sql)?
            .query_row(bounds, |row| row.get(0))?;
        Ok(edge.map(|at_ms| at_ms as u64))
    }

    fn roll_up_row(
        &self,
        subject: Subject,
        tier: usize,
        from_ms: u64,
    ) -> Result<(), rusqlite::Error> {
        let metrics = subject.metrics();
        let finer_rows = subject.select_rows_sql(tier - 1);
        let sql = format!("{finer_rows} WHERE at_ms >= ?1 AND at_ms < ?2 ORDER BY at_ms");
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query(params![
            from_ms as i64,
            (from_ms + TIERS[tier].resolution_ms) as i64
        ])?;
        let mut devices: BTreeMap<i64, (u32, Vec<Window>)> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let (samples, stats) = read_row(row, subject)?;
            let (all, totals) = devices.entry(row.get(1)?).or_default();
            *all += samples;
            totals.resize(metrics.len(), Window::default());
            for (total, stat) in totals.iter_mut().zip(stats) {
                if let Some(stat) = stat {
                    total.merge(stat, f64::from(samples.max(1)));
                }
            }
        }
        for (device, (samples, totals)) in devices {
            // A stored row with more samples is kept. Its finer rows may have been deleted, or it
            // may describe an earlier period with the same time, because the clock was set back.
            if self
                .read_stored_row(subject, tier, from_ms, device)?
                .is_some_and(|(known, _)| known > samples)
            {
                continue;
            }
            let stats: Vec<Option<Stat>> = totals
                .iter()
                .zip(metrics)
                .map(|(window, metric)| field_stat(window, metric.kind))
                .collect();
            self.put_row(subject, tier, from_ms, device, samples, &stats)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::{BUCKET_MS, Bucket};

    const HOUR: Duration = Duration::from_hours(1);
    const FIRST_MS: u64 = 1_800_000_000_000;
    const MAX_BYTES: u64 = u64::MAX;

    fn make_rows(tier: usize, from_ms: u64, count: u64) -> impl Iterator<Item = Bucket> {
        let resolution_ms = TIERS[tier].resolution_ms;
        (0..count).map(move |row| Bucket {
            at_ms: from_ms + row * resolution_ms,
            samples: 1,
            ..Bucket::default()
        })
    }

    fn oldest_ms(database: &Database, tier: usize) -> u64 {
        database
            .find_first_or_last_time("min", tier, ALL_TIMES)
            .unwrap()
            .unwrap()
    }

    #[test]
    fn clock_set_ahead_does_not_speed_up_deletion() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path()).unwrap();
        for tier in 0..TIERS.len() {
            database
                .import_buckets(tier, make_rows(tier, FIRST_MS, 4000))
                .unwrap();
        }
        // This row was written while the clock was 400 days ahead.
        let ahead_ms = FIRST_MS + 400 * DAY_MS;
        database
            .import_buckets(0, make_rows(0, ahead_ms, 1))
            .unwrap();
        let mut allowance = Allowance::default();
        for minute in 1..=90 {
            allowance.add_elapsed_time(HOUR / 60);
            database
                .delete_excess_rows(ahead_ms + minute * 60_000, &mut allowance, MAX_BYTES)
                .unwrap();
        }
        let deleted_ms = [0, 1, 2].map(|tier| oldest_ms(&database, tier) - FIRST_MS);
        assert_eq!(deleted_ms, [90 * 60_000, 90 * 60_000, 90 * 60_000]);
    }

    #[test]
    fn old_rows_are_deleted_one_day_per_pass() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path()).unwrap();
        database
            .import_buckets(2, make_rows(2, FIRST_MS, 96 * 10))
            .unwrap();
        let mut allowance = Allowance::default();
        // For a week, nothing has been deleted, so the allowance has reached its maximum.
        allowance.add_elapsed_time(7 * 24 * HOUR);
        let ahead_ms = FIRST_MS + 800 * DAY_MS;
        database
            .import_buckets(2, make_rows(2, ahead_ms, 1))
            .unwrap();
        (0..5).for_each(|_| {
            database
                .delete_excess_rows(ahead_ms, &mut allowance, MAX_BYTES)
                .unwrap();
        });
        assert_eq!(oldest_ms(&database, 2), FIRST_MS + DAY_MS);
    }

    #[test]
    fn clock_set_ahead_keeps_rows_of_unchanged_file() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path()).unwrap();
        database
            .import_buckets(0, make_rows(0, FIRST_MS, 4000))
            .unwrap();
        let mut allowance = Allowance([DAY_MS; TIERS.len()]);
        database
            .delete_excess_rows(FIRST_MS + 400 * DAY_MS, &mut allowance, MAX_BYTES)
            .unwrap();
        assert_eq!(oldest_ms(&database, 0), FIRST_MS);
    }

    #[test]
    fn gap_between_rows_does_not_delay_deletion() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path()).unwrap();
        // The table has rows for ten minutes, then none for a month, then one current row.
        database
            .import_buckets(
                0,
                make_rows(0, FIRST_MS, 60).chain(make_rows(0, FIRST_MS + 30 * DAY_MS, 1)),
            )
            .unwrap();
        let mut allowance = Allowance::default();
        for _ in 0..11 {
            allowance.add_elapsed_time(HOUR / 60);
            database
                .delete_excess_rows(
                    FIRST_MS + 30 * DAY_MS + BUCKET_MS,
                    &mut allowance,
                    MAX_BYTES,
                )
                .unwrap();
        }
        assert_eq!(oldest_ms(&database, 0), FIRST_MS + 30 * DAY_MS);
    }
}
