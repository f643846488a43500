//! Ordered lists of a fleet's nodes and GPUs, their totals, and the search for free GPUs.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use gpumon_fleet::{
    Rows, Summary,
    model::{GpuState, MEMORY_TOTAL, MEMORY_USED, NodeHealth, POWER, TEMPERATURE, UTILIZATION},
};
use gpumon_probe::untrusted::escape_untrusted;
use serde::Serialize;

use super::text::{describe_condition, format_bytes, format_watts, mark_lower_bound};
use crate::terminal::units::{GIB, format_count};

/// One line of a list: a node with its visible GPUs, or a single GPU.
#[derive(Debug, Clone)]
pub(crate) struct FleetLine<'a> {
    pub(crate) rows: &'a Rows<'a>,
    /// The node's position in the fleet.
    pub(crate) node: usize,
    /// The rows of the visible GPUs, by index. The list may be empty if the fleet's data does not
    /// include individual GPUs.
    pub(crate) gpus: Vec<usize>,
    pub(crate) sum: Summary,
}

/// Order of nodes and GPUs in the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sort {
    /// Lost GPUs and problems first
    #[default]
    Worst,
    /// In alphabetical order of names
    Name,
    /// Highest utilization of GPUs first
    Utilization,
    /// Most memory in use first
    Memory,
    /// Highest power draw of GPUs first
    Power,
    /// Highest temperature of GPUs first
    Temperature,
    /// Longest idle time of GPUs first
    Idle,
}

impl Sort {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Worst => "worst",
            Self::Name => "name",
            Self::Utilization => "utilization",
            Self::Memory => "memory",
            Self::Power => "power",
            Self::Temperature => "temperature",
            Self::Idle => "idle time",
        }
    }

    /// Compares two nodes or GPUs according to this sort order. Unknown values come last, but an
    /// unknown load counts as no load.
    fn compare(self, a: &Summary, b: &Summary) -> Ordering {
        let highest_first = |id| compare_highest_first(a.value(id), b.value(id));
        let load = |sum: &Summary| sum.value(UTILIZATION).unwrap_or(0.0);
        match self {
            Self::Worst => {
                let by_rank = a.worst_rank().cmp(&b.worst_rank());
                by_rank.then_with(|| load(b).total_cmp(&load(a)))
            }
            Self::Name => Ordering::Equal,
            Self::Utilization => highest_first(UTILIZATION),
            Self::Memory => highest_first(MEMORY_USED),
            Self::Power => highest_first(POWER),
            Self::Temperature => highest_first(TEMPERATURE),
            Self::Idle => compare_highest_first(a.idle_s, b.idle_s),
        }
    }
}

/// Returns the nodes that have a visible GPU.
pub(crate) fn list_nodes<'a>(
    rows: &'a Rows<'a>,
    shown: Option<&[bool]>,
    sort: Sort,
) -> Vec<FleetLine<'a>> {
    let line = |node| FleetLine {
        rows,
        node,
        gpus: Vec::new(),
        sum: Summary::default(),
    };
    let mut lines: Vec<FleetLine<'_>> = (0..rows.fleet.nodes.name.len()).map(line).collect();
    for row in rows.select_rows(shown) {
        let Some(line) = lines.get_mut(rows.node_position(row)) else {
            continue;
        };
        line.gpus.extend(rows.is_listed(row).then_some(row));
        line.sum.add(rows, row);
    }
    for line in &mut lines {
        line.gpus.sort_by_key(|row| rows.fleet.gpus.index[*row]);
    }
    lines.retain(|line| !line.sum.is_empty());
    lines.sort_by(|a, b| sort.compare(&a.sum, &b.sum));
    lines
}

/// Returns the visible GPUs, each on its own line.
pub(crate) fn list_gpus<'a>(
    rows: &'a Rows<'a>,
    shown: Option<&[bool]>,
    sort: Sort,
) -> Vec<FleetLine<'a>> {
    let listed = rows.select_rows(shown).filter(|row| rows.is_listed(*row));
    let mut lines: Vec<FleetLine<'_>> = listed.map(|row| FleetLine::from_gpu(rows, row)).collect();
    lines.sort_by_key(|line| (line.node, rows.fleet.gpus.index[line.gpus[0]]));
    lines.sort_by(|a, b| sort.compare(&a.sum, &b.sum));
    lines
}

impl<'a> FleetLine<'a> {
    pub(crate) fn from_gpu(rows: &'a Rows<'a>, row: usize) -> Self {
        FleetLine {
            rows,
            node: rows.node_position(row),
            gpus: vec![row],
            sum: Summary::new(rows, [row]),
        }
    }

