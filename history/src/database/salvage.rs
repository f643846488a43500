//! Copies the readable rows of a damaged database to the new database that replaces it.
//!
//! Rows are read in the order of their row IDs, which needs no index. After an unreadable page, row
//! IDs are tried at a distance that doubles until a row can be read. Bisection then searches for
//! the first readable row, and any readable rows that were skipped are read backwards.

use std::{
    collections::HashMap,
    path::Path,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter, types::Value};

use super::{
    Database,
    schema::{read_columns, table_names},
};

/// The maximum number of rows that are read in one step.
const MAX_ROWS: usize = 200;

/// The time limit of the entire salvage.
const TIME_LIMIT: Duration = Duration::from_mins(10);

/// The progress through the tables of a damaged file.
#[derive(Debug)]
pub(crate) struct Salvage {
    source: Connection,
    tables: Vec<String>,
    at: SalvagePosition,
    /// The new file's device IDs, by the device IDs in the damaged file.
    devices: HashMap<i64, i64>,
    /// The time at which the damage was detected.
    begun_ms: u64,
    give_up_at: Instant,
}

/// A position in the damaged file.
#[derive(Debug, Clone, Copy)]
struct SalvagePosition {
    table: usize,
    /// The ID of the last row that was read or skipped.
    row: i64,
    /// The number of rows added so far.
    added: usize,
}

/// Rows of a table that are read together.
struct RowBatch {
    rows: Vec<Vec<Value>>,
    /// The last row ID that the batch covers; `None` if the batch reaches the end of the table.
    until: Option<i64>,
}

