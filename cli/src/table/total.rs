//! One line with what all GPUs come to.

use gpumon_probe::model::{GpuSample, Health, Reading};

use super::{View, line::Line, style::STRONG, units::energy};
use crate::describe;

/// `Total, 8 GPUs: 63 % mean, 512.3/1128 GiB, 3200/5600 W, 12.3 kWh since driver load`. A value that some GPUs do not
/// have says how many it is of; those that do not answer are not counted.
pub(super) fn line(view: &View<'_>) -> Line {
    let all = view.sample.gpus.len();
    let well: Vec<_> = view
        .sample
        .gpus
        .iter()
        .filter(|gpu| gpu.health == Health::Ok)
        .collect();
    let part = |read: &dyn Fn(&GpuSample) -> Option<[f64; 2]>,
                text: &dyn Fn([f64; 2], f64) -> String| {
        let values: Vec<_> = well.iter().filter_map(|gpu| read(gpu)).collect();
        let sum = values.iter().fold([0.0, 0.0], |sum, value| {
            [sum[0] + value[0], sum[1] + value[1]]
        });
        let some = if values.len() < well.len() {
            format!(" ({} of {})", values.len(), well.len())
        } else {
            String::new()
        };
        (!values.is_empty()).then(|| text(sum, values.len() as f64) + &some)
    };
    let one = |reading: &Reading<f64>| reading.value().map(|value| [*value, 0.0]);
    let bytes = |reading: &Reading<u64>| reading.value().map(|bytes| *bytes as f64);
    let parts = [
        part(
            &|gpu| one(&gpu.utilization.gpu_percent),
            &|[sum, _], count| format!("{:.0} % mean", sum / count),
        ),
        part(
            &|gpu| {
                Some([
                    bytes(&gpu.memory.used_bytes)?,
                    bytes(&gpu.memory.total_bytes)?,
                ])
            },
            &|[used, total], _| describe::used_of(used as u64, Some(total as u64)),
        ),
        // Where one has no limit, neither have all.
        part(
            &|gpu| {
                let limit = gpu.power.limit_watts.value().copied().unwrap_or(f64::NAN);
                Some([*gpu.power.draw_watts.value()?, limit])
            },
            &|[draw, limit], _| {
                describe::draw_of(draw, Some(limit).filter(|limit| !limit.is_nan()))
            },
        ),
        part(
            &|gpu| one(&gpu.power.energy_joules_total),
            &|[joules, _], _| format!("{} since driver load", energy(joules)),
        ),
    ];
    let count = if well.len() < all {
        format!("{} of {all}", well.len())
    } else {
        all.to_string()
    };
    let plural = if all == 1 { "" } else { "s" };
    let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let colon = if parts.is_empty() { "" } else { ": " };
    Line::new(STRONG, format!("Total, {count} GPU{plural}{colon}{parts}"))
}
