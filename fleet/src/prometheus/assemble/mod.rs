//! A fleet, assembled from the facts of single series.

mod gpus;
mod health;
mod missing;
mod nodes;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

pub(super) use self::nodes::Nodes;
use self::{
    gpus::{Exported, Gpu, gather},
    health::Health,
};
use super::{
    facts::{Fact, More},
    metrics::Families,
    questions::QuestionName,
    target::Target,
};
use crate::{
    builder::{FleetBuilder, NewGpu, NewNode},
    model::{
        Fleet, FleetOwner, FleetSource, FleetState, GpuHealth, OwnerKind, READINGS, Resolution,
    },
};

/// The newest facts of each query.
#[derive(Debug, Default)]
pub(super) struct FactsByQuestion(BTreeMap<QuestionName, Arc<Vec<Fact>>>);

impl FactsByQuestion {
    pub(super) fn of(&self, question: QuestionName) -> &[Fact] {
        self.0.get(&question).map_or(&[], |facts| facts)
    }

    pub(super) fn set(&mut self, question: QuestionName, facts: Arc<Vec<Fact>>) {
        self.0.insert(question, facts);
    }
}

/// The inputs from which a fleet is assembled.
pub(super) struct Inputs<'a> {
    pub(super) at_ms: u64,
    pub(super) facts: &'a FactsByQuestion,
    pub(super) resolution: Resolution,
    /// The families of metrics that exist.
    pub(super) present: Families,
    pub(super) source: FleetSource,
    pub(super) state: FleetState,
    pub(super) problems: Vec<String>,
    pub(super) refresh_s: u32,
    /// The times at which nodes last had series, in milliseconds since 1970.
    pub(super) seen: &'a HashMap<String, u64>,
}

/// The assembled fleet, with further results.
#[derive(Debug)]
pub(super) struct Assembled {
    pub(super) fleet: Fleet,
    /// The nodes with their targets.
    pub(super) nodes: Nodes,
    /// The times at which nodes last had series.
    pub(super) seen: HashMap<String, u64>,
    /// Whether gpumon exports every GPU that dcgm-exporter does.
    pub(super) is_dcgm_covered: bool,
    /// Pods by UID, which is how gpumon's counters name them.
    pub(super) pods: HashMap<String, FleetOwner>,
}

pub(super) fn assemble(inputs: &Inputs<'_>) -> Assembled {
    let mut nodes = Nodes::new(naming_facts(inputs.facts));
    let mut gpus = gather(inputs, &nodes);
    let health = Health::new(inputs, &nodes, &gpus);
    let is_dcgm_covered = inputs.present.own
        && gpus
            .iter()
            .flat_map(BTreeMap::values)
            .all(|gpu| gpu.gpumon == Exported::Now);
    let mut builder = FleetBuilder::new(Fleet {
        state: inputs.state,
        problems: inputs.problems.clone(),
        resolution: inputs.resolution,
        ..Fleet::unread(inputs.source.clone(), inputs.at_ms, inputs.refresh_s)
    });
    let mut places = HashMap::new();
    for (at, of_gpus) in gpus.iter_mut().enumerate() {
        // Nodes that are gone are omitted.
        if health.is_gone(at) {
            nodes.targets[at].clear();
            continue;
        }
        let (state, reason) = health.of_node(at);
        let node = builder.add_node(NewNode {
            name: nodes.names[at].clone(),
            health: state,
            reason,
            gpus: match inputs.resolution {
                Resolution::Gpu => of_gpus.len() as u32,
                Resolution::Node => health.gpus_recorded(at),
            },
            unopenable: unopenable(of_gpus, inputs),
        });
        if inputs.resolution == Resolution::Node {
            // Each node has one entry, even if no rule has recorded values for it.
            of_gpus.entry(0).or_default();
        }
        for (index, gpu) in of_gpus {
            let state = health.of_gpu(at, gpu);
            let place = builder.add_gpu(
                node,
                NewGpu {
                    index: *index,
                    model: gpu.model.as_deref(),
                    health: state,
                    readings: READINGS.map(|id| gpu.reading(id)),
                    processes: gpu.processes,
                    idle_holding_s: gpu.idle_s,
                },
            );
            places.insert((at, *index), place);
            if state != GpuHealth::Unknown {
                for (kind, severity) in &gpu.conditions {
                    builder.add_condition(place, kind.to_string(), *severity);
                }
            }
        }
    }
    add_holders(&mut builder, inputs.facts, &nodes, &places);
    let mut fleet = builder.finish();
    fleet.missing = missing::find_reasons(inputs, &fleet);
    let pods = pods(inputs.facts);
    Assembled {
        fleet,
        nodes,
        seen: health.into_seen(),
        is_dcgm_covered,
        pods,
    }
}

