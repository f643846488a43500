//! Queries that write buckets and events to the tables.

use std::collections::HashMap;

use gpumon_probe::{
    model::{Cell, Event, EventKind, fields::Kind},
    stat::Stat,
};
use rusqlite::{OptionalExtension, Row, params, types::ValueRef};
use serde_json::Value;

use super::{
    Database, DatabaseError,
    maintenance::ALL_TIMES,
    schema::{Subject, job_kind_word},
};
use crate::{
    bucket::{Bucket, Device, DeviceBucket, join_stats},
    jobs::JobSpan,
    span::{ConditionSpan, DeviceKind},
};

/// The devices that have a row in the database. A device's row is written again only if the device
/// has changed.
#[derive(Debug, Default)]
pub(crate) struct StoredDevices {
    known: HashMap<String, (i64, Device)>,
    /// The time of the newest stored bucket. The bucket can be incomplete if an earlier process
    /// ended before the bucket did.
    newest_ms: Option<u64>,
}

impl StoredDevices {
    /// Returns the state for a database that has just been opened: only the time of the newest
    /// stored bucket is known.
    pub(crate) fn load(database: &Database) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            newest_ms: database.find_first_or_last_time("max", 0, ALL_TIMES)?,
            ..Self::default()
        })
    }

    /// Returns the time of the newest stored bucket.
    pub(crate) fn newest_bucket_ms(&self) -> Option<u64> {
        self.newest_ms
    }

    fn store_device(
        &mut self,
        database: &Database,
        device: &Device,
    ) -> Result<i64, rusqlite::Error> {
        if let Some((id, known)) = self.known.get(&device.uuid)
            && known == device
        {
            return Ok(*id);
        }
        let kind = device.kind().export_name();
        let id = database.connection.query_row(
            "INSERT INTO device (uuid, kind, device_index, name, parent) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (uuid) DO UPDATE SET device_index = ?3, name = coalesce(?4, name), parent = ?5 RETURNING id",
            params![device.uuid, kind, device.index, device.name, device.parent],
            |row| row.get(0),
        )?;
        self.known.insert(device.uuid.clone(), (id, device.clone()));
        Ok(id)
    }
}

/// A row of a tier: the number of samples, and a value for each field.
pub(super) type TierRow = (u32, Vec<Option<Stat>>);

