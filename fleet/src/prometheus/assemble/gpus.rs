//! Assembly of each node's GPUs from the values of individual series, and the health of nodes and
//! GPUs.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use gpumon_probe::vendor::describe_error;

use super::{Inputs, nodes::Nodes};
use crate::{
    model::{GpuHealth, HELD_BYTES, NodeHealth, READINGS},
    prometheus::{
        facts::{Fact, FactDetail},
        metrics::{self, Family},
        query_table::{QueryName, STUCK_S},
    },
};

/// The time range that the query `IdleDcgm` covers, in seconds.
const IDLE_DCGM_S: f64 = 1800.0;

/// The default time, in seconds, for which a GPU with memory in use must be idle before gpumon
/// reports it.
const HELD_IDLE_S: f64 = 300.0;

/// How recently gpumon exported data for a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ExportTime {
    #[default]
    Never,
    /// gpumon has exported data for the GPU within the last hour, but may have stopped since then.
    Lately,
    Now,
}

/// The data about one GPU from all series.
#[derive(Debug, Default)]
pub(super) struct Gpu {
    pub(super) model: Option<Arc<str>>,
    readings: [Option<(Family, f64)>; READINGS.len()],
    /// For each reading, the value of the GPU's MIG devices together: the sum for memory, and the
    /// maximum for all other readings. It is used only if the reading has no value for the whole
    /// GPU.
    parts: [Option<f64>; READINGS.len()],
    /// The parts of the total memory, by reading, from dcgm-exporter's metrics. The first map is
    /// for the whole GPU, the second for its MIG devices.
    memory: [BTreeMap<&'static str, f64>; 2],
    pub(super) processes: Option<u32>,
    pub(super) is_down: bool,
    /// Whether any of the GPU's data is current.
    pub(super) is_current: bool,
    pub(super) gpumon: ExportTime,
    pub(super) idle_s: Option<f64>,
    /// The severity of each condition, by its name.
    pub(super) conditions: BTreeMap<Arc<str>, u8>,
}

/// The GPUs of each node, by index. If the fleet lists only nodes, each node has a single entry.
pub(super) type Gpus = Vec<BTreeMap<u32, Gpu>>;

pub(super) fn gather_gpus(inputs: &Inputs<'_>, nodes: &Nodes) -> Gpus {
    let mut gpus: Gpus = nodes.names.iter().map(|_| BTreeMap::new()).collect();
    let mut each = |question: QueryName, take: &mut dyn FnMut(&mut Gpu, &Fact)| {
        for fact in inputs.facts.find_facts(question) {
            let Some(node) = nodes.find_node_of_target(&fact.target) else {
                continue;
            };
            take(gpus[node].entry(fact.gpu.unwrap_or(0)).or_default(), fact);
        }
    };
    for question in [
        QueryName::Utilization,
        QueryName::MemoryUsed,
        QueryName::Power,
        QueryName::Temperature,
        QueryName::PowerLimit,
        QueryName::MemoryTotal,
        QueryName::ByNode,
    ] {
        let is_now = !question.is_infrequent();
        each(question, &mut |gpu, fact| {
            gpu.is_current |= is_now;
            if fact.family == Family::Own {
                gpu.gpumon = ExportTime::Now;
            }
            gpu.add_reading(
                fact,
                question == QueryName::MemoryTotal && fact.family.is_dcgm(),
            );
        });
    }
    for question in [QueryName::Roster, QueryName::ModelsByNode] {
        each(question, &mut |gpu, fact| {
            if fact.family == Family::Own {
                gpu.gpumon = gpu.gpumon.max(ExportTime::Lately);
            }
            gpu.set_model(fact);
        });
    }
    each(QueryName::Down, &mut |gpu, _| {
        (gpu.is_down, gpu.is_current, gpu.gpumon) = (true, true, ExportTime::Now);
    });
    each(QueryName::Processes, &mut |gpu, fact| {
        gpu.processes = Some(fact.value as u32);
    });
    for question in [
        QueryName::Conditions,
        QueryName::Xids,
        QueryName::ConditionsByNode,
    ] {
        each(question, &mut |gpu, fact| {
            gpu.add_condition(fact, question);
        });
    }
    each(QueryName::HeldIdle, &mut |gpu, fact| {
        if gpu.conditions.contains_key("held_idle") {
            gpu.idle_s = Some(
                gpu.idle_s
                    .unwrap_or(HELD_IDLE_S)
                    .max(fact.value + HELD_IDLE_S),
            );
        }
    });
    each(QueryName::IdleDcgm, &mut |gpu, _| {
        let is_held = gpu
            .find_reading(metrics::MEMORY_USED)
            .is_some_and(|used| used > HELD_BYTES);
        if gpu.gpumon != ExportTime::Now
            && is_held
            && gpu.find_reading(metrics::UTILIZATION) == Some(0.0)
        {
            gpu.idle_s = Some(IDLE_DCGM_S);
        }
    });
    for gpu in gpus.iter_mut().flat_map(BTreeMap::values_mut) {
        gpu.merge_collected_data();
    }
    gpus
}

impl Gpu {
    pub(super) fn find_reading(&self, id: &str) -> Option<f64> {
        let at = READINGS.iter().position(|known| *known == id)?;
        self.readings[at].map(|(_, value)| value)
    }

