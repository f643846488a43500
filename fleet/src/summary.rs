//! Row-wise access to a fleet's GPUs, and the computation of their states, sums, and ranks. A rank
//! orders states by urgency.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

use crate::model::{
    Fleet, FleetCondition, FleetOwner, FleetSums, GpuHealth, GpuState, HELD_BYTES, MEMORY_USED,
    READINGS, Resolution, TEMPERATURE, UTILIZATION, is_plausible_reading,
};

/// The rank of a GPU if nothing is known about it.
pub(crate) const UNKNOWN_RANK: u8 = 1;

/// The combined states and readings of several GPUs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// The number of GPUs.
    pub gpus: u32,
    states: [u32; GpuState::ALL.len()],
    /// The rank of the worst GPU; `None` if no rows were added.
    rank: Option<u8>,
    values: [Option<f64>; READINGS.len()],
    reporting: [u32; READINGS.len()],
    /// The longest time that any of the GPUs has been idle although its memory is in use, in
    /// seconds.
    pub idle_s: Option<f64>,
}

impl Summary {
    /// Creates the summary of the rows in `of`.
    pub fn new(rows: &Rows<'_>, of: impl IntoIterator<Item = usize>) -> Self {
        let mut sum = Self::default();
        for row in of {
            sum.add(rows, row);
        }
        sum
    }

    pub fn add(&mut self, rows: &Rows<'_>, row: usize) {
        let gpus = rows.count_gpus(row);
        self.gpus += gpus;
        self.states[rows.state(row) as usize] += gpus;
        let rank = rows.state_rank(row);
        self.rank = Some(self.rank.map_or(rank, |worst| worst.min(rank)));
        for (at, id) in READINGS.into_iter().enumerate() {
            let Some(value) = rows.value(id, row) else {
                continue;
            };
            let sum = self.values[at];
            self.values[at] = Some(match id {
                // The utilization in a node's row is the mean over the node's GPUs, so it is
                // weighted by their number.
                UTILIZATION => sum.unwrap_or(0.0) + value * f64::from(gpus.max(1)),
                TEMPERATURE => sum.map_or(value, |highest| highest.max(value)),
                _ => sum.unwrap_or(0.0) + value,
            });
            self.reporting[at] += gpus.max(1);
        }
        let longest = self.idle_s.into_iter().chain(rows.idle_with_memory_s(row));
        self.idle_s = longest.reduce(f64::max);
    }

    /// Returns `true` if no rows were added.
    pub fn is_empty(&self) -> bool {
        self.rank.is_none()
    }

    /// Returns the number of GPUs in `state`.
    pub fn count_in_state(&self, state: GpuState) -> u32 {
        self.states[state as usize]
    }

    /// Returns the rank of the worst GPU. A lower rank is worse.
    pub fn worst_rank(&self) -> u8 {
        self.rank.unwrap_or(u8::MAX)
    }

    /// Returns the mean utilization, the highest temperature, or the sum of any other reading. GPUs
    /// that do not report the reading are left out; the result is `None` if no GPU reports it.
    pub fn value(&self, id: &str) -> Option<f64> {
        let at = READINGS.iter().position(|known| *known == id)?;
        let value = self.values[at]?;
        Some(if id == UTILIZATION {
            value / f64::from(self.reporting[at])
        } else {
            value
        })
    }

    /// Returns `true` if some GPUs do not report the reading, so that its sum is a lower bound.
    pub fn is_partial(&self, id: &str) -> bool {
        let at = READINGS.iter().position(|known| *known == id);
        at.is_some_and(|at| self.reporting[at] < self.gpus)
    }
}

