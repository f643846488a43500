//! Columns of numbers over one time axis.

use std::collections::VecDeque;

use super::Row;

/// One row per moment, one column per line. What was absent is NaN.
#[derive(Debug, Default, Clone)]
pub(super) struct Series {
    times: VecDeque<SampleTime>,
    columns: Vec<VecDeque<f32>>,
}

#[derive(Debug, Clone, Copy)]
struct SampleTime {
    at_ms: u64,
    /// How far the moment before may lie back for a line to join the two.
    reach_ms: u64,
}

impl Series {
    pub(super) fn newest(&self) -> Option<u64> {
        self.times.back().map(|moment| moment.at_ms)
    }

    pub(super) fn oldest(&self) -> Option<u64> {
        self.times.front().map(|moment| moment.at_ms)
    }

    /// Adds a row; one that is longer than those before brings new columns.
    pub(super) fn push(&mut self, at_ms: u64, reach_ms: u64, values: &[f32]) {
        let known = self.times.len();
        self.times.push_back(SampleTime { at_ms, reach_ms });
        while self.columns.len() < values.len() {
            self.columns
                .push(std::iter::repeat_n(f32::NAN, known).collect());
        }
        for (place, column) in self.columns.iter_mut().enumerate() {
            column.push_back(values.get(place).copied().unwrap_or(f32::NAN));
        }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.times.iter().enumerate().map(|(place, moment)| {
            let values = self
                .columns
                .iter()
                .map(|column| column.get(place).copied().unwrap_or(f32::NAN))
                .collect();
            Row {
                at_ms: moment.at_ms,
                reach_ms: moment.reach_ms,
                values,
            }
        })
    }

    pub(super) fn drop_before(&mut self, oldest_ms: u64) {
        let old = self
            .times
            .iter()
            .take_while(|moment| moment.at_ms < oldest_ms)
            .count();
        self.times.drain(..old);
        for column in &mut self.columns {
            column.drain(..old);
        }
    }

    pub(super) fn drop_after(&mut self, newest_ms: u64) {
        let known = self
            .times
            .iter()
            .take_while(|moment| moment.at_ms <= newest_ms)
            .count();
        self.times.truncate(known);
        for column in &mut self.columns {
            column.truncate(known);
        }
    }

    /// The mean of each column over a stretch of time.
    pub(super) fn means(&self, from_ms: u64, to_ms: u64) -> Vec<f32> {
        let begin = self.times.partition_point(|moment| moment.at_ms < from_ms);
        let end = self.times.partition_point(|moment| moment.at_ms < to_ms);
        let mean = |column: &VecDeque<f32>| {
            let (sum, count) = column
                .range(begin..end)
                .filter(|value| !value.is_nan())
                .fold((0.0, 0_u32), |(sum, count), value| {
                    (sum + f64::from(*value), count + 1)
                });
            if count == 0 {
                f32::NAN
            } else {
                (sum / f64::from(count)) as f32
            }
        };
        self.columns.iter().map(mean).collect()
    }

    /// A column's moments from the last one before `begin` on, so that a line can come in from the left, up to `before`.
    pub(super) fn points(
        &self,
        column: usize,
        begin: u64,
        before: u64,
    ) -> impl Iterator<Item = (u64, u64, Option<f32>)> + '_ {
        let first = self
            .times
            .partition_point(|moment| moment.at_ms <= begin)
            .saturating_sub(1);
        let values = self.columns.get(column);
        let moments = self
            .times
            .iter()
            .enumerate()
            .skip(first)
            .take_while(move |(_, moment)| moment.at_ms < before);
        moments.map(move |(place, moment)| {
            let value = values
                .and_then(|values| values.get(place))
                .copied()
                .filter(|value| !value.is_nan());
            (moment.at_ms, moment.reach_ms, value)
        })
    }
}