impl Database {
    /// Runs `work` in a transaction.
    ///
    /// # Errors
    /// Returns the error of `work` or of the transaction, which is rolled back.
    pub(crate) fn run_in_transaction<E: From<rusqlite::Error>>(
        &self,
        work: impl FnOnce(&Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let done = work(self).and_then(|()| Ok(self.connection.execute_batch("COMMIT")?));
        done.inspect_err(|_| drop(self.connection.execute_batch("ROLLBACK")))
    }

    /// Adds buckets to a tier unchanged. Each bucket must have the length of the tier's resolution.
    ///
    /// # Errors
    /// Returns an error if a row cannot be added. No rows are added in that case.
    pub fn import_buckets(
        &self,
        tier: usize,
        sums: impl Iterator<Item = Bucket>,
    ) -> Result<(), DatabaseError> {
        let mut devices = StoredDevices::default();
        self.run_in_transaction(|database| {
            for sum in sums {
                for DeviceBucket {
                    device,
                    samples,
                    stats,
                } in &sum.devices
                {
                    let id = devices.store_device(database, device)?;
                    database.put_row(Subject::Gpu, tier, sum.at_ms, id, *samples, stats)?;
                }
                database.put_row(Subject::Host, tier, sum.at_ms, 0, sum.samples, &sum.host)?;
                sum.conditions
                    .iter()
                    .try_for_each(|condition| database.add_condition(condition))?;
            }
            Ok(())
        })
    }

    /// Adds events of any age.
    ///
    /// # Errors
    /// Returns an error if an event cannot be added. No events are added in that case.
    pub fn import_events(
        &self,
        mut events: impl Iterator<Item = Event>,
    ) -> Result<(), DatabaseError> {
        self.run_in_transaction(|database| {
            Ok(events.try_for_each(|event| database.add_event(&event))?)
        })
    }

    /// Adds a bucket. If a bucket with the same start is already stored, because of a restart or a
    /// late sample, both are merged. Returns `true` if such a bucket was already stored.
    pub(crate) fn add_bucket(
        &self,
        bucket: &Bucket,
        devices: &mut StoredDevices,
    ) -> Result<bool, rusqlite::Error> {
        let is_new = devices
            .newest_ms
            .is_none_or(|newest_ms| bucket.at_ms > newest_ms);
        let row = |subject, device| {
            if is_new {
                Ok(None)
            } else {
                self.read_stored_row(subject, 0, bucket.at_ms, device)
            }
        };
        for DeviceBucket {
            device,
            samples,
            stats,
        } in &bucket.devices
        {
            let id = devices.store_device(self, device)?;
            match row(Subject::Gpu, id)? {
                None => self.put_row(Subject::Gpu, 0, bucket.at_ms, id, *samples, stats)?,
                Some(known) => {
                    let (samples, stats) = join_stats(DeviceKind::Gpu, known, *samples, stats);
                    self.put_row(Subject::Gpu, 0, bucket.at_ms, id, samples, &stats)?;
                }
            }
        }
        let known = row(Subject::Host, 0)?;
        let is_joined = known.is_some();
        let (samples, host) = match known {
            None => (bucket.samples, bucket.host.clone()),
            Some(known) => join_stats(DeviceKind::Host, known, bucket.samples, &bucket.host),
        };
        self.put_row(Subject::Host, 0, bucket.at_ms, 0, samples, &host)?;
        bucket
            .conditions
            .iter()
            .try_for_each(|condition| self.add_condition(condition))?;
        bucket.jobs.iter().try_for_each(|job| self.add_job(job))?;
        bucket
            .usage
            .iter()
            .try_for_each(|period| self.add_usage(period))?;
        devices.newest_ms = devices.newest_ms.max(Some(bucket.at_ms));
        Ok(is_joined)
    }

    /// Writes a row of a tier, replacing an existing row.
    pub(super) fn put_row(
        &self,
        subject: Subject,
        tier: usize,
        at_ms: u64,
        device: i64,
        samples: u32,
        stats: &[Option<Stat>],
    ) -> Result<(), rusqlite::Error> {
        let (columns, of_host) = (subject.stat_column_names(), subject == Subject::Host);
        let keys = if of_host {
            "at_ms, samples"
        } else {
            "at_ms, device, samples"
        };
        let count = columns.iter().map(Vec::len).sum::<usize>() + if of_host { 2 } else { 3 };
        let sql = format!(
            "INSERT OR REPLACE INTO {} ({keys}, {}) VALUES (?1{})",
            subject.table_name(tier),
            columns.concat().join(", "),
            (2..=count).fold(String::new(), |all, number| format!("{all}, ?{number}"))
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.raw_bind_parameter(1, at_ms as i64)?;
        if !of_host {
            statement.raw_bind_parameter(2, device)?;
        }
        let mut next = if of_host { 2 } else { 3 };
        statement.raw_bind_parameter(next, samples)?;
        for (stat, columns) in stats.iter().zip(&columns) {
            let parts = stat.map(|stat| [stat.mean, stat.min, stat.max]);
            for part in 0..columns.len() {
                next += 1;
                statement.raw_bind_parameter(next, parts.map(|parts| parts[part]))?;
            }
        }
        statement.raw_execute()?;
        Ok(())
    }

    /// Returns the stored row for a device and time.
    pub(super) fn read_stored_row(
        &self,
        subject: Subject,
        tier: usize,
        at_ms: u64,
        device: i64,
    ) -> Result<Option<TierRow>, rusqlite::Error> {
        let (rows, key) = (subject.select_rows_sql(tier), subject.device_expression());
        let sql = format!("{rows} WHERE at_ms = ?1 AND {key} = ?2");
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement
            .query_row(params![at_ms as i64, device], |row| read_row(row, subject))
            .optional()
    }

    /// Adds an event, and the run or cell that it describes.
    pub(crate) fn add_event(&self, event: &Event) -> Result<(), rusqlite::Error> {
        let json = serde_json::to_value(event).unwrap_or_default();
        let kind = json["what"].as_str().unwrap_or_default();
        let uuid = event.gpu.as_ref().and_then(|gpu| gpu.uuid.as_ref());
        let sql = "INSERT INTO event (at_ms, uuid, kind, json) VALUES (?1, ?2, ?3, ?4)";
        self.connection.prepare_cached(sql)?.execute(params![
            event.at_ms as i64,
            uuid,
            kind,
            json.to_string()
        ])?;
        if let EventKind::Cell(cell) = &event.what {
            return self.add_cell(cell);
        }
        let (EventKind::RunBegan(run) | EventKind::RunEnded(run)) = &event.what else {
            return Ok(());
        };
        let end = matches!(event.what, EventKind::RunEnded(_)).then_some(event.at_ms as i64);
        let json = serde_json::to_string(run).unwrap_or_default();
        self.connection.execute(
            "INSERT INTO run (id, from_ms, to_ms, json) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO UPDATE SET to_ms = ?3, json = ?4",
            params![run.run, event.at_ms as i64, end, json],
        )?;
        Ok(())
    }

    /// Adds a cell. A cell that is already stored is replaced, because every page that shows the
    /// notebook sends the same cells.
    fn add_cell(&self, cell: &Cell) -> Result<(), rusqlite::Error> {
        let gpus = cell
            .gpus
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(",");
        self.connection.execute(
            "INSERT OR REPLACE INTO cell (notebook, kernel_id, cell_id, execution_count, started_ms, ended_ms, gpus, gpu_ms,
             peak_bytes, change_bytes, joules, shared) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            params![
                cell.notebook,
                cell.kernel_id,
                cell.cell_id,
                cell.execution_count,
                cell.started_ms as i64,
                cell.ended_ms as i64,
                gpus,
                cell.gpu_ms,
                cell.peak_bytes,
                cell.change_bytes,
                cell.joules,
                cell.shared
            ],
        )?;
        Ok(())
    }

    /// Returns `true` if a bucket that starts at `at_ms` is stored.
    pub(crate) fn has_bucket(&self, at_ms: u64) -> Result<bool, rusqlite::Error> {
        Ok(self
            .find_first_or_last_time("min", 0, at_ms..=at_ms)?
            .is_some())
    }

    /// Returns `true` if a run is stored.
    pub(crate) fn has_run(&self, id: &str) -> Result<bool, rusqlite::Error> {
        self.connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM run WHERE id = ?1)",
            [id],
            |row| row.get(0),
        )
    }

    pub(crate) fn add_condition(&self, span: &ConditionSpan) -> Result<(), rusqlite::Error> {
        let json = serde_json::to_value(&span.condition).unwrap_or_default();
        let word = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        self.connection.execute(
            "INSERT INTO condition (uuid, condition, severity, from_ms, to_ms, text, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (uuid, condition, from_ms) DO UPDATE SET severity = ?3, to_ms = ?5, text = ?6, json = ?7",
            params![
                span.uuid,
                word("condition"),
                word("severity"),
                span.from_ms as i64,
                span.to_ms.map(|end| end as i64),
                span.condition.text,
                json.to_string()
            ],
        )?;
        Ok(())
    }

    fn add_job(&self, span: &JobSpan) -> Result<(), rusqlite::Error> {
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO job (kind, id, name, user, uuid, from_ms, to_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (kind, id, uuid, from_ms) DO UPDATE SET name = ?3, user = ?4, to_ms = ?7",
        )?;
        let JobSpan {
            kind,
            id,
            name,
            user,
            uuid,
            from_ms,
            to_ms,
            private,
        } = span;
        statement.execute(params![
            job_kind_word(*kind, *private),
            id,
            name,
            user,
            uuid,
            *from_ms as i64,
            *to_ms as i64
        ])?;
        Ok(())
    }

    /// Ends the conditions and runs that remained open because the previous process was killed.
    /// Their end is set to the end of the newest row.
    pub(crate) fn end_open_conditions_and_runs(&self) -> Result<(), rusqlite::Error> {
        let last = "(SELECT coalesce(max(at_ms) + 10000, 0) FROM host_10s)";
        self.connection.execute_batch(&format!(
            "UPDATE condition SET to_ms = max(from_ms, {last}) WHERE to_ms IS NULL;
             UPDATE run SET to_ms = max(from_ms, {last}) WHERE to_ms IS NULL;"
        ))
    }
}

