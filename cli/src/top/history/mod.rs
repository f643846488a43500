//! The history of every charted value. It has full resolution for five minutes and reduced
//! resolution for one hour; earlier values come from a server.

use std::{collections::BTreeMap, iter};

use gpumon_history::{
    span::HistorySpan,
    timeline::{TimePoint, Timeline},
};
use gpumon_probe::{
    model::{Sample, fields::Kind},
    stat,
};
use gpumon_server::frame;

use super::metrics::{HOST_METRICS, METRICS};

/// The length of the history with full resolution, in milliseconds.
pub(super) const FULL_RESOLUTION_MS: u64 = 5 * 60 * 1000;
/// The minimum time between two rows, in milliseconds. If samples arrive more often, charts cannot
/// show all of them.
const SPACING_MS: u64 = 240;
/// The length of the history without a server, in milliseconds.
pub(super) const DEPTH_MS: u64 = 60 * 60 * 1000;
/// The time over which values are averaged into one row of reduced resolution, in milliseconds.
const BUCKET_MS: u64 = 10_000;

/// The maximum time between two neighboring means that a line connects, in milliseconds. Each mean
/// covers ten seconds and is placed at the middle of this period. A server sends means for the time
/// before its last restart.
const MAX_MEAN_DISTANCE_MS: u64 = BUCKET_MS * 3 / 2;

/// The time range of a sparkline, in milliseconds.
pub(super) const MINUTE_MS: u64 = 60_000;

/// GPUs with this index or a higher one are not recorded in the history. Real machines have fewer
/// GPUs, but a recording can contain any index.
const MAX_GPUS: u32 = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ChartLine {
    /// A GPU metric, given by the index of the GPU and the position in `METRICS`.
    Gpu(u32, usize),
    /// A host metric, given by its position in `HOST_METRICS`.
    Host(usize),
    /// A value that does not come from a sample, given by its position.
    Own(usize),
}

/// A time range, divided into the columns of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) end_ms: u64,
    pub(super) span_ms: u64,
    pub(super) columns: usize,
}

/// Rows of values over time: in full resolution, in reduced resolution, and from a server.
#[derive(Debug, Default, Clone)]
pub(super) struct History {
    fine: Timeline<ChartLine>,
    coarse: Timeline<ChartLine>,
    /// The rows from a server, for earlier times. The field below is the longest time between two
    /// of these rows that does not count as a gap, in milliseconds.
    past: Timeline<ChartLine>,
    past_reach_ms: u64,
    /// The number of the newest time bucket. The means of its values are not yet included in
    /// `coarse`.
    bucket: Option<u64>,
}

impl Window {
    /// Returns the time that one column covers. The edges of columns are multiples of this time, so
    /// that a line moves by whole columns and does not change its shape.
    fn column_duration_ms(self) -> u64 {
        (self.span_ms / self.columns.max(1) as u64).max(1)
    }

    fn aligned_end(self) -> u64 {
        self.end_ms
            .div_ceil(self.column_duration_ms())
            .saturating_mul(self.column_duration_ms())
    }
}

impl History {
    pub(super) fn push(&mut self, sample: &Sample) {
        let at_ms = sample.at_ms;
        if self.fine.newest_ms().is_some_and(|newest| at_ms < newest) {
            // If the clock was set back, rows after the current time are in the future and are
            // removed.
            self.fine.drop_after(at_ms);
            self.coarse.drop_after(at_ms);
            self.past.drop_after(at_ms);
            self.bucket = None;
        }
        let newest_ms = self.fine.newest_ms();
        if newest_ms.is_some_and(|newest| at_ms - newest < SPACING_MS) {
            return;
        }
        let host = HOST_METRICS.iter().enumerate();
        let host =
            host.map(|(place, metric)| (ChartLine::Host(place), metric.access.value(&sample.host)));
        let gpus = sample.gpus.iter().filter(|gpu| {
            // The values of a hung GPU are old. They are already in the history, so they are not
            // added again.
            let reach_ms = 2 * u64::from(sample.interval_ms);
            gpu.index < MAX_GPUS && gpu.at_ms.saturating_add(reach_ms) >= at_ms
        });
        let gpus = gpus.flat_map(|gpu| {
            let metrics = METRICS.iter().enumerate();
            metrics
                .map(|(place, metric)| (ChartLine::Gpu(gpu.index, place), metric.access.value(gpu)))
        });
        self.add_row(make_moment(at_ms, sample.interval_ms), host.chain(gpus));
    }

    /// Adds values that do not come from a sample. A history with such values must not contain
    /// values from samples.
    pub(super) fn push_values(&mut self, at_ms: u64, interval_ms: u32, values: &[Option<f64>]) {
        if self.fine.newest_ms().is_some_and(|newest| at_ms < newest) {
            *self = Self::default();
        }
        let values = values.iter().enumerate();
        let values = values.map(|(place, value)| (ChartLine::Own(place), *value));
        self.add_row(make_moment(at_ms, interval_ms), values);
    }

