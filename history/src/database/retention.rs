//! What is too old, or too much, is forgotten: a little at a time, so that nothing waits for it.

use super::{
    DAY_MS, Database, TIERS,
    schema::{OF_PROCESSES, Subject, TABLES},
};

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) size_bytes: u64,
}

/// Rows of a table that are deleted at once. A minute adds some fifty.
const ROWS: i64 = 1000;

/// Of starts and ends of processes, which are many.
const PROCESS_EVENTS_MS: u64 = 30 * DAY_MS;

impl Database {
    /// Forgets what is older than its tier is kept. Where the file is larger than it may be, the oldest rows of all tables go,
    /// of each the same share, so that it reaches less far back in all resolutions.
    pub(crate) fn forget(&self, now_ms: u64, limits: Limits) -> Result<(), rusqlite::Error> {
        let before = |keep_ms: u64| now_ms.saturating_sub(keep_ms) as i64;
        for subject in Subject::ALL {
            for (tier, stored) in TIERS.iter().enumerate() {
                self.delete(&subject.table(tier), "at_ms < ?1", before(stored.keep_ms))?;
            }
        }
        for (table, (time, keep_ms)) in kept() {
            self.delete(table, &format!("{time} < ?1"), before(keep_ms))?;
        }
        self.delete("event", &format!("{OF_PROCESSES} AND at_ms < ?1"), before(PROCESS_EVENTS_MS))?;
        if self.used_bytes()? > limits.size_bytes {
            self.forget_oldest_share()?;
        }
        // Pages that are free are used again; they are given back only where the file is larger than it may be.
        if self.number("page_count")? * self.number("page_size")? > limits.size_bytes {
            // Each step gives back a page.
            let mut vacuum = self.connection.prepare("PRAGMA incremental_vacuum(512)")?;
            let mut pages = vacuum.query([])?;
            while pages.next()?.is_some() {}
        }
        Ok(())
    }

    /// Bytes of the pages that hold something.
    pub(crate) fn used_bytes(&self) -> Result<u64, rusqlite::Error> {
        Ok((self.number("page_count")? - self.number("freelist_count")?) * self.number("page_size")?)
    }

    fn number(&self, pragma: &str) -> Result<u64, rusqlite::Error> {
        self.connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).map(|number| number as u64)
    }

    fn delete(&self, table: &str, which: &str, bound: i64) -> Result<(), rusqlite::Error> {
        let sql = format!("DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE {which} LIMIT {ROWS})");
        self.connection.execute(&sql, [bound])?;
        Ok(())
    }

    /// A hundredth of the time that each table reaches back, at most.
    fn forget_oldest_share(&self) -> Result<(), rusqlite::Error> {
        let tiers = Subject::ALL.into_iter().flat_map(|subject| (0..TIERS.len()).map(move |tier| subject.table(tier)));
        let others = kept().map(|(table, (time, _))| (table.to_owned(), time));
        for (table, time) in tiers.map(|table| (table, "at_ms")).chain(others) {
            // Each alone, so that an index tells it.
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

/// The tables whose rows are forgotten beside those of the tiers, with their time and how long it is kept.
fn kept() -> impl Iterator<Item = (&'static str, (&'static str, u64))> {
    TABLES.iter().filter_map(|table| Some((table.name, table.kept?)))
}
