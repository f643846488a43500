//! Deletion of old rows, and of the oldest rows of a database that is too large, in small steps
//! that delay no other work.
//!
//! The system's clock can be wrong by years, after a start or at any time. Age is therefore
//! measured from the newest row of the file, and rows are deleted no faster than this process runs:
//! a wrong clock deletes at most one day of history per day. A correct clock is not slowed down by
//! this, because rows are added no faster. Time without any rows does not count.

use std::time::Duration;

use super::{
    DAY_MS, Database, TIERS,
    roll_up::ALL,
    schema::{OF_PROCESSES, Subject, TABLES},
};

/// Limits of the database's size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) size_bytes: u64,
}

/// The amount of history that may be deleted from each tier because of its age, in milliseconds. It
/// grows by the time for which this process runs.
#[derive(Debug, Default)]
pub(crate) struct Allowance([u64; TIERS.len()]);

impl Allowance {
    /// Adds the elapsed time of a monotonic clock.
    pub(crate) fn add(&mut self, passed: Duration) {
        for tier in &mut self.0 {
            *tier = (*tier + passed.as_millis() as u64).min(DAY_MS);
        }
    }
}

/// The maximum number of rows deleted from a table at once. About 50 rows are added per minute.
const ROWS: i64 = 1000;

/// The time for which starts and ends of processes are kept. They are frequent.
const PROCESS_EVENTS_MS: u64 = 30 * DAY_MS;

impl Database {
    /// Deletes a part of the rows that are older than their tier is kept, within the allowance. If
    /// the file exceeds its size limit, the oldest rows of all tables are deleted, the same share
    /// of each, so that all resolutions become shorter alike.
    pub(crate) fn forget(
        &self,
        now_ms: u64,
        allowance: &mut Allowance,
        limits: Limits,
    ) -> Result<(), rusqlite::Error> {
        // With a clock that is ahead, rows are not older than their distance to the newest row.
        if let Some(newest_ms) = self.newest_ms()? {
            self.forget_old(now_ms.min(newest_ms), allowance)?;
        }
        if self.used_bytes()? > limits.size_bytes {
            self.forget_oldest_share()?;
        }
        // Free pages are used again. They are returned to the file system only if the file exceeds
        // its limit.
        if self.number("page_count")? * self.number("page_size")? > limits.size_bytes {
            // Each row that SQLite returns is a freed page.
            let mut vacuum = self.connection.prepare("PRAGMA incremental_vacuum(512)")?;
            let mut pages = vacuum.query([])?;
            while pages.next()?.is_some() {}
        }
        Ok(())
    }

    /// Returns the time of the newest row of any tier.
    fn newest_ms(&self) -> Result<Option<u64>, rusqlite::Error> {
        let newest = (0..TIERS.len()).map(|tier| self.edge("max", Subject::Host, tier, ALL));
        Ok(newest
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .max()
            .flatten())
    }

    fn forget_old(&self, now_ms: u64, allowance: &mut Allowance) -> Result<(), rusqlite::Error> {
        // The oldest remaining time of each tier.
        let mut oldest = [None; TIERS.len()];
        for (tier, (stored, allowed_ms)) in TIERS.iter().zip(&mut allowance.0).enumerate() {
            let edge = || self.edge("min", Subject::Host, tier, ALL);
            let Some(before_ms) = edge()? else { continue };
            let allowed_until_ms =
                before_ms + *allowed_ms / stored.resolution_ms * stored.resolution_ms;
            let bound_ms = now_ms.saturating_sub(stored.keep_ms).min(allowed_until_ms);
            for subject in Subject::ALL {
                self.delete(&subject.table(tier), "at_ms < ?1", bound_ms as i64)?;
            }
            oldest[tier] = edge()?;
            let deleted_ms = oldest[tier]
                .map_or(bound_ms, |oldest_ms| oldest_ms.min(bound_ms))
                .saturating_sub(before_ms);
            *allowed_ms = allowed_ms.saturating_sub(deleted_ms);
        }
        // Other tables lose the rows of the same period.
        let bound = |keep_ms: u64| {
            let same = TIERS
                .iter()
                .position(|tier| tier.keep_ms >= keep_ms)
                .unwrap_or(TIERS.len() - 1);
            oldest[same].map(|oldest_ms| now_ms.saturating_sub(keep_ms).min(oldest_ms) as i64)
        };
        for (table, (time, keep_ms)) in kept() {
            if let Some(bound) = bound(keep_ms) {
                self.delete(table, &format!("{time} < ?1"), bound)?;
            }
        }
        if let Some(bound) = bound(PROCESS_EVENTS_MS) {
            self.delete("event", &format!("{OF_PROCESSES} AND at_ms < ?1"), bound)?;
        }
        Ok(())
    }

    /// Returns the size of the pages in use, in bytes.
    pub(crate) fn used_bytes(&self) -> Result<u64, rusqlite::Error> {
        Ok(
            (self.number("page_count")? - self.number("freelist_count")?)
                * self.number("page_size")?,
        )
    }

    fn number(&self, pragma: &str) -> Result<u64, rusqlite::Error> {
        self.connection
            .pragma_query_value(None, pragma, |row| row.get::<_, i64>(0))
            .map(|number| number as u64)
    }

