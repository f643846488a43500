//! What each GPU of a fleet is at.

use std::{
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
};

use gpumon_fleet::model::{Fleet, FleetCondition, FleetOwner, GpuHealth, Resolution};

/// Where no processes are told, a GPU with more memory in use than this is held: the driver itself takes some.
const HELD_BYTES: f64 = (1u64 << 30) as f64;

/// What a GPU is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Somebody computes, or holds it.
    Busy,
    /// Somebody holds it, and does nothing.
    Idle,
    /// Nobody holds it.
    Free,
    /// It does not respond.
    Lost,
    /// Nothing is known of it.
    Unknown,
}

/// What one reading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measured {
    Utilization,
    MemoryUsed,
    MemoryTotal,
    Power,
    PowerLimit,
    Temperature,
}

impl Measured {
    /// Returns the plausible values of a quantity. An exporter may write any number, and what no
    /// board or node can reach is treated as unknown. The page has the same bounds.
    fn bounds(self) -> RangeInclusive<f64> {
        match self {
            Self::Utilization => 0.0..=100.0,
            Self::MemoryUsed | Self::MemoryTotal => 0.0..=36_028_797_018_963_968.0,
            Self::Power | Self::PowerLimit => 0.0..=1e7,
            Self::Temperature => -60.0..=300.0,
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Utilization => "utilization.gpu_percent",
            Self::MemoryUsed => "memory.used_bytes",
            Self::MemoryTotal => "memory.total_bytes",
            Self::Power => "power.draw_watts",
            Self::PowerLimit => "power.limit_watts",
            Self::Temperature => "temperature.gpu_celsius",
        }
    }
}

/// The rows of a fleet: one per GPU, or one per node if the fleet lists only nodes. Nodes that list
/// no GPU have rows after the others, about which nothing is known: as many as the node last had
/// GPUs, or one if that is unknown.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) fleet: &'a Fleet,
    /// The nodes of the unlisted rows.
    unlisted: Vec<usize>,
    owners: HashMap<u32, Vec<u32>>,
    conditions: HashMap<u32, Vec<&'a FleetCondition>>,
    uses: Vec<Use>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(fleet: &'a Fleet) -> Self {
        let unlisted = unlisted(fleet);
        let mut rows = Self {
            fleet,
            unlisted,
            owners: HashMap::new(),
            conditions: HashMap::new(),
            uses: Vec::new(),
        };
        for hold in &fleet.holds {
            rows.owners.entry(hold.gpu).or_default().push(hold.owner);
        }
        for condition in &fleet.conditions {
            rows.conditions
                .entry(condition.gpu)
                .or_default()
                .push(condition);
        }
        let count = fleet.gpus.node.len() + rows.unlisted.len();
        rows.uses = (0..count).map(|row| rows.find_use(row)).collect();
        rows
    }

    pub(crate) fn count(&self) -> usize {
        self.uses.len()
    }

    /// Returns `true` if the fleet lists the row.
    pub(crate) fn is_listed(&self, row: usize) -> bool {
        row < self.fleet.gpus.node.len()
    }

    /// Whether a row is a GPU, and not a node.
    pub(crate) fn is_by_gpu(&self) -> bool {
        self.fleet.resolution == Resolution::Gpu
    }

    pub(crate) fn use_of(&self, row: usize) -> Use {
        self.uses[row]
    }

    /// `None` where nothing tells.
    pub(crate) fn reading(&self, measured: Measured, row: usize) -> Option<f64> {
        let reading = *self.fleet.gpus.readings.get(measured.field())?.get(row)?;
        reading.filter(|value| measured.bounds().contains(value))
    }

    /// Why nothing tells, where no GPU has that reading.
    pub(crate) fn missing(&self, measured: Measured) -> Option<&str> {
        self.fleet.missing.get(measured.field()).map(String::as_str)
    }

    pub(crate) fn node(&self, row: usize) -> usize {
        let listed = &self.fleet.gpus.node;
        listed
            .get(row)
            .map_or_else(|| self.unlisted[row - listed.len()], |node| *node as usize)
    }

    pub(crate) fn node_name(&self, row: usize) -> &'a str {
        self.fleet
            .nodes
            .name
            .get(self.node(row))
            .map_or("", String::as_str)
    }

    /// How many GPUs a row stands for.
    pub(crate) fn gpus(&self, row: usize) -> u32 {
        let of_node = || self.fleet.nodes.gpus.get(self.node(row)).copied();
        match (self.is_by_gpu(), self.is_listed(row)) {
            (true, true) => 1,
            (true, false) => of_node().unwrap_or(0).min(1),
            (false, _) => of_node().unwrap_or(1),
        }
    }

    pub(crate) fn model(&self, row: usize) -> Option<&'a str> {
        let place = (*self.fleet.gpus.model.get(row)?)?;
        self.fleet
            .gpus
            .models
            .get(place as usize)
            .map(String::as_str)
    }

    pub(crate) fn owners(&self, row: usize) -> impl Iterator<Item = &'a FleetOwner> {
        let places = self
            .owners
            .get(&(row as u32))
            .map(Vec::as_slice)
            .unwrap_or_default();
        places
            .iter()
            .filter_map(|place| self.fleet.owners.get(*place as usize))
    }

    /// The worst first.
    pub(crate) fn conditions(&self, row: usize) -> Vec<&'a FleetCondition> {
        let mut conditions = self
            .conditions
            .get(&(row as u32))
            .cloned()
            .unwrap_or_default();
        conditions.sort_by_key(|condition| std::cmp::Reverse(condition.severity));
        conditions
    }

    pub(crate) fn idle_s(&self, row: usize) -> Option<f64> {
        *self.fleet.gpus.idle_holding_s.get(row)?
    }

    /// How a row is: the lower, the worse.
    pub(crate) fn rank(&self, row: usize) -> u8 {
        let worst = self
            .conditions
            .get(&(row as u32))
            .into_iter()
            .flatten()
            .map(|condition| condition.severity)
            .max();
        match (self.use_of(row), worst.unwrap_or(0)) {
            (Use::Lost, _) => 0,
            (Use::Unknown, _) => 1,
            (_, 3..) => 2,
            (_, 2) => 3,
            (Use::Idle, _) => 4,
            (_, 1) => 5,
            _ => 6,
        }
    }

    fn find_use(&self, row: usize) -> Use {
        let gpus = &self.fleet.gpus;
        match gpus.health.get(row) {
            Some(GpuHealth::Ok) => {}
            Some(GpuHealth::NotResponding) => return Use::Lost,
            Some(GpuHealth::Unknown) | None => return Use::Unknown,
        }
        if self.idle_s(row).is_some() {
            return Use::Idle;
        }
        if self.owners(row).next().is_some()
            || self
                .reading(Measured::Utilization, row)
                .is_some_and(|busy| busy > 0.0)
        {
            return Use::Busy;
        }
        let processes = gpus.processes.get(row).copied().flatten();
        match (processes, self.reading(Measured::MemoryUsed, row)) {
            (Some(0), _) => Use::Free,
            (Some(_), _) => Use::Busy,
            (None, Some(used)) if used > HELD_BYTES => Use::Busy,
            (None, Some(_)) => Use::Free,
            (None, None) => Use::Unknown,
        }
    }
}