    /// Adds the values from a server's history that are missing in this history. `index_of` returns
    /// the index of the GPU with a UUID.
    pub(super) fn add_server_history(
        &mut self,
        past: &frame::History,
        interval_ms: u32,
        index_of: impl Fn(&str) -> Option<u32>,
    ) {
        let gpus = past.gpus.iter().map(|gpu| (&*gpu.uuid, &gpu.metrics));
        let lines = list_lines(gpus, &past.host, index_of);
        let known = self.fine.time_points().iter();
        let mut moments: BTreeMap<u64, TimePoint> =
            known.map(|known| (known.at_ms, *known)).collect();
        let Some(newest) = moments.keys().chain(&past.times_ms).max().copied() else {
            return;
        };
        let oldest = newest.saturating_sub(FULL_RESOLUTION_MS);
        let times = past.times_ms.iter().copied().enumerate();
        for (place, at_ms) in times.clone().filter(|(_, at_ms)| *at_ms >= oldest) {
            let moment = moments
                .entry(at_ms)
                .or_insert_with(|| make_moment(at_ms, interval_ms));
            // Means are farther apart than samples. The time between two means, or between the last
            // mean and the first sample, is not a gap, so a longer time is allowed here.
            if past.means > 0 && place <= past.means {
                moment.reach_ms = moment.reach_ms.max(MAX_MEAN_DISTANCE_MS);
            }
        }
        let mut fine = Timeline::default();
        for moment in moments.values() {
            fine.push(*moment);
        }
        for (line, _) in self.fine.columns(..) {
            for (moment, value) in self.fine.column_points(line, 0) {
                let place = fine.find_position(moment.at_ms);
                set_value(&mut fine, *line, place, value);
            }
        }
        for (line, values) in lines {
            for ((_, at_ms), value) in times.clone().zip(values) {
                if at_ms >= oldest {
                    let place = fine.find_position(at_ms);
                    set_value(&mut fine, line, place, value.map(f64::from));
                }
            }
        }
        self.coarse.drop_after(fine.oldest_ms().unwrap_or(0));
        (self.fine, self.bucket) = (fine, None);
        for moment in moments.values() {
            self.add_means(*moment);
        }
        self.drop_old(newest);
    }

    /// Replaces the rows from a server, which cover the times before this history starts.
    pub(super) fn set_server_rows(
        &mut self,
        span: &HistorySpan,
        index_of: impl Fn(&str) -> Option<u32>,
    ) {
        self.past = Timeline::default();
        let step_ms = u32::try_from(span.resolution_ms).unwrap_or(u32::MAX);
        for begin_ms in &span.times_ms {
            // A row is placed at the middle of the time for which it has data.
            let end_ms = begin_ms
                .saturating_add(span.resolution_ms)
                .min(span.to_ms)
                .max(*begin_ms);
            let middle_ms = u64::midpoint((*begin_ms).max(span.oldest_ms).min(end_ms), end_ms);
            let moment = make_moment(middle_ms, step_ms);
            self.past_reach_ms = moment.reach_ms;
            self.past.push(moment);
        }
        let gpus = span.gpus.iter().map(|gpu| (&*gpu.uuid, &gpu.metrics));
        for (line, series) in list_lines(gpus, &span.host, index_of) {
            let column = self.past.column_or_new(line, Kind::Gauge);
            let values = iter::zip(0..span.times_ms.len(), &series.values);
            for (place, value) in values.filter_map(|(place, value)| Some((place, (*value)?))) {
                column.set(place, value);
            }
        }
    }

    /// Returns the values of a line, one per column of the window. Columns without readings are
    /// `None`.
    pub(super) fn read_line_values(&self, line: ChartLine, window: Window) -> Vec<Option<f64>> {
        let (end, step) = (window.aligned_end(), window.column_duration_ms());
        let begin = end.saturating_sub(step.saturating_mul(window.columns as u64));
        let mut drawn = vec![stat::Window::default(); window.columns];
        let fine_from = self.fine.oldest_ms().unwrap_or(u64::MAX);
        let coarse_from = self.coarse.oldest_ms().unwrap_or(u64::MAX).min(fine_from);
        let oldest = list_points_between(&self.past, line, begin, coarse_from);
        let older = list_points_between(&self.coarse, line, begin, fine_from);
        let newer = list_points_between(&self.fine, line, begin, u64::MAX);
        let mut before: Option<(u64, f64)> = None;
        for (moment, value) in oldest.chain(older).chain(newer) {
            let at_ms = moment.at_ms;
            // Rows from a server are farther apart than other rows. The time between two of them,
            // or between the last of them and the first row of this history, is not a gap, so a
            // longer time is allowed here.
            let from_past = before.is_some_and(|(before_ms, _)| before_ms < coarse_from);
            let reach_ms = if from_past {
                moment.reach_ms.max(self.past_reach_ms)
            } else {
                moment.reach_ms
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
                // The values of the columns between two neighboring samples are interpolated.
                let (left, right) = (place(before_ms), place(at_ms));
                for between in left + 1..right.min(drawn.len()) {
                    let share = (between - left) as f64 / (right - left) as f64;
                    drawn[between].add(from + (value - from) * share, 1.0);
                }
            }
            if let Some(mean) = drawn.get_mut(place(at_ms)).filter(|_| at_ms > begin) {
                mean.add(value, 1.0);
            }
            before = Some((at_ms, value));
        }
        drawn.iter().map(stat::Window::mean).collect()
    }

