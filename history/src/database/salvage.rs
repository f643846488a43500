//! Copies the readable rows of a damaged database to the new one that replaces it.
//!
//! Rows are read in the order of their row IDs, which needs no index. If a page cannot be read, the
//! search for the next readable one doubles its distance until it succeeds, and then narrows it
//! down by bisection. The rows between are read backwards from there.

use std::{
    collections::HashMap,
    path::Path,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter, types::Value};

use super::{
    Database,
    schema::{columns_in, tables},
};

/// The maximum number of rows that are read at once.
const ROWS: usize = 200;

/// The time limit of the whole salvage.
const MOST: Duration = Duration::from_mins(10);

/// The progress through the tables of a damaged file.
#[derive(Debug)]
pub(crate) struct Salvage {
    source: Connection,
    tables: Vec<String>,
    at: Place,
    /// The IDs of the damaged file's devices in the new file.
    devices: HashMap<i64, i64>,
    /// The time at which the damage was found.
    begun_ms: u64,
    give_up_at: Instant,
}

/// A position in the damaged file.
#[derive(Debug, Clone, Copy)]
struct Place {
    table: usize,
    /// The ID of the last row that was read or skipped.
    row: i64,
    /// The number of rows added so far.
    added: usize,
}

/// Rows of a table that are read together.
struct Part {
    rows: Vec<Vec<Value>>,
    /// The ID of the last row of the part, or `None` at the end of the table.
    until: Option<i64>,
}

impl Salvage {
    /// Opens a damaged file. Returns `None` if not even its tables can be determined.
    pub(crate) fn new(path: &Path, begun_ms: u64) -> Option<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let source = Connection::open_with_flags(path.canonicalize().ok()?, flags).ok()?;
        source.busy_timeout(Duration::from_secs(1)).ok()?;
        // With this check, SQLite reports damaged cells instead of returning them as rows.
        source
            .pragma_update_and_check(None, "cell_size_check", 1, |_| Ok(()))
            .ok();
        let is_there =
            |table: &String| columns_in(&source, table).is_ok_and(|columns| !columns.is_empty());
        let tables: Vec<_> = tables().filter(is_there).collect();
        let at = Place {
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
            give_up_at: Instant::now() + MOST,
        })
    }

    /// Returns the time at which the damage was found.
    pub(crate) fn begun_ms(&self) -> u64 {
        self.begun_ms
    }

    /// Copies rows for at most `time`. Returns the total number of rows added once nothing remains
    /// to be copied.
    ///
    /// # Errors
    /// Returns an error if the new database cannot be written. The same rows are tried again in the
    /// next step.
    pub(crate) fn step(
        &mut self,
        database: &Database,
        time: Duration,
    ) -> Result<Option<usize>, rusqlite::Error> {
        let (before, until) = (self.at, Instant::now() + time);
        let worked = database.at_once(|database| {
            while self.at.table < self.tables.len() && Instant::now() < until {
                self.take_part(database)?;
            }
            Ok(())
        });
        worked.inspect_err(|_: &rusqlite::Error| self.at = before)?;
        let is_over = self.at.table == self.tables.len() || Instant::now() > self.give_up_at;
        Ok(is_over.then_some(self.at.added))
    }

    fn take_part(&mut self, database: &Database) -> Result<(), rusqlite::Error> {
        let table = self.tables[self.at.table].clone();
        let (own, theirs) = (
            columns_in(&database.connection, &table)?,
            columns_in(&self.source, &table),
        );
        let columns: Vec<String> = theirs
            .unwrap_or_default()
            .intersection(&own)
            .cloned()
            .collect();
        let Part { rows, until } = self.read(&table, &columns);
        for row in rows {
            self.at.added += usize::from(self.add(database, &table, &columns, row)?);
        }
        self.at = match until {
            Some(row) => Place { row, ..self.at },
            None => Place {
                table: self.at.table + 1,
                row: i64::MIN,
                ..self.at
            },
        };
        Ok(())
    }

    fn read(&self, table: &str, columns: &[String]) -> Part {
        let (rows, is_whole) = self.rows(table, columns, self.at.row, i64::MAX, "ASC");
        let last = rows.last().map_or(self.at.row, |(number, _)| *number);
        let values = |rows: Vec<(i64, Vec<Value>)>| {
            rows.into_iter()
                .map(|(_, values)| values)
                .collect::<Vec<_>>()
        };
        if is_whole {
            let until = (rows.len() == ROWS).then_some(last);
            return Part {
                rows: values(rows),
                until,
            };
        }
        let mut rows = values(rows);
        let Some(next) = self.next_readable(table, last) else {
            return Part { rows, until: None };
        };
        rows.extend(values(self.rows(table, columns, last, next, "DESC").0));
        // The ID of a row can be readable although its values are not.
        Part {
            rows,
            until: Some(if next - 1 > self.at.row {
                next - 1
            } else {
                next
            }),
        }
    }

    /// Returns the ID of the first row after the unreadable page.
    fn next_readable(&self, table: &str, row: i64) -> Option<i64> {
        let sql = format!("SELECT rowid FROM {table} WHERE rowid >= ?1 ORDER BY rowid LIMIT 1");
        let mut probe = self.source.prepare(&sql).ok()?;
        // This returns the first row ID from a number on, or an error if its page cannot be read.
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
        // The doubling overshoots by far if the row IDs are times and the first page is damaged.
        while good - bad > 1 {
            let middle = i64::midpoint(bad, good);
            match first_from(middle) {
                Ok(nearer) => (good, next) = (middle, nearer),
                Err(_) => bad = middle,
            }
        }
        next
    }

    /// Returns the readable rows between two IDs, and whether all of them could be read.
    fn rows(
        &self,
        table: &str,
        columns: &[String],
        after: i64,
        before: i64,
        order: &str,
    ) -> (Vec<(i64, Vec<Value>)>, bool) {
        let names = columns.join(", ");
        let sql = format!(
            "SELECT rowid, {names} FROM {table} WHERE rowid > ?1 AND rowid < ?2 ORDER BY rowid {order} LIMIT {ROWS}"
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

    /// Adds a row and returns whether it was added. Rows that the new file already contains stay
    /// unchanged.
    fn add(
        &mut self,
        database: &Database,
        table: &str,
        columns: &[String],
        mut row: Vec<Value>,
    ) -> Result<bool, rusqlite::Error> {
        let place = |name: &str| columns.iter().position(|column| column == name);
        let (mut columns, mut id) = (columns.to_vec(), None);
        if table == "device" {
            // The ID may belong to another device in the new file.
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