    fn add_reading(&mut self, fact: &Fact, is_summand: bool) {
        self.set_model(fact);
        if fact.id == "gpus_down" {
            self.is_down |= fact.value > 0.0;
        }
        if is_summand && fact.id != metrics::MEMORY_TOTAL {
            let [whole, parts] = &mut self.memory;
            if fact.is_part {
                *parts.entry(fact.id).or_default() += fact.value;
            } else {
                whole.insert(fact.id, fact.value);
            }
            return;
        }
        let Some(at) = READINGS.iter().position(|known| *known == fact.id) else {
            return;
        };
        if fact.is_part {
            let is_sum = [metrics::MEMORY_USED, metrics::MEMORY_TOTAL].contains(&fact.id);
            let before = self.parts[at];
            let both = |it: f64| {
                if is_sum {
                    it + fact.value
                } else {
                    it.max(fact.value)
                }
            };
            self.parts[at] = Some(before.map_or(fact.value, both));
        } else if self.readings[at].is_none_or(|(family, _)| fact.family < family) {
            self.readings[at] = Some((fact.family, fact.value));
        }
    }

    fn set_model(&mut self, fact: &Fact) {
        if let FactDetail::Model(name, _) | FactDetail::ModelAndOwner(name, _) = &fact.more
            && !name.is_empty()
            && (self.model.is_none() || fact.family == Family::Own)
        {
            self.model = Some(Arc::clone(name));
        }
    }

    fn add_condition(&mut self, fact: &Fact, question: QueryName) {
        let FactDetail::Word(kind) = &fact.more else {
            return;
        };
        let is_xid = kind.strip_prefix("xid_").and_then(|code| code.parse().ok());
        let severity = match is_xid {
            Some(code) => describe_error(code).severity.rank(),
            None => (fact.value as u8).clamp(1, 3),
        };
        // dcgm-exporter continues to export an Xid after the problem is resolved, while gpumon does
        // not. The Xids from dcgm-exporter are therefore ignored for GPUs that gpumon exports.
        if question == QueryName::Xids && self.gpumon == ExportTime::Now {
            return;
        }
        let known = self.conditions.entry(Arc::clone(kind)).or_default();
        *known = severity.max(*known);
        if &**kind == "held_idle" {
            self.idle_s = Some(HELD_IDLE_S);
        }
    }

