//! Columns of the tables of nodes and GPUs.

use gpumon_fleet::model::GpuState;
use gpumon_probe::{model::Vendor, untrusted::escape_untrusted};

use super::{
    nodes::FleetLine,
    text::{
        format_conditions, format_memory, format_owners, format_power, format_state,
        format_temperature, format_utilization,
    },
};
use crate::terminal::{
    columns::{Column, Field},
    text::cut,
    units::ABSENT,
};

/// The maximum width of a name, in characters.
const MAX_NAME_WIDTH: usize = 40;
const MAX_MODEL_WIDTH: usize = 24;

pub(crate) fn build_node_columns<'a>() -> [Field<FleetLine<'a>>; 10] {
    [
        (Column::new_left_aligned("Node", 0), format_name),
        (Column::new_left_aligned("GPUs", 5), |line| {
            let mut models = line
                .gpus
                .iter()
                .filter_map(|row| line.rows.model_name(*row));
            let model = models.next().map(shorten_model).unwrap_or_default();
            format!("{} {model}", line.sum.gpus).trim_end().to_owned()
        }),
        (Column::new_right_aligned("Util %", 0), |line| {
            format_utilization(&line.sum)
        }),
        (Column::new_right_aligned("Memory GiB", 0), |line| {
            format_memory(&line.sum)
        }),
        (Column::new_right_aligned("Power", 3), |line| {
            format_power(&line.sum)
        }),
        (Column::new_right_aligned("Max C", 2), |line| {
            format_temperature(&line.sum)
        }),
        (Column::new_right_aligned("Busy", 4), |line| {
            format_state_count(line, GpuState::Busy)
        }),
        (Column::new_right_aligned("Idle", 4), |line| {
            format_state_count(line, GpuState::Idle)
        }),
        (Column::new_right_aligned("Free", 0), |line| {
            format_state_count(line, GpuState::Free)
        }),
        (Column::new_left_aligned("Users", 1), |line| {
            match line.list_users().as_slice() {
                [] => ABSENT.to_owned(),
                [first, second, others @ ..] if others.len() > 1 => {
                    format!("{first} {second} and {} more", others.len())
                }
                some => some.join(" "),
            }
        }),
    ]
}

pub(crate) fn build_gpu_columns<'a>() -> [Field<FleetLine<'a>>; 10] {
    [
        (Column::new_left_aligned("Node", 0), format_name),
        (Column::new_right_aligned("GPU", 0), |line| {
            line.rows.fleet.gpus.index[line.gpus[0]].to_string()
        }),
        (Column::new_left_aligned("Model", 5), |line| {
            format_model(line.rows.model_name(line.gpus[0]))
        }),
        (Column::new_left_aligned("State", 0), |line| {
            format_state(line.rows, line.gpus[0])
        }),
        (Column::new_right_aligned("Util %", 0), |line| {
            format_utilization(&line.sum)
        }),
        (Column::new_right_aligned("Memory GiB", 0), |line| {
            format_memory(&line.sum)
        }),
        (Column::new_right_aligned("Power", 3), |line| {
            format_power(&line.sum)
        }),
        (Column::new_right_aligned("C", 4), |line| {
            format_temperature(&line.sum)
        }),
        (Column::new_left_aligned("Owner", 1), |line| {
            replace_empty_with_dash(format_owners(line.rows, line.gpus[0]))
        }),
        (Column::new_left_aligned("Conditions", 2), |line| {
            replace_empty_with_dash(format_conditions(line.rows, line.gpus[0]))
        }),
    ]
}

fn format_name(line: &FleetLine<'_>) -> String {
    cut(&line.safe_name(), MAX_NAME_WIDTH)
}

fn format_state_count(line: &FleetLine<'_>, state: GpuState) -> String {
    if line.gpus.is_empty() {
        ABSENT.to_owned()
    } else {
        line.sum.count_in_state(state).to_string()
    }
}

fn replace_empty_with_dash(text: String) -> String {
    if text.is_empty() {
        ABSENT.to_owned()
    } else {
        text
    }
}

/// Returns the short name of a GPU model, or a dash.
pub(crate) fn format_model(name: Option<&str>) -> String {
    name.map_or_else(|| ABSENT.to_owned(), shorten_model)
}

/// Returns a model's name without the vendor: `H100 80GB HBM3` for `NVIDIA H100 80GB HBM3`.
fn shorten_model(name: &str) -> String {
    cut(
        &escape_untrusted(Vendor::strip_vendor(name)),
        MAX_MODEL_WIDTH,
    )
}