/// Returns the node of each row that the fleet does not list.
fn unlisted(fleet: &Fleet) -> Vec<usize> {
    let listed: HashSet<u32> = fleet.gpus.node.iter().copied().collect();
    let many = |node: usize| match fleet.resolution {
        Resolution::Gpu => fleet.nodes.gpus.get(node).copied().unwrap_or(0).max(1),
        Resolution::Node => 1,
    };
    let missing = (0..fleet.nodes.name.len()).filter(|node| !listed.contains(&(*node as u32)));
    missing
        .flat_map(|node| (0..many(node)).map(move |_| node))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::testing::{Example, fleet};

    #[test]
    fn what_a_gpu_is_at_is_found_of_what_is_told() {
        let free = Example {
            used_gib: Some(0.4),
            ..Example::default()
        };
        for (example, at, rank) in [
            (
                Example {
                    processes: Some(0),
                    ..free.clone()
                },
                Use::Free,
                6,
            ),
            (free.clone(), Use::Free, 6),
            (
                Example {
                    used_gib: Some(20.0),
                    ..free.clone()
                },
                Use::Busy,
                6,
            ),
            (
                Example {
                    used_gib: Some(20.0),
                    processes: Some(0),
                    ..free.clone()
                },
                Use::Free,
                6,
            ),
            (
                Example {
                    processes: Some(1),
                    ..free.clone()
                },
                Use::Busy,
                6,
            ),
            (
                Example {
                    busy: Some(3.0),
                    ..free.clone()
                },
                Use::Busy,
                6,
            ),
            (
                Example {
                    users: vec!["ana"],
                    ..free.clone()
                },
                Use::Busy,
                6,
            ),
            (
                Example {
                    users: vec!["ana"],
                    idle_s: Some(600.0),
                    ..free.clone()
                },
                Use::Idle,
                4,
            ),
            (
                Example {
                    used_gib: None,
                    ..free.clone()
                },
                Use::Unknown,
                1,
            ),
            (
                Example {
                    health: GpuHealth::NotResponding,
                    ..free.clone()
                },
                Use::Lost,
                0,
            ),
            (
                Example {
                    health: GpuHealth::Unknown,
                    ..free.clone()
                },
                Use::Unknown,
                1,
            ),
            (
                Example {
                    condition: Some(("power_capped", 1)),
                    ..free.clone()
                },
                Use::Free,
                5,
            ),
            (
                Example {
                    condition: Some(("hang", 2)),
                    ..free.clone()
                },
                Use::Free,
                3,
            ),
            (
                Example {
                    condition: Some(("xid_79", 3)),
                    idle_s: Some(1.0),
                    ..free.clone()
                },
                Use::Idle,
                2,
            ),
        ] {
            let fleet = fleet(&[("node1", std::slice::from_ref(&example))]);
            let rows = Rows::new(&fleet);
            assert_eq!((rows.use_of(0), rows.rank(0)), (at, rank), "{example:?}");
        }
    }
}
