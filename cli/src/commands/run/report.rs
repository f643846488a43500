//! Formats the cost of a run as text.

use gpumon_probe::{
    model::{Cost, GpuCost, Vendor},
    stat::Spread,
    units::format_byte_size,
    untrusted::escape_untrusted,
    usage::Joules,
};

use crate::terminal::{
    columns::{Column, Columns},
    price::format_cost,
    style::{DIM, STRONG, paint},
    text::cut,
    units::{ABSENT, format_elapsed, format_joules, format_joules_with_cost},
};

/// The maximum displayed width of a command's name, which may be a whole script.
const MAX_NAME_WIDTH: usize = 60;

/// The maximum number of marks, errors and conditions in the text. The JSON output contains all of
/// them.
const MAX_REMARKS: usize = 8;

const COLUMNS: [Column; 11] = [
    Column::new_left_aligned("GPU", 0),
    Column::new_left_aligned("Model", 6),
    Column::new_right_aligned("Held", 5),
    Column::new_right_aligned("GPU time", 0),
    Column::new_right_aligned("SM active", 1),
    Column::new_right_aligned("Tensor active", 3),
    Column::new_right_aligned("DRAM", 4),
    Column::new_right_aligned("Peak memory", 0),
    Column::new_right_aligned("Energy", 0),
    Column::new_right_aligned("PCIe RX/TX", 7).omit_if_absent(),
    Column::new_right_aligned("NVLink RX/TX", 8).omit_if_absent(),
];

pub(super) fn format_report(cost: &Cost, terminal: Option<usize>) -> String {
    let rows: Vec<_> = cost.gpus.iter().map(format_cells).collect();
    let columns = Columns::new(&COLUMNS, &rows, terminal);
    let mut text = paint(STRONG, &format!("gpumon: {}", format_summary(cost))) + "\n";
    if !rows.is_empty() {
        text += &columns.format_rows(&rows);
    }
    let mut remarks: Vec<String> = Vec::new();
    for gpu in &cost.gpus {
        let conditions = gpu.conditions.iter();
        remarks.extend(conditions.map(|condition| {
            let seconds = condition.to_ms.saturating_sub(condition.from_ms) as f64 / 1e3;
            let gpu = if cost.gpus.len() > 1 {
                format!("GPU {}: ", gpu.index)
            } else {
                String::new()
            };
            format!(
                "{gpu}{} (for {})",
                condition.text.trim_end_matches('.'),
                format_elapsed(seconds)
            )
        }));
    }
    remarks.extend(
        cost.xids
            .iter()
            .map(|xid| format!("Xid {}: {}", xid.xid, xid.text)),
    );
    remarks.extend(cost.marks.iter().map(|mark| {
        let seconds = mark.at_ms.saturating_sub(cost.started_ms) as f64 / 1e3;
        format!("{} (mark, after {})", mark.text, format_elapsed(seconds))
    }));
    for remark in remarks.iter().take(MAX_REMARKS).chain(&cost.lost) {
        text += &columns.format_remark(0, DIM, &escape_untrusted(remark));
    }
    if let Some(more) = remarks
        .len()
        .checked_sub(MAX_REMARKS)
        .filter(|more| *more > 0)
    {
        text += &columns.format_remark(
            0,
            DIM,
            &format!("{more} more conditions, errors and marks, shown with --json"),
        );
    }
    text
}

/// Returns a one-line summary such as `python train.py: 12.4 s, GPU time 9.81 s, peak memory 61.0
/// GiB, 6.12 kJ`.
pub(super) fn format_summary(cost: &Cost) -> String {
    let short = |name: &str| cut(&escape_untrusted(name), MAX_NAME_WIDTH);
    let name = cost
        .name
        .as_deref()
        .map_or_else(String::new, |name| format!("{}: ", short(name)));
    let mut parts = vec![format_elapsed(cost.duration_s)];
    if cost.gpus.is_empty() {
        // If readings were lost, the summary does not claim that no GPU was used.
        parts.extend(cost.lost.is_empty().then(|| "no GPU used".to_owned()));
    }
    parts.extend(
        cost.gpu_s
            .map(|seconds| format!("GPU time {}", format_elapsed(seconds))),
    );
    parts.extend(
        cost.peak_memory_bytes
            .map(|bytes| format!("peak memory {}", format_byte_size(bytes as f64))),
    );
    parts.extend(
        cost.energy_joules
            .map(|joules| format_energy(joules, cost.shared)),
    );
    format!("{name}{}", parts.join(", "))
}