/// Parses a row that [`Subject::select_rows_sql`] selects.
pub(super) fn read_row(row: &Row<'_>, subject: Subject) -> Result<TierRow, rusqlite::Error> {
    let mut next = 3;
    let stats = subject.metrics().iter().map(|metric| {
        let width = if metric.kind == Kind::Gauge { 3 } else { 1 };
        next += width;
        read_stat(row, next - width, width == 3)
    });
    let stats = stats.collect::<Result<_, _>>()?;
    Ok((row.get(2)?, stats))
}

/// Returns the value at `column`. With `has_range`, the next two columns are its minimum and
/// maximum.
pub(super) fn read_stat(
    row: &Row<'_>,
    column: usize,
    has_range: bool,
) -> Result<Option<Stat>, rusqlite::Error> {
    let number = |column| {
        Ok::<_, rusqlite::Error>(match row.get_ref(column)? {
            ValueRef::Real(number) => Some(number),
            ValueRef::Integer(number) => Some(number as f64),
            _ => None,
        })
    };
    let Some(value) = number(column)? else {
        return Ok(None);
    };
    if !has_range {
        return Ok(Some(Stat::from_value(value)));
    }
    let (min, max) = (
        number(column + 1)?.unwrap_or(value),
        number(column + 2)?.unwrap_or(value),
    );
    Ok(Some(Stat {
        min,
        mean: value,
        max,
    }))
}

/// Parses a stored JSON object. Returns `None` if a newer version wrote the object in another
/// format.
pub(super) fn parse_json<T: serde::de::DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str::<Value>(json)
        .ok()
        .and_then(|value| serde_json::from_value(value).ok())
}
