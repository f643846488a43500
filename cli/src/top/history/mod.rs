//! The past of every charted number: five minutes as they came, an hour thinned, and what a server remembers before.

mod series;

use std::collections::BTreeMap;

use gpumon_history::span::HistorySpan;
use gpumon_probe::model::{HostSample, Sample};
use gpumon_server::frame;

use self::series::Series;
use super::metrics::{HOST_METRICS, METRICS};

/// How far back it reaches as it came.
pub(super) const FINE_MS: u64 = 5 * 60 * 1000;
/// A faster stream leaves one row per this time: a chart has no column for more.
const SPACING_MS: u64 = 240;
/// How far back it reaches without a server.
pub(super) const DEPTH_MS: u64 = 60 * 60 * 1000;
/// A row of the thinned past is the mean over this time.
const BUCKET_MS: u64 = 10_000;

/// How far apart neighbors lie that an earlier server has left: means of ten seconds, each in their middle.
const MEANS_REACH_MS: u64 = BUCKET_MS * 3 / 2;

/// What a line without an axis is of.
pub(super) const MINUTE_MS: u64 = 60_000;

/// More than any machine has: a recording can say anything, and there is a column for every GPU up to the last.
const MOST_GPUS: u32 = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// A GPU, and the metric's place in `METRICS`.
    Gpu(u32, usize),
    /// The metric's place in `HOST_METRICS`.
    Host(usize),
    /// One of the numbers of [`History::push_own`].
    Own(usize),
}

/// A stretch of time, cut into as many columns as there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) end_ms: u64,
    pub(super) span_ms: u64,
    pub(super) columns: usize,
}

/// Rows of numbers over time, in three tiers.
#[derive(Debug, Default, Clone)]
pub(super) struct History {
    fine: Series,
    coarse: Series,
    /// What a server told of the time before, and the time of its rows.
    past: Series,
    past_reach_ms: u64,
    /// The newest bucket that is not yet in `coarse`.
    bucket: Option<u64>,
}

impl Line {
    fn column(self) -> usize {
        match self {
            Self::Host(metric) | Self::Own(metric) => metric,
            Self::Gpu(index, metric) => {
                HOST_METRICS.len() + index as usize * METRICS.len() + metric
            }
        }
    }
}

impl Window {
    /// The time of one column. Edges lie at whole multiples of it, so that a line moves by whole columns and never
    /// changes its shape.
    fn step_ms(self) -> u64 {
        (self.span_ms / self.columns.max(1) as u64).max(1)
    }

    fn aligned_end(self) -> u64 {
        self.end_ms
            .div_ceil(self.step_ms())
            .saturating_mul(self.step_ms())
    }
}

impl History {
    pub(super) fn push(&mut self, sample: &Sample) {
        if self
            .fine
            .newest()
            .is_some_and(|newest| sample.at_ms < newest)
        {
            // A clock that was set back makes some of the past a future.
            self.fine.drop_after(sample.at_ms);
            self.coarse.drop_after(sample.at_ms);
            self.past.drop_after(sample.at_ms);
            self.bucket = None;
        }
        if self
            .fine
            .newest()
            .is_some_and(|newest| sample.at_ms - newest < SPACING_MS)
        {
            return;
        }
        let mut row = Row::new(sample.at_ms, sample.interval_ms);
        row.host(&sample.host);
        for gpu in sample.gpus.iter().filter(|gpu| gpu.index < MOST_GPUS) {
            // What a hung GPU shows is its past, which is here already.
            if gpu.at_ms.saturating_add(2 * u64::from(sample.interval_ms)) < sample.at_ms {
                continue;
            }
            for (metric, known) in METRICS.iter().enumerate() {
                row.set(Line::Gpu(gpu.index, metric), known.access.value(gpu));
            }
        }
        self.add(&row);
    }

    /// Adds numbers that are not of a sample, to a history that has no others.
    pub(super) fn push_own(&mut self, at_ms: u64, interval_ms: u32, values: &[Option<f64>]) {
        if self.fine.newest().is_some_and(|newest| at_ms < newest) {
            *self = Self::default();
        }
        let mut row = Row::new(at_ms, interval_ms);
        for (place, value) in values.iter().enumerate() {
            row.set(Line::Own(place), *value);
        }
        self.add(&row);
    }