    fn delete(&self, table: &str, which: &str, bound: i64) -> Result<(), rusqlite::Error> {
        let sql = format!(
            "DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE {which} LIMIT {ROWS})"
        );
        self.connection.execute(&sql, [bound])?;
        Ok(())
    }

    /// Deletes the rows in the oldest hundredth of the time that each table covers, up to [`ROWS`]
    /// of a table.
    fn forget_oldest_share(&self) -> Result<(), rusqlite::Error> {
        let tiers = Subject::ALL
            .into_iter()
            .flat_map(|subject| (0..TIERS.len()).map(move |tier| subject.table(tier)));
        let others = kept().map(|(table, (time, _))| (table.to_owned(), time));
        for (table, time) in tiers.map(|table| (table, "at_ms")).chain(others) {
            // SQLite uses the index for a single `min` or `max` in a query.
            let sql = format!(
                "SELECT oldest + (newest - oldest) / 100
                 FROM (SELECT (SELECT min({time}) FROM {table}) AS oldest, (SELECT max({time}) FROM {table}) AS newest)"
            );
            let bound: Option<i64> = self.connection.query_row(&sql, [], |row| row.get(0))?;
            if let Some(bound) = bound {
                self.delete(&table, &format!("{time} <= ?1"), bound)?;
            }
        }
        Ok(())
    }
}

/// Returns the tables other than the tiers that have rows deleted: name, column of the time, and
/// time to keep in milliseconds.
fn kept() -> impl Iterator<Item = (&'static str, (&'static str, u64))> {
    TABLES
        .iter()
        .filter_map(|table| Some((table.name, table.kept?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::{BUCKET_MS, Bucket};

    const HOUR: Duration = Duration::from_hours(1);
    const FIRST_MS: u64 = 1_800_000_000_000;
    const LIMITS: Limits = Limits {
        size_bytes: u64::MAX,
    };

    fn rows(tier: usize, from_ms: u64, count: u64) -> impl Iterator<Item = Bucket> {
        let resolution_ms = TIERS[tier].resolution_ms;
        (0..count).map(move |row| Bucket {
            at_ms: from_ms + row * resolution_ms,
            samples: 1,
            ..Bucket::default()
        })
    }

    fn oldest_ms(database: &Database, tier: usize) -> u64 {
        database
            .edge("min", Subject::Host, tier, ALL)
            .unwrap()
            .unwrap()
    }

    #[test]
    fn clock_ahead_deletes_no_faster_than_time_passes() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path()).unwrap();
        for tier in 0..TIERS.len() {
            database.import(tier, rows(tier, FIRST_MS, 4000)).unwrap();
        }
        // A clock that is 400 days ahead has written this row.
        let ahead_ms = FIRST_MS + 400 * DAY_MS;
        database.import(0, rows(0, ahead_ms, 1)).unwrap();
        let mut allowance = Allowance::default();
        for minute in 1..=90 {
            allowance.add(HOUR / 60);
            database
                .forget(ahead_ms + minute * 60_000, &mut allowance, LIMITS)
                .unwrap();
        }
        let deleted_ms = [0, 1, 2].map(|tier| oldest_ms(&database, tier) - FIRST_MS);
        assert_eq!(deleted_ms, [90 * 60_000, 90 * 60_000, 90 * 60_000]);
    }

    #[test]
    fn long_run_deletes_a_day_in_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path()).unwrap();
        database.import(2, rows(2, FIRST_MS, 96 * 10)).unwrap();
        let mut allowance = Allowance::default();
        // Nothing has been deleted for a week.
        allowance.add(7 * 24 * HOUR);
        let ahead_ms = FIRST_MS + 800 * DAY_MS;
        database.import(2, rows(2, ahead_ms, 1)).unwrap();
        (0..5).for_each(|_| database.forget(ahead_ms, &mut allowance, LIMITS).unwrap());
        assert_eq!(oldest_ms(&database, 2), FIRST_MS + DAY_MS);
    }

    #[test]
    fn clock_ahead_leaves_a_file_that_nothing_is_added_to() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path()).unwrap();
        database.import(0, rows(0, FIRST_MS, 4000)).unwrap();
        let mut allowance = Allowance([DAY_MS; TIERS.len()]);
        database
            .forget(FIRST_MS + 400 * DAY_MS, &mut allowance, LIMITS)
            .unwrap();
        assert_eq!(oldest_ms(&database, 0), FIRST_MS);
    }

    #[test]
    fn time_without_rows_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path()).unwrap();
        // The rows are those of ten minutes, a month in which nothing ran, and now.
        database
            .import(
                0,
                rows(0, FIRST_MS, 60).chain(rows(0, FIRST_MS + 30 * DAY_MS, 1)),
            )
            .unwrap();
        let mut allowance = Allowance::default();
        for _ in 0..11 {
            allowance.add(HOUR / 60);
            database
                .forget(FIRST_MS + 30 * DAY_MS + BUCKET_MS, &mut allowance, LIMITS)
                .unwrap();
        }
        assert_eq!(oldest_ms(&database, 0), FIRST_MS + 30 * DAY_MS);
    }
}
