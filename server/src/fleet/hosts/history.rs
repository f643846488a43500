//! The history of a fleet, combined from the histories of its hubs.

use std::{collections::BTreeMap, sync::Arc};

use gpumon_fleet::{
    Range,
    model::{
        FleetHistory, FleetSeries, FleetState, HELD_BYTES, MEMORY_TOTAL, MEMORY_USED, POWER,
        UTILIZATION,
    },
};
use gpumon_history::{
    bucket::BUCKET_MS, plan::SpanRequest, span::HistorySpan, wanted::MetricSelection,
};
use gpumon_probe::stat::Window;

use super::{node::HostNode, usage::describe_unknown_part};

/// The number of points of a chart that fills a screen.
const POINT_COUNT: u64 = 360;

const READING_NAMES: [&str; 4] = [UTILIZATION, MEMORY_USED, MEMORY_TOTAL, POWER];
const GPU_COUNT: &str = "gpus";
const HELD_GPU_COUNT: &str = "gpus_held";

pub(super) fn build_history(
    nodes: &[Arc<HostNode>],
    node: Option<&str>,
    range: Range,
    now_ms: u64,
) -> FleetHistory {
    let asked_ms = now_ms.saturating_sub(u64::from(range.seconds()) * 1000);
    let step_ms = (u64::from(range.seconds()) * 1000 / POINT_COUNT)
        .max(1)
        .next_multiple_of(BUCKET_MS);
    let request = SpanRequest {
        from_ms: asked_ms,
        to_ms: now_ms,
        points: (POINT_COUNT + 2) as u32,
        resolution_ms: Some(step_ms),
        wanted: MetricSelection::parse_names(READING_NAMES.into_iter()).0,
    };
    let mut sums = ReadingSums::default();
    let mut oldest_ms = now_ms;
    for node in nodes {
        let span = node.hub.read_span(&request);
        oldest_ms = oldest_ms.min(span.oldest_ms);
        sums.add(&span, step_ms);
    }
    let (at_ms, series) = sums.into_series(step_ms);
    FleetHistory {
        node: node.map(str::to_owned),
        state: FleetState::Current,
        problems: describe_unknown_part(oldest_ms, asked_ms)
            .into_iter()
            .collect(),
        at_ms,
        series,
    }
}

/// The readings of all GPUs by time and name.
#[derive(Default)]
struct ReadingSums(BTreeMap<u64, BTreeMap<&'static str, Window>>);

impl ReadingSums {
    fn add(&mut self, span: &HistorySpan, step_ms: u64) {
        for gpu in &span.gpus {
            for (place, at_ms) in span.times_ms.iter().enumerate() {
                let value = |id| *gpu.metrics.get(id)?.values.get(place)?;
                let sums = self.0.entry(at_ms - at_ms % step_ms).or_default();
                let mut add = |id, value: Option<f64>| {
                    if let Some(value) = value {
                        sums.entry(id).or_default().add(value, 1.0);
                    }
                };
                for id in READING_NAMES {
                    add(id, value(id));
                }
                add(GPU_COUNT, value(MEMORY_TOTAL).map(|_| 1.0));
                // The history does not record past processes, so a GPU with load counts as held.
                let is_busy = value(UTILIZATION).is_some_and(|percent| percent > 0.0);
                add(
                    HELD_GPU_COUNT,
                    value(MEMORY_USED).map(|bytes| f64::from(is_busy || bytes > HELD_BYTES)),
                );
            }
        }
    }

    /// Returns the series at regular times, with `None` where there is no value.
    fn into_series(self, step_ms: u64) -> (Vec<u64>, Vec<FleetSeries>) {
        let (Some((first, _)), Some((last, _))) =
            (self.0.first_key_value(), self.0.last_key_value())
        else {
            return (Vec::new(), Vec::new());
        };
        let at_ms: Vec<_> = (*first..=*last).step_by(step_ms as usize).collect();
        let of = |id: &'static str| {
            let value = |at: &u64| {
                let gpus = self.0.get(at)?.get(id)?;
                if id == UTILIZATION {
                    gpus.mean()
                } else {
                    gpus.integral()
                }
            };
            FleetSeries {
                id: id.to_owned(),
                values: at_ms.iter().map(value).collect(),
            }
        };
        let series = READING_NAMES
            .into_iter()
            .chain([GPU_COUNT, HELD_GPU_COUNT])
            .map(of)
            .collect();
        (at_ms, series)
    }
}

#[cfg(test)]
mod tests {
    use gpumon_history::span::{DeviceSpan, Series};

    use super::*;

    #[test]
    fn gpus_with_memory_or_load_count_as_held() {
        let gpu = |used: [Option<f64>; 3], load: [Option<f64>; 3]| {
            let of = |values: [Option<f64>; 3]| Series {
                values: values.to_vec(),
                ..Series::default()
            };
            let metrics = [
                (UTILIZATION, of(load)),
                (MEMORY_USED, of(used)),
                (MEMORY_TOTAL, of(used.map(|it| it.map(|_| 8e10)))),
            ];
            DeviceSpan {
                metrics: metrics.map(|(id, of)| (id.to_owned(), of)).into(),
                ..DeviceSpan::default()
            }
        };
        let gpus = vec![
            gpu([Some(4e10), Some(5e8), None], [Some(0.0), Some(0.0), None]),
            gpu([Some(5e8), Some(5e8), None], [Some(60.0), Some(0.0), None]),
        ];
        let mut sums = ReadingSums::default();
        sums.add(
            &HistorySpan {
                times_ms: vec![10_000, 20_000, 30_000],
                gpus,
                ..HistorySpan::default()
            },
            10_000,
        );
        let (at_ms, series) = sums.into_series(10_000);
        assert_eq!(at_ms, [10_000, 20_000, 30_000]);
        let of = |id: &str| {
            series
                .iter()
                .find(|series| series.id == id)
                .unwrap()
                .values
                .clone()
        };
        assert_eq!(of(UTILIZATION), [Some(30.0), Some(0.0), None]);
        assert_eq!(of(GPU_COUNT), [Some(2.0), Some(2.0), None]);
        assert_eq!(of(HELD_GPU_COUNT), [Some(2.0), Some(0.0), None]);
    }
}