impl FleetSums {
    fn push(&mut self, sum: &Summary) {
        self.gpus.push(sum.gpus);
        for state in GpuState::ALL {
            let counts = self.states.entry(state).or_default();
            counts.push(sum.count_in_state(state));
        }
        self.rank.push(sum.worst_rank());
        for (at, id) in READINGS.into_iter().enumerate() {
            let values = self.readings.entry(id.to_owned()).or_default();
            values.push(sum.value(id));
            let reporting = self.reporting.entry(id.to_owned()).or_default();
            reporting.push(sum.reporting[at]);
        }
        self.idle_holding_s.push(sum.idle_s);
    }
}

impl Fleet {
    /// Removes implausible readings, and derives states, ranks, and sums from the remaining ones.
    pub fn derive_values(&mut self) {
        for (id, values) in &mut self.gpus.readings {
            for value in values {
                *value = value.filter(|value| is_plausible_reading(id, *value));
            }
        }
        self.gpus.unlisted = find_nodes_of_unlisted_rows(self);
        let rows = Rows::new(self);
        let derived = (0..self.gpus.node.len()).map(|row| {
            let state = derive_state(&rows, row);
            (state, derive_rank(&rows, row, state))
        });
        let (state, rank) = derived.unzip();
        (self.gpus.state, self.gpus.rank) = (state, rank);
        let rows = Rows::new(self);
        let mut by_node = vec![Summary::default(); self.nodes.name.len()];
        for row in 0..rows.count() {
            if let Some(sum) = by_node.get_mut(rows.node_position(row)) {
                sum.add(&rows, row);
            }
        }
        let all = Summary::new(&rows, 0..rows.count());
        let (mut sums, mut totals) = (FleetSums::default(), FleetSums::default());
        for sum in &by_node {
            sums.push(sum);
        }
        totals.push(&all);
        (self.sums, self.totals) = (sums, totals);
    }
}

/// Returns the node of each row without data. A node without listed GPUs has one such row for each
/// GPU that it last had. It has a single row if this number is unknown, or if the fleet lists only
/// nodes.
fn find_nodes_of_unlisted_rows(fleet: &Fleet) -> Vec<u32> {
    let listed: BTreeSet<u32> = fleet.gpus.node.iter().copied().collect();
    let counts = (0..).zip(&fleet.nodes.gpus);
    let missing = counts.filter(|(node, _)| !listed.contains(node));
    let rows = missing.flat_map(|(node, gpus)| {
        let count = match fleet.resolution {
            Resolution::Gpu => (*gpus).max(1),
            Resolution::Node => 1,
        };
        std::iter::repeat_n(node, count as usize)
    });
    rows.collect()
}

fn derive_state(rows: &Rows<'_>, row: usize) -> GpuState {
    let gpus = &rows.fleet.gpus;
    match gpus.health.get(row) {
        Some(GpuHealth::Ok) => {}
        Some(GpuHealth::NotResponding) => return GpuState::Lost,
        Some(GpuHealth::Unknown) | None => return GpuState::Unknown,
    }
    if rows.idle_with_memory_s(row).is_some() {
        return GpuState::Idle;
    }
    let is_busy = rows.value(UTILIZATION, row) > Some(0.0);
    if is_busy || !rows.list_owners(row).is_empty() {
        return GpuState::Busy;
    }
    let processes = gpus.processes.get(row).copied().flatten();
    match (processes, rows.value(MEMORY_USED, row)) {
        (Some(0), _) => GpuState::Free,
        (Some(_), _) => GpuState::Busy,
        (None, Some(used)) if used > HELD_BYTES => GpuState::Busy,
        (None, Some(_)) => GpuState::Free,
        (None, None) => GpuState::Unknown,
    }
}

fn derive_rank(rows: &Rows<'_>, row: usize, state: GpuState) -> u8 {
    let worst = rows.list_conditions(row).first();
    match (state, worst.map_or(0, |condition| condition.severity)) {
        (GpuState::Lost, _) => 0,
        (GpuState::Unknown, _) => UNKNOWN_RANK,
        (_, 3..) => 2,
        (_, 2) => 3,
        (GpuState::Idle, _) => 4,
        (_, 1) => 5,
        _ => 6,
    }
}