    fn add_row(
        &mut self,
        moment: TimePoint,
        values: impl Iterator<Item = (ChartLine, Option<f64>)>,
    ) {
        self.add_means(moment);
        self.fine.push(moment);
        let newest = self.fine.time_points().len() - 1;
        for (line, value) in values {
            set_value(&mut self.fine, line, newest, value);
        }
        self.drop_old(moment.at_ms);
    }

    /// If `moment` is the first row after a bucket, adds the means of that bucket to the rows of
    /// reduced resolution.
    fn add_means(&mut self, moment: TimePoint) {
        let bucket = moment.at_ms / BUCKET_MS;
        let before = self.bucket.replace(bucket);
        let Some(full) = before.filter(|full| *full != bucket) else {
            return;
        };
        let end_ms = (full + 1).saturating_mul(BUCKET_MS);
        if self
            .coarse
            .newest_ms()
            .is_some_and(|newest| newest >= end_ms)
        {
            return;
        }
        self.coarse.push(TimePoint {
            at_ms: end_ms,
            reach_ms: moment.reach_ms.max(BUCKET_MS * 5 / 2),
        });
        let places = [full * BUCKET_MS, end_ms].map(|at_ms| self.fine.find_position(at_ms));
        let newest = self.coarse.time_points().len() - 1;
        for (line, column) in self.fine.columns(..) {
            let mut mean = stat::Window::default();
            let values = column.values(places[0]).take(places[1] - places[0]);
            values.flatten().for_each(|value| mean.add(value, 1.0));
            set_value(&mut self.coarse, *line, newest, mean.mean());
        }
    }

    fn drop_old(&mut self, newest_ms: u64) {
        self.fine
            .drop_before(newest_ms.saturating_sub(FULL_RESOLUTION_MS));
        self.coarse.drop_before(newest_ms.saturating_sub(DEPTH_MS));
    }
}

fn make_moment(at_ms: u64, interval_ms: u32) -> TimePoint {
    TimePoint {
        at_ms,
        reach_ms: u64::from(interval_ms.max(1000)) * 5 / 2,
    }
}

fn set_value(
    timeline: &mut Timeline<ChartLine>,
    line: ChartLine,
    place: usize,
    value: Option<f64>,
) {
    if let Some(value) = value {
        timeline.column_or_new(line, Kind::Gauge).set(place, value);
    }
}

/// Returns the lines for which a server has sent values, and their values.
fn list_lines<'a, S>(
    gpus: impl Iterator<Item = (&'a str, &'a BTreeMap<String, S>)>,
    host: &'a BTreeMap<String, S>,
    index_of: impl Fn(&str) -> Option<u32>,
) -> Vec<(ChartLine, &'a S)> {
    let gpus = gpus.filter_map(|(uuid, metrics)| Some((index_of(uuid)?, metrics)));
    let gpus = gpus.flat_map(|(index, metrics)| {
        let known = METRICS.iter().enumerate();
        known.filter_map(move |(place, metric)| {
            Some((ChartLine::Gpu(index, place), metrics.get(metric.id)?))
        })
    });
    let known = HOST_METRICS.iter().enumerate();
    let host =
        known.filter_map(|(place, metric)| Some((ChartLine::Host(place), host.get(metric.id)?)));
    gpus.chain(host).collect()
}

/// Returns the points of a line before the time `before`. They start with the last point at or
/// before `begin`, so that the line starts at the chart's left edge.
fn list_points_between(
    timeline: &Timeline<ChartLine>,
    line: ChartLine,
    begin: u64,
    before: u64,
) -> impl Iterator<Item = (TimePoint, Option<f64>)> + '_ {
    let first = timeline
        .find_position(begin.saturating_add(1))
        .saturating_sub(1);
    let points = timeline.column_points(&line, first);
    points.take_while(move |(moment, _)| moment.at_ms < before)
}

#[cfg(test)]
mod tests;
