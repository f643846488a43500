//! Queries that read time spans from the tables.

use std::collections::HashMap;

use gpumon_probe::model::{Event, fields::Kind};
use rusqlite::params;

use super::{
    Database, DatabaseError, REACH_MS, TIERS,
    maintenance::ALL_TIMES,
    schema::{IS_PROCESS_EVENT, Subject, column_names, parse_job_kind, read_columns},
    write::{parse_json, read_stat},
};
use crate::{
    bucket::Device,
    grid::Grid,
    jobs::{JobSpan, MAX_JOBS},
    span::{ConditionSpan, DeviceKind, HistorySpan, Metric, Plan, SpanRequest, Storage, Tier},
};

/// The maximum number of events that are returned for a span. The same limit applies to conditions.
pub const MAX_EVENTS: usize = 1000;

impl Database {
    /// Returns the index of each tier that has rows, the finest first, with the time of its oldest
    /// row.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn list_tiers(&self) -> Result<Vec<(usize, Tier)>, DatabaseError> {
        let mut tiers = Vec::new();
        for (tier, stored) in TIERS.iter().enumerate() {
            if let Some(oldest_ms) = self.find_first_or_last_time("min", tier, ALL_TIMES)? {
                tiers.push((
                    tier,
                    Tier {
                        resolution_ms: stored.resolution_ms,
                        oldest_ms,
                        is_sampled: false,
                    },
                ));
            }
        }
        Ok(tiers)
    }

    /// Adds the rows of `tier` to a grid. Then, tier by tier, adds the finer rows for the time
    /// after the newest row added so far. Returns the end of the newest row added.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn add_to_grid(&self, grid: &mut Grid, tier: usize) -> Result<u64, DatabaseError> {
        let devices = self.read_devices()?;
        let mut from_ms = grid.from_ms();
        // All reads must see the same state of the database. Without a transaction, another process
        // could write between them.
        self.connection.execute_batch("BEGIN")?;
        let read = (0..=tier).rev().try_for_each(|tier| {
            self.add_rows(grid, tier, from_ms, &devices)?;
            let newest = self.find_first_or_last_time("max", tier, from_ms..=grid.to_ms())?;
            from_ms = newest.map_or(from_ms, |newest| newest + TIERS[tier].resolution_ms);
            Ok(())
        });
        self.connection.execute_batch("COMMIT")?;
        read.map(|()| from_ms)
    }

    /// Adds the rows of the devices and of the host to the grid in chronological order.
    fn add_rows(
        &self,
        grid: &mut Grid,
        tier: usize,
        from_ms: u64,
        devices: &HashMap<i64, Device>,
    ) -> Result<(), DatabaseError> {
        let wanted = grid.selection().clone();
        let to_ms = grid.to_ms();
        let bounds = params![from_ms as i64, to_ms as i64];
        let (of_gpus, of_mig) = (
            self.select_columns(Subject::Gpu, tier, wanted.metrics_for(DeviceKind::Gpu))?,
            self.select_columns(Subject::Gpu, tier, wanted.metrics_for(DeviceKind::Mig))?,
        );
        let of_host =
            self.select_columns(Subject::Host, tier, wanted.metrics_for(DeviceKind::Host))?;
        let has_devices = of_gpus.width + of_mig.width > 0;
        let (gpu, host) = (
            Subject::Gpu.table_name(tier),
            Subject::Host.table_name(tier),
        );
        let mut hosts = self.connection.prepare(&format!(
            "SELECT at_ms, samples{} FROM {host} WHERE at_ms >= ?1 AND at_ms <= ?2 ORDER BY at_ms",
            of_host.sql
        ))?;
        let mut hosts = hosts.query(bounds)?;
        let mut rows = self.connection.prepare(&format!(
            "SELECT at_ms, device, samples{}{} FROM {gpu} WHERE at_ms >= ?1 AND at_ms <= ?2 ORDER \
             BY at_ms",
            of_gpus.sql, of_mig.sql
        ))?;
        let mut rows = rows.query(bounds)?;
        let mut row = if has_devices { rows.next()? } else { None };
        while let Some(host) = hosts.next()? {
            let at_ms = host.get::<_, i64>(0)?;
            while let Some(known) = row {
                if known.get::<_, i64>(0)? > at_ms {
                    break;
                }
                if let Some(device) = devices.get(&known.get(1)?) {
                    let (selected, first) = match device.parent {
                        None => (&of_gpus, 3),
                        Some(_) => (&of_mig, 3 + of_gpus.width),
                    };
                    let stats = selected
                        .columns
                        .iter()
                        .map(|(column, ranged)| read_stat(known, first + column, *ranged).ok()?);
                    let owner = (device.kind(), &*device.uuid);
                    grid.add_values(owner, at_ms as u64, known.get(2)?, stats);
                }
                row = rows.next()?;
            }
            let stats = of_host
                .columns
                .iter()
                .map(|(column, ranged)| read_stat(host, 2 + column, *ranged).ok()?);
            grid.add_values((DeviceKind::Host, ""), at_ms as u64, host.get(1)?, stats);
        }
        Ok(())
    }

    /// Returns the columns of `metrics` for a query. Columns that an older database lacks are read
    /// as NULL.
    fn select_columns(
        &self,
        subject: Subject,
        tier: usize,
        metrics: &[&Metric],
    ) -> Result<SelectedColumns, DatabaseError> {
        let known = read_columns(&self.connection, &subject.table_name(tier))?;
        let mut selected = SelectedColumns::default();
        for metric in metrics {
            let columns = column_names(metric.field, metric.kind);
            selected
                .columns
                .push((selected.width, metric.kind == Kind::Gauge));
            selected.width += columns.len();
            for column in columns {
                selected.sql += ", ";
                selected.sql += if known.contains(&column) {
                    &column
                } else {
                    "NULL"
                };
            }
        }
        Ok(selected)
    }

    /// Returns a span from the database alone, without samples in memory.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn read_span(&self, request: &SpanRequest) -> Result<HistorySpan, DatabaseError> {
        let tiers: Vec<_> = self
            .list_tiers()?
            .into_iter()
            .map(|(_, tier)| tier)
            .collect();
        let plan = Plan::new(request, &tiers);
        let mut grid = plan.new_grid(&request.wanted);
        let mut stored = StoredSpan::default();
        stored.read(self, &plan, tiers.get(plan.tier), &mut grid)?;
        let storage = Storage {
            on_disk: true,
            problem: None,
            reach_ms: REACH_MS,
        };
        Ok(stored.into_span(&plan, grid, storage, |_| None))
    }

    /// Returns all devices ever seen, by their row IDs.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn read_devices(&self) -> Result<HashMap<i64, Device>, DatabaseError> {
        let mut statement = self
            .connection
            .prepare("SELECT id, uuid, device_index, name, parent FROM device")?;
        let devices = statement.query_map([], |row| {
            let device = Device {
                uuid: row.get(1)?,
                index: row.get(2)?,
                name: row.get(3)?,
                parent: row.get(4)?,
            };
            Ok((row.get(0)?, device))
        })?;
        Ok(devices.collect::<Result<_, _>>()?)
    }

    /// Returns at most `most` events of a span, the oldest first. If the span has more, other
    /// events take precedence over process events, and newer events over older ones.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn read_events(
        &self,
        from_ms: u64,
        to_ms: u64,
        most: usize,
    ) -> Result<Vec<Event>, DatabaseError> {
        let mut events = Vec::new();
        for kinds in [
            format!("NOT ({IS_PROCESS_EVENT})"),
            IS_PROCESS_EVENT.to_owned(),
        ] {
            let mut statement = self.connection.prepare(&events_sql(&kinds))?;
            let bounds = params![from_ms as i64, to_ms as i64, (most - events.len()) as i64];
            let found = statement.query_map(bounds, |row| row.get::<_, String>(0))?;
            let found = found.filter_map(|json| json.map(|json| parse_json(&json)).transpose());
            events.extend(found.collect::<Result<Vec<Event>, _>>()?);
        }
        events.sort_by_key(|event| event.at_ms);
        Ok(events)
    }

    /// Returns at most [`crate::jobs::MAX_JOBS`] jobs with their devices, the most
    /// recently seen first. If `called` is set, returns only the jobs with this ID or name.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn read_jobs(&self, called: Option<&str>) -> Result<Vec<JobSpan>, DatabaseError> {
        // A file from an earlier version has no `job` table, and opening it for reading does not
        // add the table.
        if read_columns(&self.connection, "job")?.is_empty() {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare(
            "SELECT kind, id, name, user, uuid, from_ms, to_ms FROM job ORDER BY to_ms DESC",
        )?;
        let mut rows = statement.query([])?;
        let mut spans = Vec::new();
        while spans.len() < MAX_JOBS
            && let Some(row) = rows.next()?
        {
            // Newer versions may have stored other kinds of jobs, which are skipped.
            let Some((kind, private)) = parse_job_kind(&row.get::<_, String>(0)?) else {
                continue;
            };
            let (from_ms, to_ms) = (row.get::<_, i64>(5)? as u64, row.get::<_, i64>(6)? as u64);
            let (id, name, user, uuid) = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
            let span = JobSpan {
                kind,
                id,
                name,
                user,
                uuid,
                from_ms,
                to_ms,
                private,
            };
            if called.is_none_or(|text| span.matches_id_or_name(text)) {
                spans.push(span);
            }
        }
        Ok(spans)
    }

    /// Returns the conditions of a span, ordered by start time.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn read_conditions(
        &self,
        from_ms: u64,
        to_ms: u64,
    ) -> Result<Vec<ConditionSpan>, DatabaseError> {
        let mut statement = self.connection.prepare(SELECT_CONDITIONS)?;
        let mut rows = statement.query(params![from_ms as i64, to_ms as i64, MAX_EVENTS as i64])?;
        let mut spans = Vec::new();
        while let Some(row) = rows.next()? {
            if let Some(condition) = parse_json(&row.get::<_, String>(3)?) {
                let (from_ms, to_ms) =
                    (row.get::<_, i64>(1)? as u64, row.get::<_, Option<i64>>(2)?);
                spans.push(ConditionSpan {
                    uuid: row.get(0)?,
                    from_ms,
                    to_ms: to_ms.map(|end| end as u64),
                    condition,
                });
            }
        }
        spans.reverse();
        Ok(spans)
    }
}