fn format_cells(gpu: &GpuCost) -> [String; COLUMNS.len()] {
    let none = || ABSENT.to_owned();
    let percent = |percent: Option<Spread>| {
        percent.map_or_else(none, |Spread { mean, peak }| {
            format!("{mean:.0} % (peak {peak:.0})")
        })
    };
    let both = |received: Option<u64>, sent: Option<u64>| {
        let size = |bytes: u64| format_byte_size(bytes as f64);
        received
            .zip(sent)
            .map_or_else(none, |(rx, tx)| format!("{} / {}", size(rx), size(tx)))
    };
    [
        gpu.index.to_string(),
        gpu.name
            .as_deref()
            .map_or_else(none, |name| escape_untrusted(Vendor::strip_vendor(name))),
        format_elapsed(gpu.held_s),
        gpu.gpu_s.map_or_else(none, format_elapsed),
        percent(gpu.sm_percent),
        percent(gpu.tensor_percent),
        percent(gpu.dram_percent),
        gpu.peak_memory_bytes
            .map_or_else(none, |bytes| format_byte_size(bytes as f64)),
        gpu.energy_joules
            .map_or_else(none, |joules| format_energy(joules, gpu.shared)),
        both(gpu.pcie_rx_bytes, gpu.pcie_tx_bytes),
        both(gpu.nvlink_rx_bytes, gpu.nvlink_tx_bytes),
    ]
}

fn format_energy(
    Joules {
        least,
        most,
        estimate,
    }: Joules,
    is_shared: bool,
) -> String {
    if !is_shared {
        return format_joules_with_cost(estimate);
    }
    let cost = format_cost(estimate).map_or_else(String::new, |cost| format!(", {cost}"));
    let [estimate, least, most] = [estimate, least, most].map(format_joules);
    format!("~{estimate} ({least} to {most}, shared{cost})")
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{CostCondition, CostXid};

    use super::*;
    use crate::terminal::snapshot::compare_report;

    fn make_cost() -> Cost {
        let exact = Joules {
            least: 6120.0,
            most: 6120.0,
            estimate: 6120.0,
        };
        let gpu = GpuCost {
            index: 3,
            name: Some("NVIDIA H200".to_owned()),
            held_s: 12.1,
            gpu_s: Some(9.81),
            sm_percent: Some(Spread {
                mean: 81.2,
                peak: 99.0,
            }),
            peak_memory_bytes: Some(61 << 30),
            energy_joules: Some(exact),
            pcie_rx_bytes: Some(1 << 30),
            pcie_tx_bytes: Some(1 << 20),
            conditions: vec![CostCondition {
                kind: "throttled".to_owned(),
                text: "power-capped at 700 W\x1b[2J".to_owned(),
                from_ms: 0,
                to_ms: 3200,
            }],
            ..GpuCost::default()
        };
        Cost {
            name: Some("python train.py".to_owned()),
            duration_s: 12.4,
            gpu_s: Some(9.81),
            peak_memory_bytes: Some(61 << 30),
            energy_joules: Some(exact),
            gpus: vec![gpu],
            xids: vec![CostXid {
                at_ms: 1,
                gpu: Some(3),
                xid: 31,
                text: "MMU fault.".to_owned(),
            }],
            lost: vec!["the server has ended".to_owned()],
            ..Cost::default()
        }
    }

    #[test]
    fn report_has_the_sum_and_each_gpu() {
        compare_report("run", |terminal| format_report(&make_cost(), terminal));
    }

    #[test]
    fn report_names_shared_energy_and_missing_readings() {
        let range = Joules {
            least: 0.0,
            most: 900.0,
            estimate: 450.0,
        };
        let shared = Cost {
            energy_joules: Some(range),
            shared: true,
            ..make_cost()
        };
        assert!(
            format_summary(&shared).ends_with("~450 J (0.00 J to 900 J, shared)"),
            "{}",
            format_summary(&shared)
        );
        let none = Cost {
            name: None,
            duration_s: 0.25,
            ..Cost::default()
        };
        assert_eq!(format_summary(&none), "250 ms, no GPU used");
        let unseen = Cost {
            lost: vec!["no driver".to_owned()],
            ..none
        };
        assert_eq!(format_summary(&unseen), "250 ms");
    }
}
