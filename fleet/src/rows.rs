//! Row-wise access to a fleet's GPUs.

use std::{cmp::Reverse, collections::HashMap};

use crate::model::{Fleet, FleetCondition, FleetOwner, GpuState, Resolution};

/// The rank of a GPU about which nothing is known.
pub(crate) const UNKNOWN_RANK: u8 = 1;

/// The rows of a fleet: one per GPU, or one per node if the fleet lists only nodes. GPUs that the
/// fleet does not list follow as rows without data.
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
    pub fn lists_gpus(&self) -> bool {
        self.fleet.resolution == Resolution::Gpu
    }

    pub fn state(&self, row: usize) -> GpuState {
        let state = self.fleet.gpus.state.get(row).copied();
        state.unwrap_or(GpuState::Unknown)
    }

    /// Returns the rank of a row's state. A lower rank is worse.
    pub fn rank(&self, row: usize) -> u8 {
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
        match (self.lists_gpus(), self.is_listed(row)) {
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
    pub fn idle_s(&self, row: usize) -> Option<f64> {
        *self.fleet.gpus.idle_holding_s.get(row)?
    }
}
