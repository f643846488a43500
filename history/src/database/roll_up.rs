//! The coarser tiers, each made from the next finer one.

use std::{collections::BTreeMap, ops::RangeInclusive};

use gpumon_probe::stat::{Stat, Window};
use rusqlite::{OptionalExtension, params};

use super::{Database, TIERS, schema::Subject, write::read_row};
use crate::grid::field_stat;

/// The latest time that a row can have.
const LAST_MS: u64 = i64::MAX as u64;

/// All possible times of rows.
pub(super) const ALL: RangeInclusive<u64> = 0..=LAST_MS;

/// The time up to which each coarser tier is complete, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct RolledUp([u64; TIERS.len()]);

impl RolledUp {
    /// Starts at this time: rows that are added later for earlier times are not rolled up.
    pub(crate) fn beginning_at(at_ms: u64) -> Self {
        Self(TIERS.map(|tier| at_ms / tier.resolution_ms * tier.resolution_ms))
    }
}

impl Database {
    /// Returns how far the coarser tiers of the file are complete.
    pub(crate) fn rolled_up(&self) -> Result<RolledUp, rusqlite::Error> {
        let mut until = [0; TIERS.len()];
        for (tier, until) in until.iter_mut().enumerate().skip(1) {
            let resolution_ms = TIERS[tier].resolution_ms;
            let newest = self.edge("max", Subject::Host, tier, ALL)?;
            *until = newest.map_or(0, |newest| newest + resolution_ms);
        }
        Ok(RolledUp(until))
    }

    /// Makes all rows of the coarser tiers whose time has passed at `now_ms`.
    pub(crate) fn roll_up(&self, until: &mut RolledUp, now_ms: u64) -> Result<(), rusqlite::Error> {
        for (tier, until) in until.0.iter_mut().enumerate().skip(1) {
            let resolution_ms = TIERS[tier].resolution_ms;
            // After the clock was set back, the rows since then are made again.
            *until = (*until).min(now_ms / resolution_ms * resolution_ms);
            // The search for the next row skips times in which nothing ran.
            while let Some(next) = self.edge("min", Subject::Host, tier - 1, *until..=LAST_MS)? {
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

    /// Makes the coarse rows that contain `at_ms` again if they exist, because finer rows have been
    /// added.
    pub(crate) fn roll_up_again(
        &self,
        until: &RolledUp,
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
    pub(super) fn edge(
        &self,
        which: &str,
        subject: Subject,
        tier: usize,
        span: RangeInclusive<u64>,
    ) -> Result<Option<u64>, rusqlite::Error> {
        let sql = format!(
            "SELECT {which}(at_ms) FROM {} WHERE at_ms BETWEEN ?1 AND ?2",
            subject.table(tier)
        );
        let bounds = params![*span.start() as i64, *span.end() as i64];
        let edge: Option<i64> = self
            .connection
            .prepare_cached(&sql)?
            .query_row(bounds, |row| row.get(0))?;
        Ok(edge.map(|at_ms| at_ms as u64))
    }

    /// Returns the number of samples in a stored row.
    fn samples(
        &self,
        subject: Subject,
        tier: usize,
        at_ms: u64,
        device: i64,
    ) -> Result<Option<u32>, rusqlite::Error> {
        let (table, key) = (subject.table(tier), subject.device());
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
        let device = subject.device();
        let (columns, metrics) = (subject.columns().concat().join(", "), subject.metrics());
        let table = subject.table(tier - 1);
        let sql = format!(
            "SELECT at_ms, {device}, samples, {columns} FROM {table} WHERE at_ms >= ?1 AND at_ms < ?2 ORDER BY at_ms"
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
            // The finer rows may have been deleted, or the stored row describes an earlier period
            // because the clock was set back.
            if self
                .samples(subject, tier, from_ms, device)?
                .is_some_and(|known| known > samples)
            {
                continue;
            }
            let stats: Vec<Option<Stat>> = totals
                .iter()
                .zip(metrics)
                .map(|(window, metric)| field_stat(window, metric.kind))
                .collect();
            self.put(subject, tier, from_ms, device, samples, &stats)?;
        }
        Ok(())
    }
}