    /// Adds what a server remembers and this does not: moments, and values of moments that are here. `index_of` tells a
    /// GPU's index by its UUID.
    pub(super) fn extend(
        &mut self,
        past: &frame::History,
        interval_ms: u32,
        index_of: impl Fn(&str) -> Option<u32>,
    ) {
        let columns: Vec<(Line, &[Option<f32>])> = past
            .gpus
            .iter()
            .filter_map(|gpu| Some((index_of(&gpu.uuid)?, gpu)))
            .flat_map(|(index, gpu)| {
                METRICS
                    .iter()
                    .enumerate()
                    .filter_map(move |(place, metric)| {
                        Some((
                            Line::Gpu(index, place),
                            gpu.metrics.get(metric.id)?.as_slice(),
                        ))
                    })
            })
            .collect();
        let host = HOST_METRICS.iter().enumerate();
        let host = host.filter_map(|(place, metric)| {
            Some((Line::Host(place), past.host.get(metric.id)?.as_slice()))
        });
        let columns: Vec<_> = columns.into_iter().chain(host).collect();
        let mut rows: BTreeMap<u64, Row> = self.fine.rows().map(|row| (row.at_ms, row)).collect();
        let Some(newest) = rows.keys().chain(&past.times_ms).max().copied() else {
            return;
        };
        let oldest = newest.saturating_sub(FINE_MS);
        for (place, at_ms) in past
            .times_ms
            .iter()
            .enumerate()
            .filter(|(_, at_ms)| **at_ms >= oldest)
        {
            let row = rows
                .entry(*at_ms)
                .or_insert_with(|| Row::new(*at_ms, interval_ms));
            // Means lie further apart, the last one from the first sample, too.
            if past.means > 0 && place <= past.means {
                row.reach_ms = row.reach_ms.max(MEANS_REACH_MS);
            }
            for (line, values) in &columns {
                if let Some(value) = values.get(place).copied().flatten() {
                    row.set(*line, Some(value.into()));
                }
            }
        }
        self.coarse
            .drop_after(rows.keys().next().copied().unwrap_or(0));
        (self.fine, self.bucket) = (Series::default(), None);
        for row in rows.values() {
            self.add(row);
        }
    }

    /// Takes in what a server remembers of the time before what is here, in the place of what it told before.
    pub(super) fn set_past(&mut self, span: &HistorySpan, index_of: impl Fn(&str) -> Option<u32>) {
        let of_gpus = span
            .gpus
            .iter()
            .filter_map(|gpu| Some((index_of(&gpu.uuid)?, gpu)))
            .flat_map(|(index, gpu)| {
                METRICS
                    .iter()
                    .enumerate()
                    .filter_map(move |(place, metric)| {
                        Some((
                            Line::Gpu(index, place),
                            gpu.metrics.get(metric.id)?.values.as_slice(),
                        ))
                    })
            });
        let of_host = HOST_METRICS.iter().enumerate();
        let of_host = of_host.filter_map(|(place, metric)| {
            Some((
                Line::Host(place),
                span.host.get(metric.id)?.values.as_slice(),
            ))
        });
        let columns: Vec<(Line, &[Option<f64>])> = of_gpus.chain(of_host).collect();
        let step_ms = u32::try_from(span.resolution_ms).unwrap_or(u32::MAX);
        self.past = Series::default();
        for (place, begin_ms) in span.times_ms.iter().enumerate() {
            // A row stands in the middle of its time, as far as that is known.
            let end_ms = begin_ms
                .saturating_add(span.resolution_ms)
                .min(span.to_ms)
                .max(*begin_ms);
            let mut row = Row::new(
                u64::midpoint((*begin_ms).max(span.oldest_ms).min(end_ms), end_ms),
                step_ms,
            );
            for (line, values) in &columns {
                row.set(*line, values.get(place).copied().flatten());
            }
            self.past_reach_ms = row.reach_ms;
            self.past.push(row.at_ms, row.reach_ms, &row.values);
        }
    }