/// The rows of a fleet: one per GPU, or one per node if the fleet lists only nodes. They are
/// followed by rows without data, for GPUs that the fleet does not list.
#[derive(Debug)]
pub struct Rows<'a> {
    pub fleet: &'a Fleet,
    owners: HashMap<u32, Vec<&'a FleetOwner>>,
    conditions: HashMap<u32, Vec<&'a FleetCondition>>,
}

impl<'a> Rows<'a> {
    /// Creates the rows of `fleet`, and indexes its owners and conditions by row.
    pub fn new(fleet: &'a Fleet) -> Self {
        let mut rows = Self {
            fleet,
            owners: HashMap::new(),
            conditions: HashMap::new(),
        };
        for hold in &fleet.holds {
            let owner = fleet.owners.get(hold.owner as usize);
            rows.owners.entry(hold.gpu).or_default().extend(owner);
        }
        for condition in &fleet.conditions {
            let of_gpu = rows.conditions.entry(condition.gpu).or_default();
            of_gpu.push(condition);
        }
        for conditions in rows.conditions.values_mut() {
            conditions.sort_by_key(|condition| Reverse(condition.severity));
        }
        rows
    }

    /// Returns the number of rows, including unlisted GPUs.
    pub fn count(&self) -> usize {
        self.fleet.gpus.node.len() + self.fleet.gpus.unlisted.len()
    }