    fn merge_collected_data(&mut self) {
        // Conditions with the number of an Xid are more informative than the generic `xid`.
        if self.conditions.keys().any(|kind| kind.starts_with("xid_"))
            && let Some(severity) = self.conditions.remove("xid")
            && let Some(worst) = self
                .conditions
                .iter_mut()
                .filter(|(kind, _)| kind.starts_with("xid_"))
                .map(|it| it.1)
                .max()
        {
            *worst = severity.max(*worst);
        }
        for (reading, part) in self.readings.iter_mut().zip(self.parts) {
            *reading = reading.or(part.map(|value| (Family::Old, value)));
        }
        let total = READINGS.iter().position(|id| *id == metrics::MEMORY_TOTAL);
        if let Some(at) = total.filter(|at| self.readings[*at].is_none()) {
            let is_all = |it: &&BTreeMap<&str, f64>| {
                it.contains_key(metrics::MEMORY_USED) && it.contains_key(metrics::MEMORY_FREE)
            };
            let total = self
                .memory
                .iter()
                .find(is_all)
                .map(|parts| parts.values().sum());
            self.readings[at] = total.map(|total| (Family::Old, total));
        }
    }
}

/// How long a node without any series remains listed, in milliseconds.
const MAX_NODE_ABSENCE_MS: u64 = 300_000;

/// The health of all nodes and GPUs, with the reason for each that is unhealthy.
pub(super) struct FleetHealth {
    pub(super) nodes: Vec<NodeData>,
    /// Whether current data about any GPU is available.
    has_readings: bool,
    /// The time at which each node last had series, by node name, in milliseconds since 1970.
    pub(super) seen: HashMap<String, u64>,
}

#[derive(Debug, Default)]
pub(super) struct NodeData {
    /// Whether Prometheus could scrape any of the node's targets; `None` if that is unknown.
    is_up: Option<bool>,
    is_current: bool,
    has_gpus: bool,
    /// The state of the node's collector, if it reports one.
    state: Option<String>,
    /// How old the newest sample is, in seconds, if it is too old to be current.
    stuck_s: Option<f64>,
    /// The time at which the node last had series, in milliseconds since 1970, or `None` if that is
    /// too long ago.
    seen_ms: Option<u64>,
    at_ms: u64,
    /// The number of GPUs in the node according to Prometheus' recording rules.
    pub(super) gpus_recorded: u32,
}

impl FleetHealth {
    pub(super) fn new(inputs: &Inputs<'_>, nodes: &Nodes, gpus: &Gpus) -> Self {
        let is_current = |gpus: &BTreeMap<u32, Gpu>| gpus.values().any(|gpu| gpu.is_current);
        let known = |gpus: &BTreeMap<u32, Gpu>| NodeData {
            is_current: is_current(gpus),
            has_gpus: is_current(gpus),
            at_ms: inputs.at_ms,
            ..NodeData::default()
        };
        let mut all: Vec<NodeData> = gpus.iter().map(known).collect();
        for fact in inputs.facts.find_facts(QueryName::States) {
            let Some(node) = nodes
                .find_node_of_target(&fact.target)
                .map(|at| &mut all[at])
            else {
                continue;
            };
            node.is_current = true;
            match &fact.more {
                FactDetail::Word(word) if &**word == "stuck" => node.stuck_s = Some(fact.value),
                FactDetail::Word(word) => node.state = Some(word.to_string()),
                _ => {}
            }
        }
        for fact in inputs.facts.find_facts(QueryName::Up) {
            if let Some(at) = nodes.find_node_of_target(&fact.target) {
                let up = all[at].is_up.get_or_insert(false);
                *up |= fact.value >= 1.0;
            }
        }
        for fact in inputs
            .facts
            .find_facts(QueryName::ByNode)
            .iter()
            .filter(|fact| fact.id == "gpus")
        {
            if let Some(at) = nodes.find_node_of_target(&fact.target) {
                all[at].gpus_recorded = all[at].gpus_recorded.max(fact.value as u32);
            }
        }
        let mut seen = HashMap::new();
        for (node, name) in all.iter_mut().zip(&nodes.names) {
            let is_there = node.is_current || node.is_up == Some(true);
            let last = if is_there {
                Some(inputs.at_ms)
            } else {
                inputs.seen.get(name).copied()
            };
            let last = last.filter(|at| inputs.at_ms.saturating_sub(*at) < MAX_NODE_ABSENCE_MS);
            seen.extend(last.map(|at| (name.clone(), at)));
            node.seen_ms = last;
        }
        Self {
            has_readings: all.iter().any(|node| node.has_gpus),
            nodes: all,
            seen,
        }
    }

    /// Returns `true` if the node has been gone for so long that it is no longer listed.
    pub(super) fn is_node_gone(&self, node: usize) -> bool {
        let node = &self.nodes[node];
        node.is_up.is_none() && !node.is_current && node.seen_ms.is_none()
    }

    pub(super) fn node_health(&self, node: usize) -> (NodeHealth, Option<String>) {
        let node = &self.nodes[node];
        let unreachable = |why: String| (NodeHealth::Unreachable, Some(why));
        let silent = |why: String| (NodeHealth::NoReadings, Some(why));
        match (node.is_up, node.state.as_deref(), node.stuck_s) {
            (Some(false), ..) => unreachable(
                "Prometheus cannot scrape this node. Check the node, then its gpumon service, \
                 token and certificate"
                    .to_owned(),
            ),
            (None, ..) if !node.is_current => {
                let ago = node
                    .at_ms
                    .saturating_sub(node.seen_ms.unwrap_or(node.at_ms))
                    / 1000;
                unreachable(format!(
                    "Prometheus has received nothing from this node for {ago} s; check that the \
                     scrape configuration still includes the node"
                ))
            }
            (_, Some("paused"), _) => {
                silent("gpumon is paused on this node; resume it with `gpumon resume`".to_owned())
            }
            (_, Some(state @ ("starting" | "restarting")), _) => silent(format!(
                "the collector of this node is {state}; this may take a minute"
            )),
            (_, Some("unavailable"), _) => silent(
                "gpumon cannot read any GPU on this node; run `gpumon doctor` there to find out \
                 why"
                .to_owned(),
            ),
            (_, _, Some(age)) => silent(format!(
                "this node has had no new sample for {age:.0} s (limit: {STUCK_S} s): the \
                 driver hangs, or the collector does not start; run `gpumon doctor` there to \
                 find out which"
            )),
            _ if !node.has_gpus && self.has_readings => silent(
                "this node responds, but reports no GPU; run `gpumon doctor` there to find out why"
                    .to_owned(),
            ),
            _ => (NodeHealth::Up, None),
        }
    }

    pub(super) fn gpu_health(&self, node: usize, gpu: &Gpu) -> GpuHealth {
        match self.node_health(node).0 {
            NodeHealth::Unreachable => GpuHealth::Unknown,
            _ if gpu.is_down => GpuHealth::NotResponding,
            _ if gpu.is_current => GpuHealth::Ok,
            NodeHealth::Up if self.has_readings => GpuHealth::NotResponding,
            _ => GpuHealth::Unknown,
        }
    }
}
