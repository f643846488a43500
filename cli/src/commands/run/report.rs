//! The report of a run's cost as text.

use gpumon_probe::{
    model::{Cost, GpuCost, Vendor},
    stat::Spread,
    units::byte_size,
    untrusted::escaped,
    usage::Joules,
};

use crate::terminal::{
    columns::{Column, Columns},
    price::format_cost,
    style::{DIM, STRONG, paint},
    text::cut,
    units::{ABSENT, elapsed, joules, priced_joules},
};

/// The maximum width of a command's name, which may be a whole script.
const LONGEST_NAME: usize = 60;

/// The maximum number of marks, errors and conditions in the text. The JSON has all of them.
const MOST: usize = 8;

const COLUMNS: [Column; 11] = [
    Column::align_left("GPU", 0),
    Column::align_left("Model", 6),
    Column::align_right("Held", 5),
    Column::align_right("GPU time", 0),
    Column::align_right("SM active", 1),
    Column::align_right("Tensor active", 3),
    Column::align_right("DRAM", 4),
    Column::align_right("Peak memory", 0),
    Column::align_right("Energy", 0),
    Column::align_right("PCIe RX/TX", 7).unless_absent(),
    Column::align_right("NVLink RX/TX", 8).unless_absent(),
];

pub(super) fn draw(cost: &Cost, terminal: Option<usize>) -> String {
    let rows: Vec<_> = cost.gpus.iter().map(format_cells).collect();
    let columns = Columns::new(&COLUMNS, &rows, terminal);
    let mut text = paint(STRONG, &format!("gpumon: {}", sentence(cost))) + "\n";
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
                elapsed(seconds)
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
        format!("{} (mark, after {})", mark.text, elapsed(seconds))
    }));
    for remark in remarks.iter().take(MOST).chain(&cost.lost) {
        text += &columns.format_remark(0, DIM, &escaped(remark));
    }
    if let Some(more) = remarks.len().checked_sub(MOST).filter(|more| *more > 0) {
        text += &columns.format_remark(
            0,
            DIM,
            &format!("{more} more conditions, errors and marks, in --json"),
        );
    }
    text
}

/// Returns a summary such as `python train.py: 12.4 s, GPU time 9.81 s, peak memory 61.0 GiB, 6.12
/// kJ`.
pub(super) fn sentence(cost: &Cost) -> String {
    let short = |name: &str| cut(&escaped(name), LONGEST_NAME);
    let name = cost
        .name
        .as_deref()
        .map_or_else(String::new, |name| format!("{}: ", short(name)));
    let mut parts = vec![elapsed(cost.duration_s)];
    if cost.gpus.is_empty() {
        // If readings were lost, it is unknown whether a GPU was used.
        parts.extend(cost.lost.is_empty().then(|| "no GPU used".to_owned()));
    }
    parts.extend(
        cost.gpu_s
            .map(|seconds| format!("GPU time {}", elapsed(seconds))),
    );
    parts.extend(
        cost.peak_memory_bytes
            .map(|bytes| format!("peak memory {}", byte_size(bytes as f64))),
    );
    parts.extend(cost.energy_joules.map(|joules| energy(joules, cost.shared)));
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
        let size = |bytes: u64| byte_size(bytes as f64);
        received
            .zip(sent)
            .map_or_else(none, |(rx, tx)| format!("{} / {}", size(rx), size(tx)))
    };
    [
        gpu.index.to_string(),
        gpu.name
            .as_deref()
            .map_or_else(none, |name| escaped(Vendor::strip_from(name))),
        elapsed(gpu.held_s),
        gpu.gpu_s.map_or_else(none, elapsed),
        percent(gpu.sm_percent),
        percent(gpu.tensor_percent),
        percent(gpu.dram_percent),
        gpu.peak_memory_bytes
            .map_or_else(none, |bytes| byte_size(bytes as f64)),
        gpu.energy_joules
            .map_or_else(none, |joules| energy(joules, gpu.shared)),
        both(gpu.pcie_rx_bytes, gpu.pcie_tx_bytes),
        both(gpu.nvlink_rx_bytes, gpu.nvlink_tx_bytes),
    ]
}

fn energy(
    Joules {
        least,
        most,
        estimate,
    }: Joules,
    is_shared: bool,
) -> String {
    if !is_shared {
        return priced_joules(estimate);
    }
    let cost = format_cost(estimate).map_or_else(String::new, |cost| format!(", {cost}"));
    let [estimate, least, most] = [estimate, least, most].map(joules);
    format!("~{estimate} ({least} to {most}, shared{cost})")
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{CostCondition, CostXid};

    use super::*;
    use crate::terminal::snapshot::compare_report;

    fn cost() -> Cost {
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
        compare_report("run", |terminal| draw(&cost(), terminal));
    }

    #[test]
    fn what_is_shared_or_not_there_is_said() {
        let range = Joules {
            least: 0.0,
            most: 900.0,
            estimate: 450.0,
        };
        let shared = Cost {
            energy_joules: Some(range),
            shared: true,
            ..cost()
        };
        assert!(
            sentence(&shared).ends_with("~450 J (0.00 J to 900 J, shared)"),
            "{}",
            sentence(&shared)
        );
        let none = Cost {
            name: None,
            duration_s: 0.25,
            ..Cost::default()
        };
        assert_eq!(sentence(&none), "250 ms, no GPU used");
        let unseen = Cost {
            lost: vec!["no driver".to_owned()],
            ..none
        };
        assert_eq!(sentence(&unseen), "250 ms");
    }
}
