//! Two conditions: little memory is free, or memory will soon be full. The second is predicted from
//! the growth of memory in the last half minute.

use std::collections::{HashMap, VecDeque};

use super::rule::{Moment, Observation, ProcessKey, Rule, View, process_key};
use crate::model::{ConditionKind, MemoryGrowth};

/// The period from which growth is computed.
pub(super) const TREND_MS: u64 = 30_000;
/// The minimum period that samples must cover for a forecast.
const MIN_TREND_MS: u64 = 20_000;
/// The most recent period. Growth must not have slowed down in this period.
const RECENT_MS: u64 = 8_000;
/// The minimum period that samples must cover to compute the growth of one process.
const MIN_PROCESS_TREND_MS: u64 = 5_000;
/// If two samples are further apart than this, the trend starts again.
const MAX_GAP_MS: u64 = 5_000;
/// The minimum interval between recorded samples.
const MIN_STEP_MS: u64 = 500;
/// The longest forecast that is reported.
const MAX_FORECAST_MS: f64 = 3_600_000.0;
/// The minimum growth per minute, as a share of the memory. Slower growth is noise.
const MIN_SHARE_PER_MINUTE: f64 = 0.01;
/// A process is named if it causes at least this share of the growth. At most `MAX_NAMED` processes
/// are named.
const MIN_NAMED_SHARE: f64 = 0.05;
const MAX_NAMED: usize = 8;

/// The memory of the GPU and of each process in the last half minute.
#[derive(Default)]
pub(super) struct MemoryFilling {
    /// Memory that is not free.
    taken: Series,
    processes: HashMap<ProcessKey, Series>,
    /// The free memory when the condition started. The condition ends when more memory than this is
    /// free.
    free_at_begin: Option<u64>,
    nearly_full_since: Option<Moment>,
}

