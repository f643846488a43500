//! Totals of several GPUs' readings.

use gpumon_probe::model::GpuSample;

use super::{format_power_draw, format_used_of_total};

/// The total of a reading over all GPUs that report it.
pub(crate) struct Total {
    pub(crate) count: usize,
    pub(crate) sum: f64,
    /// The sum of the GPUs' limits, or `None` if a GPU has no limit.
    pub(crate) limit: Option<f64>,
}

impl Total {
    pub(crate) fn new(
        gpus: &[&GpuSample],
        read: impl Fn(&GpuSample) -> Option<(f64, Option<f64>)>,
    ) -> Self {
        let values: Vec<_> = gpus.iter().filter_map(|gpu| read(gpu)).collect();
        Self {
            count: values.len(),
            sum: values.iter().map(|value| value.0).sum(),
            limit: values.iter().map(|value| value.1).sum(),
        }
    }

    /// Returns the total as a fraction of the limit.
    pub(crate) fn share(&self) -> Option<f64> {
        let limit = self.limit.filter(|limit| *limit > 0.0);
        limit.map(|limit| self.sum / limit)
    }
}

/// Returns the totals of utilization, memory, and power, such as `63 %`, `512.3/1128 GiB`, and
/// `3200/5600 W`.
pub(crate) fn add_up_gpus(gpus: &[&GpuSample]) -> [(Total, String); 3] {
    let busy = Total::new(gpus, |gpu| {
        Some((*gpu.utilization.gpu_percent.value()?, Some(100.0)))
    });
    let memory = Total::new(gpus, |gpu| {
        let total = gpu.memory.total_bytes.value();
        Some((
            *gpu.memory.used_bytes.value()? as f64,
            total.map(|total| *total as f64),
        ))
    });
    let power = Total::new(gpus, |gpu| {
        let limit = gpu.power.limit_watts.value().copied();
        Some((*gpu.power.draw_watts.value()?, limit))
    });
    let percent = format!("{:.0} %", busy.sum / busy.count as f64);
    let used = format_used_of_total(memory.sum as u64, memory.limit.map(|total| total as u64));
    let draw = format_power_draw(power.sum, power.limit);
    [(busy, percent), (memory, used), (power, draw)]
}
