//! Builds a fleet node by node and GPU by GPU.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::model::{
    Fleet, FleetCondition, FleetHold, FleetOwner, GpuHealth, MEMORY_TOTAL, NodeHealth, POWER_LIMIT,
    READINGS,
};

/// Fills the columns of a fleet.
#[derive(Debug)]
pub struct FleetBuilder {
    fleet: Fleet,
    models: HashMap<String, u32>,
    holders: BTreeMap<FleetOwner, BTreeSet<u32>>,
}

/// One node.
#[derive(Debug)]
pub struct NewNode {
    /// Its name.
    pub name: String,
    /// Whether it can be read.
    pub health: NodeHealth,
    /// Why it is not up.
    pub reason: Option<String>,
    /// How many GPUs it has.
    pub gpus: u32,
    /// Why it cannot be opened.
    pub unopenable: Option<String>,
}

/// One GPU, or one node if only sums over its GPUs are known.
#[derive(Debug, Clone, Copy)]
pub struct NewGpu<'a> {
    /// NVML's index.
    pub index: u32,
    /// Its name.
    pub model: Option<&'a str>,
    /// Whether it responds.
    pub health: GpuHealth,
    /// Its readings, in the order of [`READINGS`].
    pub readings: [Option<f64>; READINGS.len()],
    /// How many processes use it.
    pub processes: Option<u32>,
    /// How long it has been idle while its memory is held, in seconds.
    pub idle_holding_s: Option<f64>,
}

impl FleetBuilder {
    /// Starts with a fleet that has no nodes.
    pub fn new(mut fleet: Fleet) -> Self {
        fleet.gpus.readings = READINGS.map(|id| (id.to_owned(), Vec::new())).into();
        Self {
            fleet,
            models: HashMap::new(),
            holders: BTreeMap::new(),
        }
    }

    /// Adds a node and returns its place.
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

    /// Adds a GPU of a node and returns its place. Of a GPU that does not respond, only the limits
    /// of its readings are kept.
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

    /// Adds an owner that holds a GPU.
    pub fn add_owner(&mut self, gpu: u32, owner: FleetOwner) {
        self.holders.entry(owner).or_default().insert(gpu);
    }

    /// Adds a condition of a GPU.
    pub fn add_condition(&mut self, gpu: u32, kind: String, severity: u8) {
        self.fleet.conditions.push(FleetCondition {
            gpu,
            kind,
            severity,
        });
    }

    /// Returns the fleet with everything that is derived from its readings.
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