    /// Returns the rows that match `filter`, or all rows if there is no filter.
    pub fn select_rows<'s>(
        &self,
        shown: Option<&'s [bool]>,
    ) -> impl Iterator<Item = usize> + use<'s> {
        (0..self.count()).filter(move |row| shown.is_none_or(|shown| shown[*row]))
    }

    /// Returns `true` if the fleet lists the row. The other rows contain no data.
    pub fn is_listed(&self, row: usize) -> bool {
        row < self.fleet.gpus.node.len()
    }

    /// Returns `true` if each row is a GPU, and `false` if each row is a node.
    pub fn has_gpu_rows(&self) -> bool {
        self.fleet.resolution == Resolution::Gpu
    }

    pub fn state(&self, row: usize) -> GpuState {
        let state = self.fleet.gpus.state.get(row).copied();
        state.unwrap_or(GpuState::Unknown)
    }

    /// Returns the rank of a row's state. A lower rank is worse.
    pub fn state_rank(&self, row: usize) -> u8 {
        let rank = self.fleet.gpus.rank.get(row).copied();
        rank.unwrap_or(UNKNOWN_RANK)
    }

    /// Returns the row's value of the reading `id`, or `None` if it is unknown.
    pub fn value(&self, id: &str, row: usize) -> Option<f64> {
        *self.fleet.gpus.readings.get(id)?.get(row)?
    }

    /// Returns the position of the row's node.
    pub fn node_position(&self, row: usize) -> usize {
        let gpus = &self.fleet.gpus;
        let node = gpus.node.iter().chain(&gpus.unlisted).nth(row);
        node.map_or(usize::MAX, |node| *node as usize)
    }

    pub fn node_name(&self, node: usize) -> &'a str {
        self.fleet.nodes.name.get(node).map_or("", String::as_str)
    }

    /// Returns the number of GPUs that a row represents.
    pub fn count_gpus(&self, row: usize) -> u32 {
        let of_node = || self.fleet.nodes.gpus.get(self.node_position(row)).copied();
        match (self.has_gpu_rows(), self.is_listed(row)) {
            (true, true) => 1,
            (true, false) => of_node().unwrap_or(0).min(1),
            (false, _) => of_node().unwrap_or(1),
        }
    }

    /// Returns the name of the row's GPU model, or `None` if it is unknown.
    pub fn model_name(&self, row: usize) -> Option<&'a str> {
        let place = (*self.fleet.gpus.model.get(row)?)?;
        let model = self.fleet.gpus.models.get(place as usize);
        model.map(String::as_str)
    }

    /// Returns the owners that use a row's GPUs.
    pub fn list_owners(&self, row: usize) -> &[&'a FleetOwner] {
        self.owners.get(&(row as u32)).map_or(&[], Vec::as_slice)
    }

    /// Returns the conditions of a row, in descending order of severity.
    pub fn list_conditions(&self, row: usize) -> &[&'a FleetCondition] {
        let conditions = self.conditions.get(&(row as u32));
        conditions.map_or(&[], Vec::as_slice)
    }

    /// Returns how long a row's GPU has been idle although its memory is in use, in seconds.
    pub fn idle_with_memory_s(&self, row: usize) -> Option<f64> {
        *self.fleet.gpus.idle_holding_s.get(row)?
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        model::{
            FleetGpus, FleetOwner, FleetSource, FleetSourceKind, FleetState, NodeHealth, OwnerKind,
        },
        source::{FleetBuilder, NewGpu, NewNode},
    };

    const GIB: f64 = (1_u64 << 30) as f64;

    /// The values of an unused GPU, for tests.
    const FREE: NewGpu<'_> = NewGpu {
        index: 0,
        model: None,
        health: GpuHealth::Ok,
        readings: [
            Some(0.0),
            Some(0.4 * GIB),
            Some(80.0 * GIB),
            None,
            None,
            None,
        ],
        processes: None,
        idle_holding_s: None,
    };

    fn make_readings_with_utilization(percent: f64) -> [Option<f64>; READINGS.len()] {
        let mut readings = FREE.readings;
        readings[0] = Some(percent);
        readings
    }

    fn make_readings_with_memory(gib: Option<f64>) -> [Option<f64>; READINGS.len()] {
        let mut readings = FREE.readings;
        readings[1] = gib.map(|gib| gib * GIB);
        readings
    }

    fn new_builder() -> (FleetBuilder, u32) {
        let source = FleetSource {
            kind: FleetSourceKind::Hosts,
            name: "1 host".to_owned(),
        };
        let mut builder = FleetBuilder::new(Fleet {
            state: FleetState::Current,
            ..Fleet::new_unread(source, 1, 1)
        });
        let node = builder.add_node(NewNode {
            name: "node1".to_owned(),
            health: NodeHealth::Up,
            reason: None,
            gpus: 1,
            unopenable: None,
        });
        (builder, node)
    }

    #[test]
    fn state_and_rank_are_derived_from_readings() {
        use GpuState::{Busy, Free, Idle, Lost, Unknown};
        type Case = (
            NewGpu<'static>,
            bool,
            Option<(&'static str, u8)>,
            GpuState,
            u8,
        );
        let of = |gpu, state, rank| (gpu, false, None, state, rank);
        let cases: [Case; 14] = [
            of(FREE, Free, 6),
            of(
                NewGpu {
                    processes: Some(0),
                    ..FREE
                },
                Free,
                6,
            ),
            of(
                NewGpu {
                    readings: make_readings_with_memory(Some(20.0)),
                    ..FREE
                },
                Busy,
                6,
            ),
            of(
                NewGpu {
                    readings: make_readings_with_memory(Some(20.0)),
                    processes: Some(0),
                    ..FREE
                },
                Free,
                6,
            ),
            of(
                NewGpu {
                    processes: Some(1),
                    ..FREE
                },
                Busy,
                6,
            ),
            of(
                NewGpu {
                    readings: make_readings_with_utilization(3.0),
                    ..FREE
                },
                Busy,
                6,
            ),
            (FREE, true, None, Busy, 6),
            (
                NewGpu {
                    idle_holding_s: Some(600.0),
                    ..FREE
                },
                true,
                None,
                Idle,
                4,
            ),
            of(
                NewGpu {
                    readings: make_readings_with_memory(None),
                    ..FREE
                },
                Unknown,
                1,
            ),
            of(
                NewGpu {
                    health: GpuHealth::NotResponding,
                    ..FREE
                },
                Lost,
                0,
            ),
            of(
                NewGpu {
                    health: GpuHealth::Unknown,
                    ..FREE
                },
                Unknown,
                1,
            ),
            (FREE, false, Some(("power_capped", 1)), Free, 5),
            (FREE, false, Some(("hang", 2)), Free, 3),
            (
                NewGpu {
                    idle_holding_s: Some(1.0),
                    ..FREE
                },
                false,
                Some(("xid_79", 3)),
                Idle,
                2,
            ),
        ];
        for (gpu, is_held, condition, state, rank) in cases {
            let case = format!("{gpu:?} {is_held} {condition:?}");
            let (mut builder, node) = new_builder();
            let place = builder.add_gpu(node, gpu);
            if is_held {
                let owner = FleetOwner {
                    user: Some("ana".to_owned()),
                    kind: OwnerKind::User,
                    id: String::new(),
                    namespace: None,
                };
                builder.add_owner(place, owner);
            }
            if let Some((kind, severity)) = condition {
                builder.add_condition(place, kind.to_owned(), severity);
            }
            let fleet = builder.finish();
            assert_eq!(
                (fleet.gpus.state[0], fleet.gpus.rank[0]),
                (state, rank),
                "{case}"
            );
            assert_eq!(
                (&fleet.sums.rank[..], fleet.totals.states[&state][0]),
                (&[rank][..], 1)
            );
        }
    }

    #[test]
    fn implausible_readings_are_removed() {
        let (mut builder, node) = new_builder();
        for percent in [1e308, -5.0, 101.0, 100.0, 0.0, f64::NAN] {
            let mut readings = make_readings_with_utilization(percent);
            readings[3] = Some(f64::INFINITY);
            builder.add_gpu(node, NewGpu { readings, ..FREE });
        }
        let readings = builder.finish().gpus.readings;
        assert_eq!(
            readings[UTILIZATION],
            [None, None, None, Some(100.0), Some(0.0), None]
        );
        assert!(readings["power.draw_watts"].iter().all(Option::is_none));
    }

    #[test]
    fn unlisted_gpus_and_empty_nodes_have_rows() {
        let (mut builder, node) = new_builder();
        builder.add_gpu(node, FREE);
        for gpus in [4, 0] {
            builder.add_node(NewNode {
                name: "gone".to_owned(),
                health: NodeHealth::Unreachable,
                reason: None,
                gpus,
                unopenable: None,
            });
        }
        let fleet = builder.finish();
        assert_eq!(fleet.gpus.unlisted, [1, 1, 1, 1, 2]);
        assert_eq!(fleet.sums.gpus, [1, 4, 0], "no GPU of the last is known");
        assert_eq!(fleet.sums.states[&GpuState::Unknown], [0, 4, 0]);
        assert_eq!(fleet.sums.rank, [6, 1, 1]);
        assert_eq!(fleet.totals.gpus, [5]);
    }

    #[test]
    fn fleet_sums_and_ranks_match_shared_cases() {
        let text = include_str!("../filter-cases.json");
        let mut cases: BTreeMap<String, serde_json::Value> = serde_json::from_str(text).unwrap();
        let sent: Fleet = serde_json::from_value(cases.remove("fleet").unwrap()).unwrap();
        let mut derived = Fleet {
            gpus: FleetGpus {
                state: Vec::new(),
                rank: Vec::new(),
                unlisted: Vec::new(),
                ..sent.gpus.clone()
            },
            sums: FleetSums::default(),
            totals: FleetSums::default(),
            ..sent.clone()
        };
        derived.derive_values();
        assert_eq!(
            derived,
            sent,
            "{}",
            serde_json::to_string(&derived).unwrap()
        );
    }
}