    /// Returns the node's name, escaped for printing.
    pub(crate) fn escaped_node_name(&self) -> String {
        escape_untrusted(self.rows.node_name(self.node))
    }

    /// Returns `true` if the node or one of its GPUs is lost, unknown, or in a critical condition.
    pub(crate) fn is_alarming(&self) -> bool {
        self.sum.worst_rank() <= 2
    }

    /// Returns the names of the users of the GPUs, escaped for printing.
    pub(crate) fn list_users(&self) -> Vec<String> {
        let owners = self.gpus.iter().flat_map(|row| self.rows.list_owners(*row));
        let users = owners.map(|owner| owner.user.as_deref().unwrap_or(&owner.id));
        let users: BTreeSet<&str> = users.collect();
        users.into_iter().map(escape_untrusted).collect()
    }

    /// Returns the node's problems, separated by semicolons, worst first.
    pub(crate) fn format_problems(&self) -> String {
        let nodes = &self.rows.fleet.nodes;
        let reason = nodes.reasons.get(&(self.node as u32));
        let reason = reason.map(|reason| format!(": {}", escape_untrusted(reason)));
        let reason = reason.unwrap_or_default();
        let mut troubles = Vec::new();
        match nodes.health.get(self.node) {
            Some(NodeHealth::Unreachable) => troubles.push(format!("unreachable{reason}")),
            Some(NodeHealth::NoReadings) => troubles.push(format!("no readings{reason}")),
            Some(NodeHealth::Up) | None => {}
        }
        let lost = self.sum.count_in_state(GpuState::Lost);
        if lost > 0 {
            troubles.push(format!("{lost} lost"));
        }
        let mut kinds: Vec<(u8, &str, usize)> = Vec::new();
        for condition in self
            .gpus
            .iter()
            .flat_map(|row| self.rows.list_conditions(*row))
        {
            let known = kinds
                .iter_mut()
                .find(|(_, kind, _)| *kind == condition.kind);
            match known {
                Some((severity, _, count)) => {
                    *severity = condition.severity.max(*severity);
                    *count += 1;
                }
                None => kinds.push((condition.severity, &condition.kind, 1)),
            }
        }
        kinds.sort_by_key(|(severity, ..)| std::cmp::Reverse(*severity));
        troubles.extend(kinds.into_iter().map(|(_, kind, count)| match count {
            1 => describe_condition(kind),
            many => format!("{} ({many})", describe_condition(kind)),
        }));
        troubles.join("; ")
    }
}

fn compare_highest_first(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        _ => a.is_none().cmp(&b.is_none()),
    }
}

/// The totals of all visible GPUs.
#[derive(Debug)]
pub(crate) struct Totals {
    nodes: usize,
    nodes_away: usize,
    pub(crate) sum: Summary,
}

impl Totals {
    pub(crate) fn new(rows: &Rows<'_>, shown: Option<&[bool]>) -> Self {
        let nodes: BTreeSet<usize> = rows
            .select_rows(shown)
            .map(|row| rows.node_position(row))
            .collect();
        let health = |node: &&usize| rows.fleet.nodes.health.get(**node);
        Self {
            nodes: nodes.len(),
            nodes_away: nodes
                .iter()
                .filter(|node| health(node) != Some(&NodeHealth::Up))
                .count(),
            sum: Summary::new(rows, rows.select_rows(shown)),
        }
    }

    /// Returns the number of GPUs in each state, such as `6120 busy` or `310 idle but held`,
    /// followed by the readings. States without GPUs are omitted.
    pub(crate) fn format_states_and_readings(&self) -> Vec<String> {
        let states = [
            (GpuState::Busy, "busy"),
            (GpuState::Idle, "idle but held"),
            (GpuState::Free, "free"),
            (GpuState::Lost, "lost"),
            (GpuState::Unknown, "unknown"),
        ];
        let states = states.map(|(state, name)| match self.sum.count_in_state(state) {
            0 => None,
            count => Some(format!("{count} {name}")),
        });
        let read = |id| self.sum.value(id).filter(|value| *value > 0.0);
        let sum = |id, text: fn(f64) -> String| {
            let value = text(read(id).unwrap_or(0.0));
            mark_lower_bound(value, self.sum.is_partial(id))
        };
        let utilization = self.sum.value(UTILIZATION);
        let readings = [
            utilization.map(|percent| format!("{percent:.0} % utilization")),
            read(MEMORY_TOTAL).map(|total| {
                format!(
                    "{} of {}",
                    sum(MEMORY_USED, format_bytes),
                    format_bytes(total)
                )
            }),
            read(POWER).map(|_| sum(POWER, format_watts)),
        ];
        states.into_iter().chain(readings).flatten().collect()
    }

