//! The line of the table with the totals of all GPUs.

use gpumon_probe::model::Health;

use super::View;

use crate::describe::{Total, add_up_gpus};
use crate::terminal::{line::Line, style::STRONG, units::format_energy_with_cost};

/// Formats the totals, such as `Total, 8 GPUs: 63 % mean, 512.3/1128 GiB, 3200/5600 W, 12.3 kWh
/// since driver load`. If some GPUs lack a value, the number of GPUs with the value is shown. GPUs
/// that do not respond are not included.
pub(super) fn format_total_line(view: &View<'_>) -> Line {
    let all = view.sample.gpus.len();
    let well: Vec<_> = view
        .sample
        .gpus
        .iter()
        .filter(|gpu| gpu.health == Health::Ok)
        .collect();
    let part = |count: usize, text: String| {
        let some = if count < well.len() {
            format!(" ({count} of {})", well.len())
        } else {
            String::new()
        };
        (count > 0).then(|| text + &some)
    };
    let [(busy, percent), (memory, used), (power, draw)] = add_up_gpus(&well);
    let joules = Total::new(&well, |gpu| {
        Some((*gpu.power.energy_joules_total.value()?, None))
    });
    let parts = [
        part(busy.count, percent + " mean"),
        part(memory.count, used),
        part(power.count, draw),
        part(
            joules.count,
            format_energy_with_cost(joules.sum) + " since driver load",
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