/// The stored devices, events and conditions of a span.
#[derive(Debug, Default)]
pub struct StoredSpan {
    /// The end of the newest row.
    pub end_ms: u64,
    devices: Vec<Device>,
    events: Vec<Event>,
    conditions: Vec<ConditionSpan>,
}

impl StoredSpan {
    /// Reads the events, conditions and devices of a span. Also adds its points to the grid, unless
    /// the plan takes them from samples in memory. Data that was read before an error is kept.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn read(
        &mut self,
        database: &Database,
        plan: &Plan,
        tier: Option<&Tier>,
        grid: &mut Grid,
    ) -> Result<(), DatabaseError> {
        self.events = database.read_events(plan.from_ms, plan.to_ms, MAX_EVENTS)?;
        self.conditions = database.read_conditions(plan.from_ms, plan.to_ms)?;
        let stored = tier.filter(|tier| !tier.is_sampled).and_then(|tier| {
            TIERS
                .iter()
                .position(|stored| stored.resolution_ms == tier.resolution_ms)
        });
        if let Some(stored) = stored {
            self.end_ms = database.add_to_grid(grid, stored)?;
            self.devices = database.read_devices()?.into_values().collect();
        }
        Ok(())
    }

    /// Converts the stored data and the points of `grid` to a span. `known` looks up a device in
    /// memory by its UUID.
    pub fn into_span<'a>(
        self,
        plan: &Plan,
        grid: Grid,
        storage: Storage,
        known: impl Fn(&str) -> Option<&'a Device>,
    ) -> HistorySpan {
        let device = |uuid: &str| {
            let stored = || self.devices.iter().find(|device| device.uuid == uuid);
            known(uuid).or_else(stored).cloned().unwrap_or_default()
        };
        HistorySpan {
            from_ms: plan.from_ms,
            oldest_ms: plan.oldest_ms,
            storage,
            events: self.events,
            conditions: self.conditions,
            ..grid.into_span(plan.resolution_ms, device)
        }
    }
}