    /// Returns the number of nodes and GPUs, such as `1000 nodes (3 without readings)  8000 GPUs`.
    pub(crate) fn format_node_and_gpu_counts(&self) -> String {
        let away = match self.nodes_away {
            0 => String::new(),
            away => format!(" ({away} without readings)"),
        };
        let nodes = format_count(self.nodes as u64, "node");
        let gpus = format_count(self.sum.gpus, "GPU");
        format!("{nodes}{away}  {gpus}")
    }
}

// Search for nodes with enough free GPUs that have enough memory.

/// The fraction of the requested memory that is sufficient. A board with 80 GiB reports slightly
/// less, because memory reserved by firmware is not counted.
const SUFFICIENT_FRACTION: f64 = 0.97;

/// A request for free GPUs, with their count and the memory that each GPU must have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedGpus {
    pub(crate) gpus: u32,
    /// The minimum total memory of each GPU in bytes; 0 accepts any GPU.
    pub(crate) memory_bytes: u64,
}

/// The free GPUs of one kind on a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FreeNode {
    pub(crate) node: String,
    pub(crate) model: Option<String>,
    /// The total memory of each GPU in bytes.
    pub(crate) memory_bytes: Option<f64>,
    /// The indices of the free GPUs. The list is empty if the fleet's data does not include
    /// individual GPUs.
    pub(crate) indexes: Vec<u32>,
    pub(crate) free: u32,
    /// The total number of GPUs on the node, including GPUs that are not free.
    pub(crate) gpus: u32,
}

/// Returns the nodes that have enough free GPUs. Nodes with the fewest free GPUs come first, so
/// that completely free nodes remain for larger requests.
pub(crate) fn find_free_nodes(
    rows: &Rows<'_>,
    wanted: WantedGpus,
    shown: Option<&[bool]>,
) -> Vec<FreeNode> {
    let mut kinds: BTreeMap<(usize, Option<&str>, u64), FreeNode> = BTreeMap::new();
    for row in rows.select_rows(shown) {
        let memory = rows
            .value(MEMORY_TOTAL, row)
            .map(|total| total / f64::from(rows.count_gpus(row).max(1)));
        // If no minimum memory is requested, GPUs with unknown memory are accepted.
        let is_enough = wanted.memory_bytes == 0
            || memory
                .is_some_and(|memory| memory >= wanted.memory_bytes as f64 * SUFFICIENT_FRACTION);
        if rows.state(row) != GpuState::Free || !is_enough {
            continue;
        }
        let (node, model) = (rows.node_position(row), rows.model_name(row));
        let gib = memory.map_or(0, |memory| (memory / GIB).round() as u64);
        let kind = kinds.entry((node, model, gib)).or_insert_with(|| FreeNode {
            node: rows.node_name(node).to_owned(),
            model: model.map(ToOwned::to_owned),
            memory_bytes: memory,
            indexes: Vec::new(),
            free: 0,
            gpus: rows.fleet.nodes.gpus.get(node).copied().unwrap_or_default(),
        });
        kind.free += rows.count_gpus(row);
        kind.indexes
            .extend(rows.has_gpu_rows().then(|| rows.fleet.gpus.index[row]));
    }
    let mut found: Vec<_> = kinds
        .into_iter()
        .filter(|(_, kind)| kind.free >= wanted.gpus)
        .collect();
    found.sort_by(|((a, ..), x), ((b, ..), y)| {
        let memory = |kind: &FreeNode| kind.memory_bytes.unwrap_or(0.0);
        x.free
            .cmp(&y.free)
            .then(memory(x).total_cmp(&memory(y)))
            .then(a.cmp(b))
    });
    found.into_iter().map(|(_, kind)| kind).collect()
}

#[cfg(test)]
mod tests {
    use gpumon_fleet::model::GpuHealth;

    use super::*;
    use crate::fleet::testing::{ExampleGpu, build_fleet, make_busy_gpu};