impl Salvage {
    /// Opens a damaged file. Returns `None` if even its tables cannot be determined.
    pub(crate) fn new(path: &Path, begun_ms: u64) -> Option<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let source = Connection::open_with_flags(path.canonicalize().ok()?, flags).ok()?;
        source.busy_timeout(Duration::from_secs(1)).ok()?;
        // With `cell_size_check`, SQLite reports damaged cells instead of returning them as rows.
        source
            .pragma_update_and_check(None, "cell_size_check", 1, |_| Ok(()))
            .ok();
        let is_there =
            |table: &String| read_columns(&source, table).is_ok_and(|columns| !columns.is_empty());
        let tables: Vec<_> = table_names().filter(is_there).collect();
        let at = SalvagePosition {
            table: 0,
            row: i64::MIN,
            added: 0,
        };
        let is_some = !tables.is_empty();
        let devices = HashMap::new();
        is_some.then_some(Self {
            source,
            tables,
            at,
            devices,
            begun_ms,
            give_up_at: Instant::now() + TIME_LIMIT,
        })
    }

    /// Returns the time at which the damage was detected.
    pub(crate) fn started_ms(&self) -> u64 {
        self.begun_ms
    }

    /// Copies rows for at most `time`. Returns the total number of rows added once all tables have
    /// been copied.
    ///
    /// # Errors
    /// Returns an error if the new database cannot be written. The next step retries the same rows.
    pub(crate) fn copy_rows(
        &mut self,
        database: &Database,
        time: Duration,
    ) -> Result<Option<usize>, rusqlite::Error> {
        let (before, until) = (self.at, Instant::now() + time);
        let worked = database.run_in_transaction(|database| {
            while self.at.table < self.tables.len() && Instant::now() < until {
                self.copy_batch(database)?;
            }
            Ok(())
        });
        worked.inspect_err(|_: &rusqlite::Error| self.at = before)?;
        let is_over = self.at.table == self.tables.len() || Instant::now() > self.give_up_at;
        Ok(is_over.then_some(self.at.added))
    }

    fn copy_batch(&mut self, database: &Database) -> Result<(), rusqlite::Error> {
        let table = self.tables[self.at.table].clone();
        let (own, theirs) = (
            read_columns(&database.connection, &table)?,
            read_columns(&self.source, &table),
        );
        let columns: Vec<String> = theirs
            .unwrap_or_default()
            .intersection(&own)
            .cloned()
            .collect();
        let RowBatch { rows, until } = self.read_batch(&table, &columns);
        for row in rows {
            self.at.added += usize::from(self.add_row(database, &table, &columns, row)?);
        }
        self.at = match until {
            Some(row) => SalvagePosition { row, ..self.at },
            None => SalvagePosition {
                table: self.at.table + 1,
                row: i64::MIN,
                ..self.at
            },
        };
        Ok(())
    }

    fn read_batch(&self, table: &str, columns: &[String]) -> RowBatch {
        let (rows, is_whole) = self.read_rows(table, columns, self.at.row, i64::MAX, "ASC");
        let last = rows.last().map_or(self.at.row, |(number, _)| *number);
        let values = |rows: Vec<(i64, Vec<Value>)>| {
            rows.into_iter()
                .map(|(_, values)| values)
                .collect::<Vec<_>>()
        };
        if is_whole {
            let until = (rows.len() == MAX_ROWS).then_some(last);
            return RowBatch {
                rows: values(rows),
                until,
            };
        }
        let mut rows = values(rows);
        let Some(next) = self.find_next_readable_row(table, last) else {
            return RowBatch { rows, until: None };
        };
        rows.extend(values(self.read_rows(table, columns, last, next, "DESC").0));
        // A row's ID can be readable even if its values are not. If the previous batch ended just
        // before `next`, this batch therefore skips `next`, so that the search advances.
        RowBatch {
            rows,
            until: Some(if next - 1 > self.at.row {
                next - 1
            } else {
                next
            }),
        }
    }

    /// Returns the ID of the first row after an unreadable page.
    fn find_next_readable_row(&self, table: &str, row: i64) -> Option<i64> {
        let sql = format!("SELECT rowid FROM {table} WHERE rowid >= ?1 ORDER BY rowid LIMIT 1");
        let mut probe = self.source.prepare(&sql).ok()?;
        // This closure returns the first row ID that is at least `from`, or an error if its page
        // cannot be read.
        let mut first_from = |from: i64| match probe.query_row([from], |row| row.get(0)) {
            Ok(next) => Ok(Some(next)),
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
            Err(error) => Err(error),
        };
        // Row IDs are times or counts, and never negative.
        let (mut bad, mut distance) = (row.max(0), 1_i64);
        let (mut good, mut next) = loop {
            let from = bad.checked_add(distance)?;
            if let Ok(next) = first_from(from) {
                break (from, next);
            }
            (bad, distance) = (from, distance.checked_mul(2)?);
        };
        // If row IDs are times and the first page is damaged, the doubled distance can go far
        // beyond the first readable row. Bisection therefore searches for this row.
        while good - bad > 1 {
            let middle = i64::midpoint(bad, good);
            match first_from(middle) {
                Ok(nearer) => (good, next) = (middle, nearer),
                Err(_) => bad = middle,
            }
        }
        next
    }

    /// Returns the readable rows between two IDs, and whether all rows could be read.
    fn read_rows(
        &self,
        table: &str,
        columns: &[String],
        after: i64,
        before: i64,
        order: &str,
    ) -> (Vec<(i64, Vec<Value>)>, bool) {
        let names = columns.join(", ");
        let sql = format!(
            "SELECT rowid, {names} FROM {table} WHERE rowid > ?1 AND rowid < ?2 ORDER BY rowid \
             {order} LIMIT {MAX_ROWS}"
        );
        let mut read = Vec::new();
        let done = self.source.prepare_cached(&sql).and_then(|mut statement| {
            let mut rows = statement.query([after, before])?;
            while let Some(row) = rows.next()? {
                let values = (0..columns.len())
                    .map(|column| row.get(column + 1))
                    .collect::<Result<_, _>>()?;
                read.push((row.get(0)?, values));
            }
            Ok(())
        });
        (read, done.is_ok())
    }

    /// Adds a row to the new file, and returns whether it was added. Rows that already exist are
    /// not changed.
    fn add_row(
        &mut self,
        database: &Database,
        table: &str,
        columns: &[String],
        mut row: Vec<Value>,
    ) -> Result<bool, rusqlite::Error> {
        let place = |name: &str| columns.iter().position(|column| column == name);
        let (mut columns, mut id) = (columns.to_vec(), None);
        if table == "device" {
            // The device's row gets a new ID, because another device may already have this ID in
            // the new file.
            let Some(place) = place("id") else {
                return Ok(false);
            };
            columns.remove(place);
            id = Some(row.remove(place));
        } else if let Some(place) = place("device") {
            let Value::Integer(number) = row[place] else {
                return Ok(false);
            };
            let Some(known) = self.devices.get(&number) else {
                return Ok(false);
            };
            row[place] = Value::Integer(*known);
        }
        let holders: Vec<_> = (1..=columns.len())
            .map(|number| format!("?{number}"))
            .collect();
        let sql = format!(
            "INSERT OR IGNORE INTO {table} ({}) VALUES ({})",
            columns.join(", "),
            holders.join(", ")
        );
        let added = match database
            .connection
            .prepare_cached(&sql)?
            .execute(params_from_iter(&row))
        {
            Ok(added) => added > 0,
            // The damaged bytes look like a row, but have the wrong types.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::TypeMismatch) => false,
            Err(error) => return Err(error),
        };
        if let (Some(Value::Integer(id)), Some(uuid)) =
            (id, columns.iter().position(|column| column == "uuid"))
        {
            let known = "SELECT id FROM device WHERE uuid = ?1";
            self.devices.insert(
                id,
                database
                    .connection
                    .query_row(known, [&row[uuid]], |row| row.get(0))?,
            );
        }
        Ok(added)
    }
}
