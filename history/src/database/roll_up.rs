//! Aggregation of each tier's rows into the next coarser tier.

use std::{collections::BTreeMap, ops::RangeInclusive};

use gpumon_probe::stat::{Stat, Window};
use rusqlite::{OptionalExtension, params};

use super::{Database, TIERS, schema::Subject, write::read_row};
use crate::grid::field_stat;

/// The latest time that a row can have.
const MAX_TIME_MS: u64 = i64::MAX as u64;

/// All possible times of rows.
pub(super) const ALL_TIMES: RangeInclusive<u64> = 0..=MAX_TIME_MS;

/// The time up to which each coarser tier is complete, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct RollUpProgress([u64; TIERS.len()]);

impl RollUpProgress {
    /// Creates a progress at which everything before `at_ms` is complete: rows that are added later
    /// for earlier times are not rolled up.
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
            let newest = self.find_first_or_last_time("max", Subject::Host, tier, ALL_TIMES)?;
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
            // If the clock was set back, the rows from the current time on are created again.
            *until = (*until).min(now_ms / resolution_ms * resolution_ms);
            // The search for the next row skips periods without rows.
            while let Some(next) =
                self.find_first_or_last_time("min", Subject::Host, tier - 1, *until..=MAX_TIME_MS)?
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
    pub(crate) fn roll_up_again(
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
    pub(super) fn find_first_or_last_time(
        &self,
        which: &str,
        subject: Subject,
        tier: usize,
        span: RangeInclusive<u64>,
    ) -> Result<Option<u64>, rusqlite::Error> {
        let sql = format!(
            "SELECT {which}(at_ms) FROM {} WHERE at_ms BETWEEN ?1 AND ?2",
            subject.table_name(tier)
        );
        let bounds = params![*span.start() as i64, *span.end() as i64];
        let edge: Option<i64> = self
            .connection
            .prepare_cached(&sql)?
            .query_row(bounds, |row| row.get(0))?;
        Ok(edge.map(|at_ms| at_ms as u64))
    }

    /// Returns the number of samples in a stored row.
    fn read_sample_count(
        &self,
        subject: Subject,
        tier: usize,
        at_ms: u64,
        device: i64,
    ) -> Result<Option<u32>, rusqlite::Error> {
        let (table, key) = (subject.table_name(tier), subject.device_expression());
        let sql = format!("SELECT samples FROM {table} WHERE at_ms = ?1 AND {key} = ?2");
        let found = self
            .connection
            .prepare_cached(&sql)?
            .query_row(params![at_ms as i64, device], |row| row.get(0));
        found.optional()
    }

    fn roll_up_row(
        &self,
        subject: Subject,
        tier: usize,
        from_ms: u64,
    ) -> Result<(), rusqlite::Error> {
        let device = subject.device_expression();
        let (columns, metrics) = (subject.columns().concat().join(", "), subject.metrics());
        let table = subject.table_name(tier - 1);
        let sql = format!(
            "SELECT at_ms, {device}, samples, {columns} FROM {table} WHERE at_ms >= ?1 AND at_ms \
             < ?2 ORDER BY at_ms"
        );
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
            // A stored row with more samples is kept: the finer rows may have been deleted, or the
            // stored row describes an earlier period because the clock was set back.
            if self
                .read_sample_count(subject, tier, from_ms, device)?
                .is_some_and(|known| known > samples)
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