    #[test]
    fn nodes_are_sorted_by_severity_or_name() {
        let lost = ExampleGpu {
            health: GpuHealth::NotResponding,
            ..ExampleGpu::default()
        };
        let idle = ExampleGpu {
            idle_s: Some(900.0),
            ..make_busy_gpu("bob", 0.0)
        };
        let fleet = build_fleet(&[
            ("node1", &[lost, make_busy_gpu("ana", 1.0)]),
            ("node2", &[]),
            (
                "node3",
                &[ExampleGpu {
                    condition: Some(("throttled", 2)),
                    ..make_busy_gpu("eve", 99.0)
                }],
            ),
            ("node9", &[make_busy_gpu("ana", 20.0), idle]),
            (
                "node10",
                &[make_busy_gpu("ana", 90.0), make_busy_gpu("ana", 70.0)],
            ),
        ]);
        let rows = Rows::new(&fleet);
        let names = |sort| {
            let lines = list_nodes(&rows, None, sort);
            lines
                .iter()
                .map(FleetLine::escaped_node_name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(Sort::Worst),
            ["node1", "node2", "node3", "node9", "node10"]
        );
        assert_eq!(
            names(Sort::Name),
            ["node1", "node2", "node3", "node9", "node10"]
        );
        assert_eq!(
            names(Sort::Utilization),
            ["node3", "node10", "node9", "node1", "node2"]
        );
        assert_eq!(names(Sort::Idle)[0], "node9");
        let lines = list_nodes(&rows, None, Sort::Name);
        let sum = &lines[4].sum;
        assert_eq!(
            (
                sum.value(UTILIZATION),
                sum.count_in_state(GpuState::Busy),
                sum.value(POWER)
            ),
            (Some(80.0), 2, Some(1300.0))
        );
        let sum = &lines[3].sum;
        assert_eq!(
            (
                sum.count_in_state(GpuState::Busy),
                sum.count_in_state(GpuState::Idle),
                lines[3].list_users().join(" ")
            ),
            (1, 1, "ana bob".to_owned())
        );
        assert_eq!(
            (
                lines[0].sum.count_in_state(GpuState::Lost),
                lines[1].gpus.len()
            ),
            (1, 0)
        );
        let shown: Vec<bool> = (0..rows.count())
            .map(|row| rows.node_name(rows.node_position(row)) == "node9")
            .collect();
        assert_eq!(
            list_nodes(&rows, Some(&shown), Sort::Worst).len(),
            1,
            "what nothing is known of is not what is looked for"
        );
        assert_eq!(list_gpus(&rows, None, Sort::Worst).len(), 7);
        let order = list_gpus(&rows, Some(&shown), Sort::Idle);
        assert_eq!(
            order.iter().map(|line| line.gpus[0]).collect::<Vec<_>>(),
            [4, 3]
        );
    }
}

#[cfg(test)]
mod free_tests {
    use super::*;
    use crate::fleet::testing::{ExampleGpu, build_fleet, make_busy_gpu};

    #[test]
    fn node_with_tightest_fit_is_listed_first() {
        let free = ExampleGpu {
            processes: Some(0),
            ..ExampleGpu::default()
        };
        let small = ExampleGpu {
            model: "NVIDIA L4",
            total_gib: 22.5,
            ..free.clone()
        };
        let fleet = build_fleet(&[
            ("whole", &vec![free.clone(); 8]),
            (
                "half",
                &[vec![free.clone(); 4], vec![make_busy_gpu("ana", 90.0); 4]].concat(),
            ),
            ("mixed", &[vec![free.clone(); 3], vec![small; 4]].concat()),
            ("away", &[]),
        ]);
        let rows = Rows::new(&fleet);
        let find = |gpus, gib: u64| {
            let found = find_free_nodes(
                &rows,
                WantedGpus {
                    gpus,
                    memory_bytes: gib << 30,
                },
                None,
            );
            found
                .into_iter()
                .map(|kind| (kind.node, kind.free))
                .collect::<Vec<_>>()
        };
        let some = |all: &[(&str, u32)]| {
            all.iter()
                .map(|(node, free)| ((*node).to_owned(), *free))
                .collect::<Vec<_>>()
        };
        assert_eq!(find(4, 80), some(&[("half", 4), ("whole", 8)]));
        assert_eq!(find(4, 0), some(&[("mixed", 4), ("half", 4), ("whole", 8)]));
        assert_eq!(find(3, 80)[0].0, "mixed");
        assert_eq!(
            (find(8, 80).len(), find(9, 0).len(), find(1, 90).len()),
            (1, 0, 0)
        );
        let first = &find_free_nodes(
            &rows,
            WantedGpus {
                gpus: 4,
                memory_bytes: 0,
            },
            None,
        )[0];
        assert_eq!(
            (&first.indexes[..], first.gpus, first.model.as_deref()),
            (&[3, 4, 5, 6][..], 7, Some("NVIDIA L4"))
        );
    }
}
