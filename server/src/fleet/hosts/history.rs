//! How hosts did over time, from the history of each hub.

use std::{collections::BTreeMap, sync::Arc};

use gpumon_fleet::{
    Range,
    model::{FleetHistory, FleetSeries, FleetState},
};
use gpumon_history::{
    bucket::BUCKET_MS,
    plan::SpanRequest,
    span::{HistorySpan, Series},
    wanted::Wanted,
};

use super::{node::HostNode, usage::since_start};

/// Points of a chart that is as wide as a screen.
const POINTS: u64 = 360;

const UTILIZATION: &str = "utilization.gpu_percent";
const SUMS: [&str; 3] = ["memory.used_bytes", "memory.total_bytes", "power.draw_watts"];

pub(super) fn history(nodes: &[Arc<HostNode>], node: Option<&str>, range: Range, now_ms: u64) -> FleetHistory {
    let asked_ms = now_ms.saturating_sub(u64::from(range.seconds()) * 1000);
    let step_ms = (u64::from(range.seconds()) * 1000 / POINTS).max(1).next_multiple_of(BUCKET_MS);
    let ids = [UTILIZATION].into_iter().chain(SUMS);
    let request = SpanRequest {
        from_ms: asked_ms,
        to_ms: now_ms,
        points: (POINTS + 2) as u32,
        resolution_ms: Some(step_ms),
        wanted: Wanted::named(ids).0,
    };
    let mut sums = Sums::default();
    let mut oldest_ms = now_ms;
    for node in nodes {
        let span = node.hub.span(&request);
        oldest_ms = oldest_ms.min(span.oldest_ms);
        sums.add(&span, step_ms);
    }
    let (at_ms, series) = sums.into_series(step_ms);
    FleetHistory {
        node: node.map(str::to_owned),
        state: FleetState::Current,
        problems: since_start(oldest_ms, asked_ms).into_iter().collect(),
        at_ms,
        series,
    }
}

/// By moment and by what it is: a sum, and of how many GPUs.
#[derive(Default)]
struct Sums(BTreeMap<u64, BTreeMap<&'static str, (f64, u32)>>);

impl Sums {
    fn add(&mut self, span: &HistorySpan, step_ms: u64) {
        for gpu in &span.gpus {
            for (id, series) in &gpu.metrics {
                let Some(id) = [UTILIZATION].into_iter().chain(SUMS).find(|known| known == id) else { continue };
                self.add_series(id, &span.times_ms, series, step_ms, |value| value);
                if id == "memory.total_bytes" {
                    self.add_series("gpus", &span.times_ms, series, step_ms, |_| 1.0);
                }
            }
        }
    }

    fn add_series(
        &mut self,
        id: &'static str,
        times_ms: &[u64],
        series: &Series,
        step_ms: u64,
        of: impl Fn(f64) -> f64,
    ) {
        for (at_ms, value) in times_ms.iter().zip(&series.values) {
            if let Some(value) = value {
                let (sum, count) = self.0.entry(at_ms - at_ms % step_ms).or_default().entry(id).or_default();
                *sum += of(*value);
                *count += 1;
            }
        }
    }

    /// At even distances, with what nobody knows left out.
    fn into_series(self, step_ms: u64) -> (Vec<u64>, Vec<FleetSeries>) {
        let (Some((first, _)), Some((last, _))) = (self.0.first_key_value(), self.0.last_key_value()) else {
            return (Vec::new(), Vec::new());
        };
        let at_ms: Vec<_> = (*first..=*last).step_by(step_ms as usize).collect();
        let of = |id: &'static str| {
            let value = |at: &u64| {
                let (sum, count) = self.0.get(at)?.get(id)?;
                Some(if id == UTILIZATION { sum / f64::from(*count) } else { *sum })
            };
            FleetSeries { id: id.to_owned(), values: at_ms.iter().map(value).collect() }
        };
        let series = [UTILIZATION].into_iter().chain(SUMS).chain(["gpus"]).map(of).collect();
        (at_ms, series)
    }
}
