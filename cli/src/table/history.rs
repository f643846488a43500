//! The last minute of every GPU: what a running server remembers, or what was seen while the table was watched.

use std::collections::VecDeque;

use gpumon_probe::model::{GpuSample, Sample};
use gpumon_server::frame::History;

pub(crate) const REACH_MS: u64 = 60_000;

/// The metric that the table shows over time, as history names it.
pub(crate) const METRIC: &str = "utilization.gpu_percent";

/// The recent past, by UUID.
#[derive(Debug, Clone, Default)]
pub(crate) struct UtilizationHistory {
    gpus: Vec<GpuUtilization>,
}

/// One GPU's past, the oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct GpuUtilization {
    uuid: String,
    pub(super) utilization: VecDeque<(u64, f64)>,
}

impl UtilizationHistory {
    pub(crate) fn of(history: &History) -> Self {
        let gpus = history.gpus.iter().map(|gpu| {
            let values = history
                .times_ms
                .iter()
                .zip(gpu.metrics.get(METRIC).into_iter().flatten());
            let utilization = values
                .filter_map(|(at_ms, value)| Some((*at_ms, (*value)?.into())))
                .collect();
            GpuUtilization {
                uuid: gpu.uuid.clone(),
                utilization,
            }
        });
        let mut past = Self {
            gpus: gpus.collect(),
        };
        let newest = history.times_ms.last().copied().unwrap_or(0);
        past.drop_before(newest.saturating_sub(REACH_MS));
        past
    }

    /// Takes in a sample, and forgets what is too old.
    pub(crate) fn push(&mut self, sample: &Sample) {
        for gpu in &sample.gpus {
            // What a hung GPU shows was taken in when it was read.
            let is_old = gpu.at_ms + 2 * u64::from(sample.interval_ms) < sample.at_ms;
            if let Some(uuid) = gpu.uuid.as_ref().filter(|_| !is_old) {
                let known = self
                    .gpus
                    .iter()
                    .position(|known| known.uuid == *uuid)
                    .unwrap_or_else(|| {
                        self.gpus.push(GpuUtilization {
                            uuid: uuid.clone(),
                            ..GpuUtilization::default()
                        });
                        self.gpus.len() - 1
                    });
                self.gpus[known].push(gpu, sample.at_ms);
            }
        }
        self.drop_before(sample.at_ms.saturating_sub(REACH_MS));
    }

    pub(super) fn is_known(&self) -> bool {
        self.gpus.iter().any(|gpu| !gpu.utilization.is_empty())
    }

    pub(super) fn of_gpu(&self, gpu: &GpuSample) -> Option<&GpuUtilization> {
        self.gpus
            .iter()
            .find(|known| Some(&known.uuid) == gpu.uuid.as_ref())
    }

    fn drop_before(&mut self, oldest_ms: u64) {
        for gpu in &mut self.gpus {
            gpu.utilization.retain(|(at_ms, _)| *at_ms >= oldest_ms);
        }
    }
}

impl GpuUtilization {
    fn push(&mut self, gpu: &GpuSample, at_ms: u64) {
        // A clock that was set back makes some of the past a future.
        self.utilization.retain(|(known_ms, _)| *known_ms < at_ms);
        self.utilization.extend(
            gpu.utilization
                .gpu_percent
                .value()
                .map(|value| (at_ms, *value)),
        );
    }
}

#[cfg(test)]
mod tests {
    use gpumon_server::frame::GpuHistory;

    use super::*;
    use crate::table::examples;

    #[test]
    fn a_servers_history_goes_on_with_the_samples_that_follow() {
        let values = (0..70_u8)
            .map(|second| (second != 69).then_some(f32::from(second)))
            .collect::<Vec<_>>();
        let metrics = [(METRIC.to_owned(), values)].into();
        let history = History {
            times_ms: (0..70).map(|second| second * 1000).collect(),
            gpus: vec![GpuHistory {
                uuid: "GPU-0".to_owned(),
                metrics,
                holders: Vec::new(),
            }],
            ..History::default()
        };
        let mut past = UtilizationHistory::of(&history);
        let mut sample = examples::sample(1);
        sample.at_ms = 71_000;
        sample.gpus[0].at_ms = 71_000;
        past.push(&sample);
        let series: Vec<u64> = past.gpus[0]
            .utilization
            .iter()
            .map(|(at_ms, _)| *at_ms)
            .collect();
        assert_eq!(
            (series.first(), series.last()),
            (Some(&11_000), Some(&71_000))
        );
        assert!(!series.contains(&69_000), "a gap stays one");
        assert!(past.is_known() && past.of_gpu(&sample.gpus[0]).is_some());
    }
}
