//! The utilization of every GPU over the last minute, from a running server or from earlier updates
//! of the table.

use gpumon_history::timeline::{TimePoint, Timeline};
use gpumon_probe::model::{GpuSample, Sample, fields::Kind};
use gpumon_server::frame::History;

pub(crate) const MAX_HISTORY_MS: u64 = 60_000;

/// The ID of the charted metric in history.
pub(crate) const METRIC: &str = "utilization.gpu_percent";

/// Recent utilization values by GPU UUID.
#[derive(Debug, Clone, Default)]
pub(crate) struct UtilizationHistory(Timeline<String>);

impl UtilizationHistory {
    pub(crate) fn from_history(history: &History) -> Self {
        let mut past = Timeline::default();
        for at_ms in history.times_ms.iter().copied() {
            past.push(TimePoint { at_ms, reach_ms: 0 });
        }
        for gpu in &history.gpus {
            let values = gpu.metrics.get(METRIC).into_iter().flatten().enumerate();
            for (place, value) in values.filter_map(|(place, value)| Some((place, (*value)?))) {
                past.column_or_new(gpu.uuid.clone(), Kind::Gauge)
                    .set(place, value.into());
            }
        }
        past.drop_before(past.newest_ms().unwrap_or(0).saturating_sub(MAX_HISTORY_MS));
        Self(past)
    }

    /// Adds a sample and drops values that are too old.
    pub(crate) fn push(&mut self, sample: &Sample) {
        let Self(past) = self;
        let at_ms = sample.at_ms;
        past.drop_after(at_ms.saturating_sub(1));
        past.push(TimePoint { at_ms, reach_ms: 0 });
        let newest = past.time_points().len() - 1;
        for gpu in &sample.gpus {
            // The values of a hung GPU are old and have already been added.
            let is_old = gpu.at_ms + 2 * u64::from(sample.interval_ms) < at_ms;
            let value = gpu.utilization.gpu_percent.value().filter(|_| !is_old);
            if let Some((uuid, value)) = gpu.uuid.as_ref().zip(value) {
                past.column_or_new(uuid.clone(), Kind::Gauge)
                    .set(newest, *value);
            }
        }
        past.drop_before(at_ms.saturating_sub(MAX_HISTORY_MS));
    }

    pub(super) fn has_values(&self) -> bool {
        self.0.columns(..).next().is_some()
    }

    /// Returns the known values of a GPU with their times, oldest first.
    pub(super) fn gpu_values(&self, gpu: &GpuSample) -> Vec<(u64, f64)> {
        let points = gpu
            .uuid
            .iter()
            .flat_map(|uuid| self.0.column_points(uuid, 0));
        points
            .filter_map(|(moment, value)| Some((moment.at_ms, value?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use gpumon_server::frame::GpuHistory;

    use super::*;
    use crate::table::examples;

    #[test]
    fn later_samples_continue_server_history() {
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
        let mut past = UtilizationHistory::from_history(&history);
        let mut sample = examples::example_sample(1);
        sample.at_ms = 71_000;
        sample.gpus[0].at_ms = 71_000;
        past.push(&sample);
        let series = past.gpu_values(&sample.gpus[0]);
        let series: Vec<u64> = series.iter().map(|(at_ms, _)| *at_ms).collect();
        assert_eq!(
            (series.first(), series.last()),
            (Some(&11_000), Some(&71_000))
        );
        assert!(!series.contains(&69_000), "a gap stays one");
        assert!(past.has_values());
    }
}
