//! The readings of a fleet as text, and the columns of the tables of nodes and GPUs.

use gpumon_fleet::{
    Rows, Summary,
    model::{
        FleetOwner, GpuState, MEMORY_TOTAL, MEMORY_USED, OwnerKind, POWER, TEMPERATURE, UTILIZATION,
    },
};
use gpumon_probe::{model::Vendor, units::format_duration, untrusted::escape_untrusted};

use super::nodes::FleetLine;
use crate::terminal::{
    columns::{Column, Field},
    text::cut,
    units::{ABSENT, GIB, format_optional},
};

const TIB: f64 = GIB * 1024.0;

/// Describes a condition, such as `power-capped` or `Xid 79`. `kind` is the condition's name in the
/// metrics.
pub(crate) fn describe_condition(kind: &str) -> String {
    if let Some(code) = kind.strip_prefix("xid_") {
        return format!("Xid {}", escape_untrusted(code));
    }
    match kind {
        "power_capped" => "power-capped".to_owned(),
        "held_idle" => "idle, holding memory".to_owned(),
        _ => escape_untrusted(&kind.replace('_', " ")),
    }
}

/// Returns the conditions of a row, separated by commas.
pub(crate) fn format_conditions(rows: &Rows<'_>, row: usize) -> String {
    let conditions = rows.list_conditions(row).iter();
    let texts: Vec<_> = conditions
        .map(|one| describe_condition(&one.kind))
        .collect();
    texts.join(", ")
}

/// Returns the owners of a row, separated by commas.
pub(crate) fn format_owners(rows: &Rows<'_>, row: usize) -> String {
    let texts: Vec<_> = rows
        .list_owners(row)
        .iter()
        .map(|one| describe_owner(one))
        .collect();
    texts.join(", ")
}

/// Returns a short description of an owner: the user, and the user's job, pod, or notebook.
pub(crate) fn describe_owner(owner: &FleetOwner) -> String {
    let id: String = owner.id.chars().take(24).collect();
    let what = match owner.kind {
        OwnerKind::Notebook => "notebook".to_owned(),
        OwnerKind::SlurmJob | OwnerKind::PbsJob | OwnerKind::LsfJob => format!("job {id}"),
        OwnerKind::Pod => match &owner.namespace {
            Some(namespace) => format!("pod {namespace}/{id}"),
            None => format!("pod {id}"),
        },
        OwnerKind::Container => format!("container {}", id.chars().take(12).collect::<String>()),
        OwnerKind::Unit => id,
        OwnerKind::User => String::new(),
    };
    let user = owner.user.as_deref().unwrap_or_default();
    escape_untrusted(
        [user, &what]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
            .as_str(),
    )
}

/// Formats the utilization in percent, such as `78`, or as a dash if it is unknown.
pub(crate) fn format_utilization(sum: &Summary) -> String {
    format_optional(sum.value(UTILIZATION), |value| format!("{value:.0}"))
}

/// Formats the temperature in °C, such as `64`, or as a dash if it is unknown.
pub(crate) fn format_temperature(sum: &Summary) -> String {
    format_optional(sum.value(TEMPERATURE), |value| format!("{value:.0}"))
}

/// Formats the power draw with its unit, or as a dash if it is unknown.
pub(crate) fn format_power(sum: &Summary) -> String {
    format_optional(sum.value(POWER), format_watts)
}

/// Formats the memory in use and the total in GiB, such as `58.2 / 80`.
pub(crate) fn format_memory(sum: &Summary) -> String {
    let used = format_optional(sum.value(MEMORY_USED), |bytes| match bytes / GIB {
        many if many >= 99.95 => format!("{many:.0}"),
        few => format!("{few:.1}"),
    });
    match sum.value(MEMORY_TOTAL) {
        Some(total) => format!("{used} / {:.0}", total / GIB),
        None => used,
    }
}

/// Formats the memory of many GPUs, such as `410 GiB` or `625 TiB`.
pub(crate) fn format_bytes(bytes: f64) -> String {
    if bytes >= TIB {
        format!("{:.1} TiB", bytes / TIB)
    } else {
        format!("{:.0} GiB", bytes / GIB)
    }
}

/// Formats power, such as `700 W`, `5.2 kW`, or `3.91 MW`.
pub(crate) fn format_watts(watts: f64) -> String {
    match watts {
        few if few < 1e3 => format!("{few:.0} W"),
        many if many < 1e6 => format!("{:.1} kW", many / 1e3),
        most => format!("{:.2} MW", most / 1e6),
    }
}

/// Adds `≥` before an amount that is a lower bound because part of it could not be read, as in `≥
/// 3.91 MW`.
pub(crate) fn mark_lower_bound(amount: String, is_lower_bound: bool) -> String {
    if is_lower_bound && amount != ABSENT {
        format!("≥ {amount}")
    } else {
        amount
    }
}

/// Describes the state of a GPU in words.
pub(crate) fn format_state(rows: &Rows<'_>, row: usize) -> String {
    match rows.state(row) {
        GpuState::Busy => "busy".to_owned(),
        GpuState::Idle => {
            let idle = rows.idle_with_memory_s(row);
            let idle = idle.map(|seconds| format!(" {}", format_duration((seconds * 1e3) as u64)));
            format!("idle{}", idle.unwrap_or_default())
        }
        GpuState::Free => "free".to_owned(),
        GpuState::Lost => "lost".to_owned(),
        GpuState::Unknown => "unknown".to_owned(),
    }
}

// Columns of the tables of nodes and GPUs.

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
    cut(&line.escaped_node_name(), MAX_NAME_WIDTH)
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
    format_optional(name, shorten_model)
}

/// Returns a model's name without the vendor: `H100 80GB HBM3` for `NVIDIA H100 80GB HBM3`.
fn shorten_model(name: &str) -> String {
    cut(
        &escape_untrusted(Vendor::strip_vendor(name)),
        MAX_MODEL_WIDTH,
    )
}
