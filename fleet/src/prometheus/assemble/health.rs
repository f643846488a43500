//! The health of nodes and GPUs, and the reasons for problems.

use std::collections::{BTreeMap, HashMap};

use super::{
    super::{
        facts::More,
        questions::{QuestionName, STUCK_S},
    },
    Inputs,
    gpus::{Gpu, Gpus},
    nodes::Nodes,
};
use crate::model::{GpuHealth, NodeHealth};

/// How long a node without any series is still listed, in milliseconds.
const REMEMBERED_MS: u64 = 300_000;

/// The health of all nodes.
pub(super) struct Health {
    nodes: Vec<Node>,
    /// Whether any current facts about GPUs are known.
    has_readings: bool,
    seen: HashMap<String, u64>,
}

#[derive(Debug, Default)]
struct Node {
    /// Whether any target of the node could be scraped, or `None` if that is unknown.
    is_up: Option<bool>,
    is_current: bool,
    has_gpus: bool,
    /// The state of the node's collector.
    state: Option<String>,
    /// The age of the newest sample in seconds, if it is too old.
    stuck_s: Option<f64>,
    /// The time at which the node last had series, if it has none at present.
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
        for fact in inputs.facts.of(QuestionName::States) {
            let Some(node) = nodes.of(&fact.target).map(|at| &mut all[at]) else {
                continue;
            };
            node.is_current = true;
            match &fact.more {
                More::Word(word) if &**word == "stuck" => node.stuck_s = Some(fact.value),
                More::Word(word) => node.state = Some(word.to_string()),
                _ => {}
            }
        }
        for fact in inputs.facts.of(QuestionName::Up) {
            if let Some(at) = nodes.of(&fact.target) {
                let up = all[at].is_up.get_or_insert(false);
                *up |= fact.value >= 1.0;
            }
        }
        for fact in inputs
            .facts
            .of(QuestionName::ByNode)
            .iter()
            .filter(|fact| fact.id == "gpus")
        {
            if let Some(at) = nodes.of(&fact.target) {
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
            let last = last.filter(|at| inputs.at_ms.saturating_sub(*at) < REMEMBERED_MS);
            seen.extend(last.map(|at| (name.clone(), at)));
            node.seen_ms = last;
        }
        Self {
            has_readings: all.iter().any(|node| node.has_gpus),
            nodes: all,
            seen,
        }
    }

    /// Returns `true` if the node is no longer listed.
    pub(super) fn is_gone(&self, node: usize) -> bool {
        let node = &self.nodes[node];
        node.is_up.is_none() && !node.is_current && node.seen_ms.is_none()
    }

    pub(super) fn of_node(&self, node: usize) -> (NodeHealth, Option<String>) {
        let node = &self.nodes[node];
        let unreachable = |why: String| (NodeHealth::Unreachable, Some(why));
        let silent = |why: String| (NodeHealth::NoReadings, Some(why));
        match (node.is_up, node.state.as_deref(), node.stuck_s) {
            (Some(false), ..) => unreachable(
                "Prometheus cannot scrape it. Check the node, then its service of gpumon, its token and certificate"
                    .to_owned(),
            ),
            (None, ..) if !node.is_current => {
                let ago = node.at_ms.saturating_sub(node.seen_ms.unwrap_or(node.at_ms)) / 1000;
                unreachable(format!("Prometheus has had nothing of it for {ago} s, and does not say why"))
            }
            (_, Some("paused"), _) => silent("gpumon is paused there; `gpumon resume` ends that".to_owned()),
            (_, Some(state @ ("starting" | "restarting")), _) => {
                silent(format!("its collector is {state}; it may take a minute"))
            }
            (_, Some("unavailable"), _) => silent("gpumon reads no GPUs there; `gpumon doctor` says why".to_owned()),
            (_, _, Some(age)) => silent(format!(
                "it has had no new sample for {age:.0} s (above {STUCK_S} s): the driver hangs, or the collector does not \
                 start; `gpumon doctor` there says which"
            )),
            _ if !node.has_gpus && self.has_readings => {
                silent("it answers, and tells of no GPU; `gpumon doctor` there says why".to_owned())
            }
            _ => (NodeHealth::Up, None),
        }
    }

    pub(super) fn of_gpu(&self, node: usize, gpu: &Gpu) -> GpuHealth {
        match self.of_node(node).0 {
            NodeHealth::Unreachable => GpuHealth::Unknown,
            _ if gpu.is_down => GpuHealth::NotResponding,
            _ if gpu.is_current => GpuHealth::Ok,
            NodeHealth::Up if self.has_readings => GpuHealth::NotResponding,
            _ => GpuHealth::Unknown,
        }
    }

    /// Returns the number of GPUs that recording rules have counted.
    pub(super) fn gpus_recorded(&self, node: usize) -> u32 {
        self.nodes[node].gpus_recorded
    }

    pub(super) fn into_seen(self) -> HashMap<String, u64> {
        self.seen
    }
}