impl Rule for MemoryFilling {
    fn observe(&mut self, view: &View<'_>, lasts: bool) -> Observation<ConditionKind> {
        if !lasts {
            self.free_at_begin = None;
        }
        let memory = &view.sample.memory;
        let (Some(&free), Some(&total)) = (
            view.fresh_value(&memory.free_bytes),
            memory.total_bytes.value(),
        ) else {
            return Observation::Unknown;
        };
        // The trend is computed from the memory that is not free. The used memory does not show
        // when unified memory is full, because the rest of the system takes unified memory too.
        self.taken.push(view.now, total.saturating_sub(free));
        self.record_process_memory(view);
        if is_memory_nearly_full(free, total) {
            // The forecast condition lasts until the condition for nearly full memory starts, which
            // happens after a delay.
            let since = *self.nearly_full_since.get_or_insert(view.now);
            return if view.now.ms_since(since) < NEARLY_FULL_AFTER_MS {
                Observation::Inconclusive
            } else {
                Observation::Ended
            };
        }
        self.nearly_full_since = None;
        if self.free_at_begin.is_some_and(|at_begin| free > at_begin) {
            return Observation::Ended;
        }
        let is_growth = |per_ms: &f64| *per_ms * 60_000.0 >= MIN_SHARE_PER_MINUTE * total as f64;
        let Some(per_ms) = self.taken.steady_growth_per_ms().filter(is_growth) else {
            return Observation::Inactive;
        };
        let left_ms = free as f64 / per_ms;
        if left_ms > MAX_FORECAST_MS {
            return Observation::Inactive;
        }
        self.free_at_begin.get_or_insert(free);
        Observation::Active(ConditionKind::MemoryFilling {
            left_ms: left_ms as u64,
            bytes_per_second: to_per_second(per_ms),
            growing: self.list_growing_processes(view, per_ms),
        })
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

impl MemoryFilling {
    fn record_process_memory(&mut self, view: &View<'_>) {
        let Some(processes) = view.fresh_value(&view.sample.processes) else {
            return;
        };
        let mut before = std::mem::take(&mut self.processes);
        for process in processes {
            let Some(&bytes) = view.fresh_value(&process.memory_bytes) else {
                continue;
            };
            let mut series = before.remove(&process_key(process)).unwrap_or_default();
            series.push(view.now, bytes);
            self.processes.insert(process_key(process), series);
        }
    }

    /// Returns the processes that cause the growth, the fastest first.
    fn list_growing_processes(&self, view: &View<'_>, per_ms: f64) -> Vec<MemoryGrowth> {
        let processes = view.fresh_value(&view.sample.processes);
        let growth = processes.into_iter().flatten().filter_map(|process| {
            let own = self.processes.get(&process_key(process))?.growth_per_ms()?;
            Some((process.pid, own)).filter(|_| own >= MIN_NAMED_SHARE * per_ms)
        });
        let mut growing: Vec<(u32, f64)> = growth.collect();
        growing.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let named = growing.into_iter().take(MAX_NAMED);
        named
            .map(|(pid, own)| MemoryGrowth {
                pid,
                bytes_per_second: to_per_second(own),
            })
            .collect()
    }
}

fn to_per_second(per_ms: f64) -> f64 {
    (per_ms * 1000.0).round()
}

/// Amounts of memory in bytes and their times, the oldest first.
#[derive(Debug, Default)]
struct Series(VecDeque<(Moment, u64)>);

struct Slope {
    per_ms: f64,
    /// How well the line fits the values (R²), from 0 to 1.
    steadiness: f64,
    spanned_ms: u64,
}

impl Series {
    fn push(&mut self, now: Moment, bytes: u64) {
        let Self(points) = self;
        match points.back().map(|(last, _)| now.ms_since(*last)) {
            Some(..MIN_STEP_MS) => return,
            Some(MAX_GAP_MS..) => points.clear(),
            _ => {}
        }
        points.push_back((now, bytes));
        while points
            .front()
            .is_some_and(|(at, _)| now.ms_since(*at) > TREND_MS)
        {
            points.pop_front();
        }
    }

    /// Returns the growth in bytes per millisecond if it has been steady and has not slowed down.
    fn steady_growth_per_ms(&self) -> Option<f64> {
        let (whole, recent) = (self.fit_slope(TREND_MS)?, self.fit_slope(RECENT_MS)?);
        let is_steady = whole.spanned_ms >= MIN_TREND_MS && whole.steadiness >= 0.95;
        // Loading a model also grows steadily at first, but then levels off. Only growth that
        // continues is a leak.
        (is_steady && whole.per_ms > 0.0 && recent.per_ms >= 0.7 * whole.per_ms)
            .then_some(whole.per_ms)
    }

    /// Returns the growth in bytes per millisecond, whether or not it is steady.
    fn growth_per_ms(&self) -> Option<f64> {
        let slope = self.fit_slope(TREND_MS)?;
        (slope.spanned_ms >= MIN_PROCESS_TREND_MS && slope.per_ms > 0.0).then_some(slope.per_ms)
    }

    /// Fits a line to the newest `span_ms` by least squares.
    fn fit_slope(&self, span_ms: u64) -> Option<Slope> {
        let Self(points) = self;
        let (end, last) = *points.back()?;
        let (mut n, mut x, mut y, mut xx, mut xy, mut yy, mut spanned_ms) =
            (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0);
        for (at, bytes) in points
            .iter()
            .rev()
            .take_while(|(at, _)| end.ms_since(*at) <= span_ms)
        {
            spanned_ms = end.ms_since(*at);
            // The fit uses differences from the last value. Squares of absolute byte counts would
            // be so large that small differences are lost to rounding.
            let (dx, dy) = (-(spanned_ms as f64), *bytes as f64 - last as f64);
            (n, x, y, xx, xy, yy) = (
                n + 1.0,
                x + dx,
                y + dy,
                xx + dx * dx,
                xy + dx * dy,
                yy + dy * dy,
            );
        }
        let (spread_x, spread_y, together) = (n * xx - x * x, n * yy - y * y, n * xy - x * y);
        if n < 3.0 || spread_x <= 0.0 {
            return None;
        }
        let steadiness = if spread_y <= 0.0 {
            1.0
        } else {
            together * together / (spread_x * spread_y)
        };
        Some(Slope {
            per_ms: together / spread_x,
            steadiness,
            spanned_ms,
        })
    }
}

// The condition that little memory is free.

const GIB: u64 = 1 << 30;

/// A bound on free memory: a share of the total, and a number of bytes. Free memory is below the
/// bound if it is less than both.
type Bound = (f64, u64);

/// The condition starts below this bound.
const BEGIN_BOUND: Bound = (0.03, 2 * GIB);

/// Above this bound, the condition weakens: it ends after a delay.
const WEAKEN_BOUND: Bound = (0.05, 3 * GIB);

/// Above this bound, the condition ends immediately, because the next allocation will not make it
/// start again.
const END_BOUND: Bound = (0.1, 6 * GIB);

/// How long little memory must be free before the condition starts, so that short allocations are
/// ignored.
pub(super) const NEARLY_FULL_AFTER_MS: u64 = 3_000;

/// Returns `true` if the next allocation may fail, because less than 3 % and less than 2 GiB are
/// free.
pub fn is_memory_nearly_full(free_bytes: u64, total_bytes: u64) -> bool {
    is_memory_below_bound(BEGIN_BOUND, free_bytes, total_bytes)
}

fn is_memory_below_bound((share, bytes): Bound, free_bytes: u64, total_bytes: u64) -> bool {
    (free_bytes as f64) < total_bytes as f64 * share && free_bytes < bytes
}

/// Observes the free memory. The condition starts when free memory is below 3 % of the total and
/// below 2 GiB. It ends when free memory has been above 5 % or above 3 GiB for the end delay, and
/// immediately when free memory is above 10 % or above 6 GiB. While the condition lasts, its value
/// is the current free memory.
pub(super) fn observe_nearly_full(view: &View<'_>, lasts: bool) -> Observation<ConditionKind> {
    let memory = &view.sample.memory;
    let Some((&free_bytes, &total_bytes)) = view
        .fresh_value(&memory.free_bytes)
        .zip(memory.total_bytes.value())
    else {
        return Observation::Unknown;
    };
    if !is_memory_below_bound(
        if lasts { END_BOUND } else { BEGIN_BOUND },
        free_bytes,
        total_bytes,
    ) {
        return Observation::Ended;
    }
    let kind = ConditionKind::MemoryNearlyFull {
        free_bytes,
        total_bytes,
    };
    if lasts && !is_memory_below_bound(WEAKEN_BOUND, free_bytes, total_bytes) {
        Observation::Weakening(kind)
    } else {
        Observation::Active(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{TestTimeline, expected_event};
    use super::*;
    use crate::{
        derive::examples::make_process,
        model::{Condition, GpuSample, Reading, Severity},
    };

    const MIB: u64 = 1 << 20;

    /// Adds a sample of one second for each value of `used_mib`. Process 8 holds 10 GiB, and
    /// process 7 holds the rest.
    fn advance_with_memory(timeline: &mut TestTimeline, used_mib: impl Iterator<Item = u64>) {
        for mib in used_mib {
            timeline.advance_with_sample(1, |sample: &mut GpuSample| {
                sample.memory.used_bytes = Reading::Now(mib * MIB);
                sample.memory.free_bytes = Reading::Now(80 * GIB - mib * MIB);
                let holders = [
                    make_process(7, (mib - 10_240) * MIB),
                    make_process(8, 10 * GIB),
                ];
                sample.processes = Reading::Now(holders.to_vec());
            });
        }
    }

    fn forecast_ms(used_mib: impl Iterator<Item = u64>) -> Option<u64> {
        let mut timeline = TestTimeline::new();
        advance_with_memory(&mut timeline, used_mib);
        timeline
            .last
            .conditions
            .iter()
            .find_map(|condition| match condition.kind {
                ConditionKind::MemoryFilling { left_ms, .. } => Some(left_ms),
                _ => None,
            })
    }

    #[test]
    fn steady_growth_forecast_names_time_and_processes() {
        let mut timeline = TestTimeline::new();
        advance_with_memory(&mut timeline, (0..=30).map(|second| 20_480 + second * 100));
        let Condition {
            severity,
            text,
            kind,
            ..
        } = timeline.only_condition().clone();
        assert_eq!(
            text,
            "Memory full in about 10 min: grows by 100 MiB/s (train.py (ana))."
        );
        let ConditionKind::MemoryFilling {
            left_ms,
            bytes_per_second,
            growing,
        } = kind
        else {
            panic!("{kind:?}")
        };
        assert_eq!((severity, left_ms / 10_000), (Severity::Notice, 58));
        assert_eq!(bytes_per_second as u64, 100 * MIB);
        assert_eq!(
            growing,
            [MemoryGrowth {
                pid: 7,
                bytes_per_second
            }]
        );
        advance_with_memory(
            &mut timeline,
            (31..=320).map(|second| 20_480 + second * 100),
        );
        assert_eq!(timeline.only_condition().severity, Severity::Warning);
        advance_with_memory(
            &mut timeline,
            (321..=570).map(|second| 20_480 + second * 100),
        );
        assert_eq!(timeline.only_condition().severity, Severity::Critical);
        assert_eq!(
            timeline.take_events(),
            [expected_event(21, "+memory_filling")]
        );
        advance_with_memory(
            &mut timeline,
            (571..=612).map(|second| 20_480 + second * 100),
        );
        let [ended, began] = timeline.take_events().try_into().unwrap();
        assert_eq!(
            (ended.1.as_str(), began.1.as_str()),
            ("-memory_filling", "+memory_nearly_full")
        );
        assert_eq!(ended.0, began.0, "one takes over from the other");
    }

    #[test]
    fn freed_memory_or_stopped_growth_ends_condition() {
        let mut timeline = TestTimeline::new();
        advance_with_memory(&mut timeline, (0..=30).map(|second| 20_480 + second * 100));
        advance_with_memory(&mut timeline, std::iter::once(15_000));
        assert_eq!(
            timeline.take_events(),
            [
                expected_event(21, "+memory_filling"),
                expected_event(32, "-memory_filling")
            ]
        );
        let mut timeline = TestTimeline::new();
        advance_with_memory(
            &mut timeline,
            (0..=60).map(|second: u64| 20_480 + second.min(30) * 100),
        );
        assert_eq!(
            timeline.take_events().last(),
            Some(&expected_event(44, "-memory_filling"))
        );
    }

    #[test]
    fn unsteady_changes_do_not_give_forecast() {
        let gib = 1024;
        assert!(forecast_ms((0..=30).map(|second| (10 + second) * gib)).is_some());
        assert_eq!(
            forecast_ms((0..=30).map(|second: u64| (10 + second.min(12)) * gib)),
            None,
            "it levelled off"
        );
        assert_eq!(
            forecast_ms((0..=30).map(|second| 10 * gib + second * 10)),
            None,
            "noise"
        );
        assert_eq!(
            forecast_ms((0..=15).map(|second| (10 + second) * gib)),
            None,
            "too new"
        );
        assert_eq!(
            forecast_ms((0..=30).map(|second| if second < 20 { 10 * gib } else { 60 * gib })),
            None,
            "a jump"
        );
        assert_eq!(
            forecast_ms((0..=30).map(|second| (40 - second) * gib + 10_240)),
            None,
            "it shrinks"
        );
    }
}

#[cfg(test)]
mod memory_nearly_full_tests {
    use super::super::test_timeline::{TestTimeline, expected_event};
    use super::*;
    use crate::model::{GpuSample, Reading};

    fn set_free_mib(mib: u64) -> impl Fn(&mut GpuSample) {
        move |sample| sample.memory.free_bytes = Reading::Now(mib << 20)
    }

    #[test]
    fn nearly_full_memory_has_start_and_end_bounds() {
        let mut timeline = TestTimeline::new();
        timeline
            .advance_with_sample(60, set_free_mib(2_100))
            .advance_with_sample(2, set_free_mib(100))
            .advance_with_sample(60, set_free_mib(2_100));
        assert_eq!(timeline.take_events(), []);
        timeline.advance_with_sample(60, set_free_mib(1_000));
        assert_eq!(
            timeline.take_events(),
            [expected_event(126, "+memory_nearly_full")]
        );
        assert_eq!(
            timeline.only_condition().text,
            "Memory nearly full: 1000 MiB of 80.0 GiB free. The next allocation may fail."
        );
        timeline.advance_with_sample(60, set_free_mib(2_900));
        assert_eq!(timeline.take_events(), []);
        timeline.advance_with_sample(60, set_free_mib(3_100));
        assert_eq!(
            timeline.take_events(),
            [expected_event(253, "-memory_nearly_full")]
        );
    }

    #[test]
    fn freed_memory_ends_condition_at_once() {
        let mut timeline = TestTimeline::new();
        timeline
            .advance_with_sample(10, set_free_mib(100))
            .advance_with_sample(1, set_free_mib(3_584));
        assert_eq!(
            timeline.only_condition().text,
            "Memory nearly full: 3.50 GiB of 80.0 GiB free. The next allocation may fail."
        );
        timeline
            .advance_with_sample(3, set_free_mib(100))
            .advance_with_sample(1, set_free_mib(78_000));
        assert_eq!(timeline.last.conditions, []);
        assert_eq!(
            timeline.take_events(),
            [
                expected_event(4, "+memory_nearly_full"),
                expected_event(15, "-memory_nearly_full")
            ]
        );
    }

    #[test]
    fn small_gpu_is_nearly_full_at_relative_bound() {
        let mut timeline = TestTimeline::new();
        let small = |mib| {
            move |sample: &mut GpuSample| {
                sample.memory.total_bytes = Reading::Now(8 * GIB);
                set_free_mib(mib)(sample);
            }
        };
        timeline.advance_with_sample(60, small(300));
        assert_eq!(timeline.take_events(), []);
        timeline
            .advance_with_sample(60, small(200))
            .advance_with_sample(60, small(300));
        assert_eq!(
            timeline.take_events(),
            [expected_event(64, "+memory_nearly_full")]
        );
        timeline.advance_with_sample(60, small(500));
        assert_eq!(timeline.take_events().len(), 1);
    }
}