    /// The values of a line, one per column of the window; `None` where nothing was read.
    pub(super) fn values(&self, line: Line, window: Window) -> Vec<Option<f64>> {
        let (end, step) = (window.aligned_end(), window.step_ms());
        let begin = end.saturating_sub(step.saturating_mul(window.columns as u64));
        let mut drawn = vec![Mean::default(); window.columns];
        let fine_from = self.fine.oldest().unwrap_or(u64::MAX);
        let coarse_from = self.coarse.oldest().unwrap_or(u64::MAX).min(fine_from);
        let column = line.column();
        let oldest = self.past.points(column, begin, coarse_from);
        let older = self.coarse.points(column, begin, fine_from);
        let newer = self.fine.points(column, begin, u64::MAX);
        let mut before: Option<(u64, f32)> = None;
        for (at_ms, own_reach_ms, value) in oldest.chain(older).chain(newer) {
            // Rows of a server lie further apart, the last one of them from the first of these, too.
            let from_past = before.is_some_and(|(before_ms, _)| before_ms < coarse_from);
            let reach_ms = if from_past {
                own_reach_ms.max(self.past_reach_ms)
            } else {
                own_reach_ms
            };
            let Some(value) = value else {
                before = None;
                continue;
            };
            let place =
                |at_ms: u64| (at_ms.saturating_sub(begin.saturating_add(1)) / step) as usize;
            if let Some((before_ms, from)) =
                before.filter(|(before_ms, _)| at_ms.saturating_sub(*before_ms) <= reach_ms)
            {
                // Columns between two neighboring samples lie on the line from one to the other.
                let (left, right) = (place(before_ms), place(at_ms));
                for between in left + 1..right.min(drawn.len()) {
                    let share = (between - left) as f64 / (right - left) as f64;
                    drawn[between]
                        .add(f64::from(from) + (f64::from(value) - f64::from(from)) * share);
                }
            }
            if let Some(mean) = drawn.get_mut(place(at_ms)).filter(|_| at_ms > begin) {
                mean.add(f64::from(value));
            }
            before = Some((at_ms, value));
        }
        drawn.into_iter().map(Mean::value).collect()
    }

    fn add(&mut self, row: &Row) {
        let bucket = row.at_ms / BUCKET_MS;
        if let Some(full) = self.bucket.filter(|full| *full != bucket) {
            let end_ms = (full + 1).saturating_mul(BUCKET_MS);
            let means = self.fine.means(full * BUCKET_MS, end_ms);
            if self.coarse.newest().is_none_or(|newest| newest < end_ms) {
                self.coarse
                    .push(end_ms, row.reach_ms.max(BUCKET_MS * 5 / 2), &means);
            }
        }
        self.bucket = Some(bucket);
        self.fine.push(row.at_ms, row.reach_ms, &row.values);
        self.fine.drop_before(row.at_ms.saturating_sub(FINE_MS));
        self.coarse.drop_before(row.at_ms.saturating_sub(DEPTH_MS));
    }
}

/// What was read at one moment, by column; NaN where it was not.
pub(super) struct Row {
    at_ms: u64,
    /// How far the sample before may lie back for the two to be neighbors.
    reach_ms: u64,
    values: Vec<f32>,
}

impl Row {
    fn new(at_ms: u64, interval_ms: u32) -> Self {
        Self {
            at_ms,
            reach_ms: u64::from(interval_ms.max(1000)) * 5 / 2,
            values: Vec::new(),
        }
    }

    fn set(&mut self, line: Line, value: Option<f64>) {
        let column = line.column();
        if self.values.len() <= column {
            self.values.resize(column + 1, f32::NAN);
        }
        self.values[column] = value.map_or(f32::NAN, |value| value as f32);
    }

    fn host(&mut self, host: &HostSample) {
        for (place, metric) in HOST_METRICS.iter().enumerate() {
            self.set(Line::Host(place), metric.access.value(host));
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

#[cfg(test)]
mod tests;
