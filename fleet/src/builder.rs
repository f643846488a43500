//! A builder that assembles a fleet from its nodes and GPUs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::model::{
    Fleet, FleetCondition, FleetHold, FleetOwner, GpuHealth, MEMORY_TOTAL, NodeHealth, POWER_LIMIT,
    READINGS,
};

#[derive(Debug)]
pub struct FleetBuilder {
    fleet: Fleet,
    models: HashMap<String, u32>,
    holders: BTreeMap<FleetOwner, BTreeSet<u32>>,
}

/// A node to add.
#[derive(Debug)]
pub struct NewNode {
    pub name: String,
    pub health: NodeHealth,
    /// The reason why the node is not up.
    pub reason: Option<String>,
    /// The number of GPUs in the node.
    pub gpus: u32,
    /// The reason why the node's page cannot be opened, if it cannot.
    pub unopenable: Option<String>,
}

/// A GPU to add to the fleet. If only the sums over a node's GPUs are known, the entry represents
/// the whole node.
#[derive(Debug, Clone, Copy)]
pub struct NewGpu<'a> {
    /// The GPU's NVML index.
    pub index: u32,
    pub model: Option<&'a str>,
    pub health: GpuHealth,
    /// The readings, in the order of [`READINGS`].
    pub readings: [Option<f64>; READINGS.len()],
    /// The number of processes that use the GPU.
    pub processes: Option<u32>,
    /// How long the GPU has been idle although its memory is in use, in seconds.
    pub idle_holding_s: Option<f64>,
}

impl FleetBuilder {
    /// Creates a builder for a fleet without nodes.
    pub fn new(mut fleet: Fleet) -> Self {
        fleet.gpus.readings = READINGS.map(|id| (id.to_owned(), Vec::new())).into();
        Self {
            fleet,
            models: HashMap::new(),
            holders: BTreeMap::new(),
        }
    }

    /// Adds a node and returns its position.
    pub fn add_node(&mut self, node: NewNode) -> u32 {
        let nodes = &mut self.fleet.nodes;
        let place = nodes.name.len() as u32;
        nodes.name.push(node.name);
        nodes.health.push(node.health);
        nodes.gpus.push(node.gpus);
        let reason = node.reason.map(|reason| (place, reason));
        nodes.reasons.extend(reason);
        let unopenable = node.unopenable.map(|why| (place, why));
        nodes.unopenable.extend(unopenable);
        place
    }

    /// Adds a GPU to `node` and returns its position. If the GPU does not respond, only its total
    /// memory and power limit are kept.
    pub fn add_gpu(&mut self, node: u32, gpu: NewGpu<'_>) -> u32 {
        let is_ok = gpu.health == GpuHealth::Ok;
        let gpus = &mut self.fleet.gpus;
        let place = gpus.node.len() as u32;
        gpus.node.push(node);
        gpus.index.push(gpu.index);
        gpus.model.push(gpu.model.map(|name| {
            *self.models.entry(name.to_owned()).or_insert_with(|| {
                gpus.models.push(name.to_owned());
                gpus.models.len() as u32 - 1
            })
        }));
        gpus.health.push(gpu.health);
        for (id, value) in READINGS.into_iter().zip(gpu.readings) {
            let is_limit = id == MEMORY_TOTAL || id == POWER_LIMIT;
            if let Some(values) = gpus.readings.get_mut(id) {
                values.push(value.filter(|_| is_ok || is_limit));
            }
        }
        gpus.processes.push(gpu.processes.filter(|_| is_ok));
        let idle_s = gpu.idle_holding_s.filter(|_| is_ok);
        gpus.idle_holding_s.push(idle_s);
        place
    }

    /// Records that `owner` uses the GPU at position `gpu`.
    pub fn add_owner(&mut self, gpu: u32, owner: FleetOwner) {
        self.holders.entry(owner).or_default().insert(gpu);
    }

    pub fn add_condition(&mut self, gpu: u32, kind: String, severity: u8) {
        self.fleet.conditions.push(FleetCondition {
            gpu,
            kind,
            severity,
        });
    }

    /// Computes all derived values, such as states, ranks, and sums, and returns the finished
    /// fleet.
    pub fn finish(mut self) -> Fleet {
        for (owner, gpus) in self.holders {
            let place = self.fleet.owners.len() as u32;
            self.fleet.owners.push(owner);
            let holds = gpus.into_iter().map(|gpu| FleetHold { gpu, owner: place });
            self.fleet.holds.extend(holds);
        }
        self.fleet
            .holds
            .sort_unstable_by_key(|hold| (hold.gpu, hold.owner));
        self.fleet.derive_values();
        self.fleet
    }
}
