//! Formats the readings of a fleet as text.

use gpumon_fleet::{
    Rows, Summary,
    model::{
        FleetOwner, GpuState, MEMORY_TOTAL, MEMORY_USED, OwnerKind, POWER, TEMPERATURE, UTILIZATION,
    },
};
use gpumon_probe::{units::format_duration, untrusted::escape_untrusted};

use crate::terminal::{columns::format_optional, units::ABSENT};

const GIB: f64 = (1u64 << 30) as f64;
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
            let idle = rows.idle_s(row);
            let idle = idle.map(|seconds| format!(" {}", format_duration((seconds * 1e3) as u64)));
            format!("idle{}", idle.unwrap_or_default())
        }
        GpuState::Free => "free".to_owned(),
        GpuState::Lost => "lost".to_owned(),
        GpuState::Unknown => "unknown".to_owned(),
    }
}