/// Returns the query for the newest events that satisfy the SQL condition `kinds`. An index
/// provides the order, so SQLite reads only the JSON of the returned events.
fn events_sql(kinds: &str) -> String {
    format!(
        "SELECT json FROM event WHERE at_ms >= ?1 AND at_ms <= ?2 AND {kinds} ORDER BY at_ms DESC \
         LIMIT ?3"
    )
}

/// The query for the newest conditions of a span. It selects open conditions separately from
/// conditions that ended after the span's start, so that SQLite can use an index for both.
const SELECT_CONDITIONS: &str = "
    SELECT uuid, from_ms, to_ms, json FROM condition WHERE rowid IN (
        SELECT rowid FROM (
            SELECT rowid, from_ms FROM condition WHERE to_ms IS NULL AND from_ms <= ?2
            UNION ALL SELECT rowid, from_ms FROM condition WHERE to_ms >= ?1 AND from_ms <= ?2
        ) ORDER BY from_ms DESC LIMIT ?3
    ) ORDER BY from_ms DESC";

/// Columns that are added to a `SELECT` statement.
#[derive(Debug, Default)]
struct SelectedColumns {
    sql: String,
    /// For each field, the offset of its first column, and whether it has a minimum and maximum.
    columns: Vec<(usize, bool)>,
    width: usize,
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, EventKind, ProcessRef, Reading};

    use super::*;

    fn make_event(at_ms: u64) -> Event {
        let unknown = || Reading::Absent(Absence::Unknown);
        let started = ProcessRef {
            pid: 1,
            name: unknown(),
            program: None,
            user: unknown(),
            started_ms: Reading::Absent(Absence::Unknown),
        };
        // Only one event in a hundred is not about a process.
        let what = if at_ms.is_multiple_of(100) {
            EventKind::MigChanged
        } else {
            EventKind::ProcessStarted(started)
        };
        Event {
            at_ms,
            gpu: None,
            what,
        }
    }

    #[test]
    fn process_events_are_dropped_before_other_events() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path()).unwrap();
        database.import_events((1..=5000).map(make_event)).unwrap();
        let times = |from_ms, to_ms, most| -> Vec<_> {
            database
                .read_events(from_ms, to_ms, most)
                .unwrap()
                .iter()
                .map(|event| event.at_ms)
                .collect()
        };
        assert_eq!(
            times(0, u64::MAX >> 1, 52),
            [
                (1..=49).map(|at| at * 100).collect(),
                vec![4998, 4999, 5000]
            ]
            .concat()
        );
        assert_eq!(times(150, 301, 3), [200, 300, 301]);
        assert_eq!(times(0, 5000, 2), [4900, 5000]);

        let plan = |sql: &str| {
            let mut statement = database
                .connection
                .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
                .unwrap();
            let lines = statement
                .query_map([0, 1, 2], |row| row.get::<_, String>(3))
                .unwrap();
            lines.map(|line| line.unwrap() + "\n").collect::<String>()
        };
        for (kinds, index) in [
            (format!("NOT ({IS_PROCESS_EVENT})"), "event_important"),
            (IS_PROCESS_EVENT.to_owned(), "event_time"),
        ] {
            let plan = plan(&events_sql(&kinds));
            assert!(
                plan.contains(&format!("USING INDEX {index}")) && !plan.contains("TEMP B-TREE"),
                "{plan}"
            );
        }
        let plan = plan(SELECT_CONDITIONS);
        assert_eq!(
            plan.matches("USING COVERING INDEX condition_end").count(),
            2,
            "{plan}"
        );
    }
}
