//! What readings of a fleet are in words.

use gpumon_fleet::model::{FleetOwner, NodeHealth, OwnerKind};
use gpumon_probe::{units::duration, untrusted::escaped};

use super::{
    nodes::NodeSum,
    rows::{Rows, Use},
};
use crate::table::units::ABSENT;

const GIB: f64 = (1u64 << 30) as f64;
const TIB: f64 = GIB * 1024.0;

/// `power-capped`, `Xid 79`: a condition as its metric has it, in words.
pub(crate) fn condition(kind: &str) -> String {
    if let Some(code) = kind.strip_prefix("xid_") {
        return format!("Xid {}", escaped(code));
    }
    match kind {
        "power_capped" => "power-capped".to_owned(),
        "held_idle" => "idle, holding memory".to_owned(),
        _ => escaped(&kind.replace('_', " ")),
    }
}

/// Who it is, in a few letters: the user, and what of theirs.
pub(crate) fn owner(owner: &FleetOwner) -> String {
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
    escaped(
        [user, &what]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
            .as_str(),
    )
}

/// `78`, or a dash.
pub(crate) fn whole(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.0}"))
}

/// `58.2 / 80`, in GiB.
pub(crate) fn memory(used: Option<f64>, total: Option<f64>) -> String {
    let used = used.map_or_else(|| ABSENT.to_owned(), gib);
    total.map_or_else(
        || used.clone(),
        |total| format!("{used} / {:.0}", total / GIB),
    )
}

fn gib(bytes: f64) -> String {
    match bytes / GIB {
        many if many >= 99.95 => format!("{many:.0}"),
        few => format!("{few:.1}"),
    }
}

/// `410 GiB`, `625 TiB`: of many GPUs.
pub(crate) fn bytes(bytes: f64) -> String {
    if bytes >= TIB {
        format!("{:.1} TiB", bytes / TIB)
    } else {
        format!("{:.0} GiB", bytes / GIB)
    }
}

/// `700 W`, `5.2 kW`, `3.91 MW`.
pub(crate) fn watts(watts: f64) -> String {
    match watts {
        few if few < 1e3 => format!("{few:.0} W"),
        many if many < 1e6 => format!("{:.1} kW", many / 1e3),
        most => format!("{:.2} MW", most / 1e6),
    }
}

/// Formats an amount, with `≥` before it if some of it could not be read: `≥ 3.91 MW`.
pub(crate) fn at_least(amount: String, is_lower_bound: bool) -> String {
    if is_lower_bound && amount != ABSENT {
        format!("≥ {amount}")
    } else {
        amount
    }
}

/// What a GPU is at.
pub(crate) fn use_of(rows: &Rows<'_>, row: usize) -> String {
    match rows.use_of(row) {
        Use::Busy => "busy".to_owned(),
        Use::Idle => {
            let idle = rows
                .idle_s(row)
                .map(|seconds| format!(" {}", duration((seconds * 1e3) as u64)));
            format!("idle{}", idle.unwrap_or_default())
        }
        Use::Free => "free".to_owned(),
        Use::Lost => "lost".to_owned(),
        Use::Unknown => "unknown".to_owned(),
    }
}

/// What is wrong with a node, the worst first; empty where nothing is.
pub(crate) fn troubles(rows: &Rows<'_>, sum: &NodeSum) -> Vec<String> {
    let nodes = &rows.fleet.nodes;
    let mut troubles = Vec::new();
    let reason = nodes
        .reasons
        .get(&(sum.node as u32))
        .map(|reason| format!(": {}", escaped(reason)))
        .unwrap_or_default();
    match nodes.health.get(sum.node) {
        Some(NodeHealth::Unreachable) => troubles.push(format!("unreachable{reason}")),
        Some(NodeHealth::NoReadings) => troubles.push(format!("no readings{reason}")),
        Some(NodeHealth::Up) | None => {}
    }
    if sum.lost > 0 {
        troubles.push(format!("{} lost", sum.lost));
    }
    let mut kinds: Vec<(u8, &str, usize)> = Vec::new();
    for condition in sum.rows.iter().flat_map(|row| rows.conditions(*row)) {
        match kinds
            .iter_mut()
            .find(|(_, kind, _)| *kind == condition.kind)
        {
            Some((severity, _, many)) => {
                (*severity, *many) = ((*severity).max(condition.severity), *many + 1);
            }
            None => kinds.push((condition.severity, &condition.kind, 1)),
        }
    }
    kinds.sort_by_key(|(severity, ..)| std::cmp::Reverse(*severity));
    let many = |many: usize| {
        if many > 1 {
            format!(" ({many})")
        } else {
            String::new()
        }
    };
    troubles.extend(
        kinds
            .into_iter()
            .map(|(_, kind, count)| condition(kind) + &many(count)),
    );
    troubles
}