/// Returns the facts that determine the list of nodes, and whether each is current. The `up` series
/// of a target counts only if the target is down and no other fact has the same instance.
fn naming_facts(facts: &FactsByQuestion) -> impl Iterator<Item = (bool, &Fact)> {
    let others = || {
        facts
            .0
            .iter()
            .filter(|(question, _)| **question != QuestionName::Up)
    };
    let instance = |fact: &'_ Fact| {
        (
            Arc::clone(&fact.target.cluster),
            Arc::clone(&fact.target.instance),
        )
    };
    let targets: HashSet<&Arc<Target>> = others()
        .flat_map(|(_, all)| all.iter())
        .map(|fact| &fact.target)
        .collect();
    let named: HashSet<_> = targets
        .into_iter()
        .map(|it| (Arc::clone(&it.cluster), Arc::clone(&it.instance)))
        .collect();
    let down = facts
        .of(QuestionName::Up)
        .iter()
        .filter(|fact| fact.value < 1.0);
    let new = down
        .filter(move |fact| !named.contains(&instance(fact)))
        .map(|fact| (true, fact));
    let told = others().flat_map(|(question, all)| {
        let is_now = !question.is_slow();
        all.iter().map(move |fact| (is_now, fact))
    });
    told.chain(new)
}

fn unopenable(gpus: &BTreeMap<u32, Gpu>, inputs: &Inputs<'_>) -> Option<String> {
    let has_gpumon = gpus.values().any(|gpu| gpu.gpumon != Exported::Never);
    let is_own = gpus.is_empty() || inputs.resolution == Resolution::Node || has_gpumon;
    (!is_own).then(|| {
        "only dcgm-exporter runs there; run `gpumon serve` on the node to open it".to_owned()
    })
}

fn add_holders(
    builder: &mut FleetBuilder,
    facts: &FactsByQuestion,
    nodes: &Nodes,
    places: &HashMap<(usize, u32), u32>,
) {
    let questions = [
        QuestionName::Holders,
        QuestionName::HoldersByNode,
        QuestionName::Utilization,
    ];
    for fact in questions
        .into_iter()
        .flat_map(|question| facts.of(question))
    {
        let (More::Owner(owner, _) | More::ModelAndOwner(_, Some(owner))) = &fact.more else {
            continue;
        };
        let place = nodes
            .of(&fact.target)
            .and_then(|node| places.get(&(node, fact.gpu.unwrap_or(0))));
        if let Some(place) = place {
            builder.add_owner(*place, (**owner).clone());
        }
    }
}

fn pods(facts: &FactsByQuestion) -> HashMap<String, FleetOwner> {
    let uid = |fact: &Fact| match &fact.more {
        More::Owner(owner, uid) if owner.kind == OwnerKind::Pod && !uid.is_empty() => {
            Some((uid.to_string(), (**owner).clone()))
        }
        _ => None,
    };
    facts
        .of(QuestionName::Holders)
        .iter()
        .filter_map(uid)
        .collect()
}
