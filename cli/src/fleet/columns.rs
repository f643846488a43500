//! The columns of the tables of nodes and GPUs.

use gpumon_fleet::model::GpuState;
use gpumon_probe::{model::Vendor, untrusted::escaped};

use super::{
    nodes::Line,
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

/// The maximum width of a name, in columns.
const LONGEST_NAME: usize = 40;
const LONGEST_MODEL: usize = 24;

pub(crate) fn node_columns<'a>() -> [Field<Line<'a>>; 10] {
    [
        (Column::align_left("Node", 0), name),
        (Column::align_left("GPUs", 5), |line| {
            let mut models = line
                .gpus
                .iter()
                .filter_map(|row| line.rows.model_name(*row));
            let model = models.next().map(short_model).unwrap_or_default();
            format!("{} {model}", line.sum.gpus).trim_end().to_owned()
        }),
        (Column::align_right("Util %", 0), |line| {
            format_utilization(&line.sum)
        }),
        (Column::align_right("Memory GiB", 0), |line| {
            format_memory(&line.sum)
        }),
        (Column::align_right("Power", 3), |line| {
            format_power(&line.sum)
        }),
        (Column::align_right("Max C", 2), |line| {
            format_temperature(&line.sum)
        }),
        (Column::align_right("Busy", 4), |line| {
            count(line, GpuState::Busy)
        }),
        (Column::align_right("Idle", 4), |line| {
            count(line, GpuState::Idle)
        }),
        (Column::align_right("Free", 0), |line| {
            count(line, GpuState::Free)
        }),
        (Column::align_left("Users", 1), |line| {
            match line.users().as_slice() {
                [] => ABSENT.to_owned(),
                [first, second, others @ ..] if others.len() > 1 => {
                    format!("{first} {second} and {} more", others.len())
                }
                some => some.join(" "),
            }
        }),
    ]
}

pub(crate) fn gpu_columns<'a>() -> [Field<Line<'a>>; 10] {
    [
        (Column::align_left("Node", 0), name),
        (Column::align_right("GPU", 0), |line| {
            line.rows.fleet.gpus.index[line.gpus[0]].to_string()
        }),
        (Column::align_left("Model", 5), |line| {
            format_model(line.rows.model_name(line.gpus[0]))
        }),
        (Column::align_left("State", 0), |line| {
            format_state(line.rows, line.gpus[0])
        }),
        (Column::align_right("Util %", 0), |line| {
            format_utilization(&line.sum)
        }),
        (Column::align_right("Memory GiB", 0), |line| {
            format_memory(&line.sum)
        }),
        (Column::align_right("Power", 3), |line| {
            format_power(&line.sum)
        }),
        (Column::align_right("C", 4), |line| {
            format_temperature(&line.sum)
        }),
        (Column::align_left("Owner", 1), |line| {
            or_none(format_owners(line.rows, line.gpus[0]))
        }),
        (Column::align_left("Conditions", 2), |line| {
            or_none(format_conditions(line.rows, line.gpus[0]))
        }),
    ]
}

fn name(line: &Line<'_>) -> String {
    cut(&line.name(), LONGEST_NAME)
}

fn count(line: &Line<'_>, state: GpuState) -> String {
    if line.gpus.is_empty() {
        ABSENT.to_owned()
    } else {
        line.sum.in_state(state).to_string()
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        ABSENT.to_owned()
    } else {
        text
    }
}

/// Returns the short name of a GPU model, or a dash.
pub(crate) fn format_model(name: Option<&str>) -> String {
    name.map_or_else(|| ABSENT.to_owned(), short_model)
}

/// Returns the name without the vendor, such as `H100 80GB HBM3` for `NVIDIA H100 80GB HBM3`.
fn short_model(name: &str) -> String {
    cut(&escaped(Vendor::strip_from(name)), LONGEST_MODEL)
}
