//! The health of nodes and GPUs, and the reasons why they are unhealthy.

use std::collections::{BTreeMap, HashMap};

use super::{
    super::{
        facts::FactDetail,
        questions::{QueryName, STUCK_S},
    },
    Inputs,
    gpus::{Gpu, Gpus},
    nodes::Nodes,
};
use crate::model::{GpuHealth, NodeHealth};

/// How long a node without any series remains listed, in milliseconds.
const MAX_ABSENCE_MS: u64 = 300_000;

/// The health of all nodes.
pub(super) struct Health {
    nodes: Vec<Node>,
    /// Whether current data about any GPU is available.
    has_readings: bool,
    seen: HashMap<String, u64>,
}

#[derive(Debug, Default)]
struct Node {
    /// Whether any of the node's targets could be scraped, or `None` if that is unknown.
    is_up: Option<bool>,
    is_current: bool,
    has_gpus: bool,
    /// The state of the node's collector, if it reports one.
    state: Option<String>,
    /// The age of the newest sample in seconds, if it is too old.
    stuck_s: Option<f64>,
    /// The time at which the node last had series, in milliseconds since 1970, or `None` if that is
    /// too long ago.
    seen_ms: Option<u64>,
    at_ms: u64,
    gpus_recorded: u32,
}

impl Health {
    pub(super) fn new(inputs: &Inputs<'_>, nodes: &Nodes, gpus: &Gpus) -> Self {
        let is_current = |gpus: &BTreeMap<u32, Gpu>| gpus.values().any(|gpu| gpu.is_current);
        let known = |gpus: &BTreeMap<u32, Gpu>| Node {
            is_current: is_current(gpus),
            has_gpus: is_current(gpus),
            at_ms: inputs.at_ms,
            ..Node::default()
        };
        let mut all: Vec<Node> = gpus.iter().map(known).collect();
        for fact in inputs.facts.find_facts(QueryName::States) {
            let Some(node) = nodes.find_node(&fact.target).map(|at| &mut all[at]) else {
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
            if let Some(at) = nodes.find_node(&fact.target) {
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
            if let Some(at) = nodes.find_node(&fact.target) {
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
            let last = last.filter(|at| inputs.at_ms.saturating_sub(*at) < MAX_ABSENCE_MS);
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
    pub(super) fn is_gone(&self, node: usize) -> bool {
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
                    "Prometheus has received nothing from this node for {ago} s, and reports no \
                     reason"
                ))
            }
            (_, Some("paused"), _) => {
                silent("gpumon is paused on this node; resume it with `gpumon resume`".to_owned())
            }
            (_, Some(state @ ("starting" | "restarting")), _) => silent(format!(
                "the collector of this node is {state}; this may take a minute"
            )),
            (_, Some("unavailable"), _) => silent(
                "gpumon reads no GPUs on this node; run `gpumon doctor` there to find out why"
                    .to_owned(),
            ),
            (_, _, Some(age)) => silent(format!(
                "this node has had no new sample for {age:.0} s (above {STUCK_S} s): the driver \
                 hangs, or the collector does not start; run `gpumon doctor` there to find out \
                 which"
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

    /// Returns the number of GPUs in the node according to Prometheus' recording rules.
    pub(super) fn count_recorded_gpus(&self, node: usize) -> u32 {
        self.nodes[node].gpus_recorded
    }

    pub(super) fn into_last_seen_times(self) -> HashMap<String, u64> {
        self.seen
    }
}
