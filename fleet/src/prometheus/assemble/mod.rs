//! A fleet, of what single series say.

mod gpus;
mod health;
mod missing;
mod nodes;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use self::{
    gpus::{Exported, Gpu, Gpus, gather},
    health::Health,
    nodes::Nodes,
};
use super::{
    facts::{Fact, More},
    metrics::{Families, SHOWN},
    questions::QuestionName,
    target::Target,
};
use crate::model::{
    Fleet, FleetCondition, FleetGpus, FleetHold, FleetNodes, FleetOwner, FleetSource, FleetState,
    GpuHealth, OwnerKind, Resolution,
};

/// The newest facts of each question.
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

/// What a fleet is made of.
pub(super) struct Inputs<'a> {
    pub(super) at_ms: u64,
    pub(super) facts: &'a FactsByQuestion,
    pub(super) resolution: Resolution,
    /// Whose names there are.
    pub(super) present: Families,
    pub(super) source: FleetSource,
    pub(super) state: FleetState,
    pub(super) problems: Vec<String>,
    pub(super) refresh_s: u32,
    /// When nodes were last there, in milliseconds since 1970.
    pub(super) seen: &'a HashMap<String, u64>,
}

/// A fleet, and what else was found out.
#[derive(Debug)]
pub(super) struct Assembled {
    pub(super) fleet: Fleet,
    /// What is scraped of each node, by its name.
    pub(super) targets: HashMap<String, Vec<Arc<Target>>>,
    /// When nodes were last there.
    pub(super) seen: HashMap<String, u64>,
    /// Whether dcgm-exporter tells of no GPU that gpumon does not.
    pub(super) is_dcgm_covered: bool,
    /// Pods by their UID, as counters of gpumon name them.
    pub(super) pods: HashMap<String, FleetOwner>,
}

pub(super) fn assemble(inputs: Inputs<'_>) -> Assembled {
    let nodes = Nodes::new(naming_facts(inputs.facts));
    let mut gpus = gather(&inputs, &nodes);
    let health = Health::new(&inputs, &nodes, &gpus);
    let is_dcgm_covered = inputs.present.own
        && gpus
            .iter()
            .flat_map(BTreeMap::values)
            .all(|gpu| gpu.gpumon == Exported::Now);
    // A node that has gone is not told of.
    let mut places = HashMap::new();
    let mut told = FleetNodes::default();
    let mut targets = HashMap::new();
    for (at, name) in nodes
        .names
        .iter()
        .enumerate()
        .filter(|(at, _)| !health.is_gone(*at))
    {
        let place = told.name.len() as u32;
        places.insert(at, place);
        let (state, reason) = health.of_node(at);
        told.health.push(state);
        told.reasons.extend(reason.map(|reason| (place, reason)));
        told.gpus.push(match inputs.resolution {
            Resolution::Gpu => gpus[at].len() as u32,
            Resolution::Node => health.gpus_recorded(at),
        });
        if let Some(why) = unopenable(&gpus[at], &inputs) {
            told.unopenable.insert(place, why);
        }
        told.name.push(name.clone());
        targets.insert(name.clone(), nodes.targets[at].clone());
    }
    if inputs.resolution == Resolution::Node {
        // Each node is one place, also one of which nothing is recorded.
        for at in places.keys() {
            gpus[*at].entry(0).or_default();
        }
    }
    let (columns, places_of_gpus, conditions) = columns(&gpus, &places, &health);
    let (owners, holds) = holders(inputs.facts, &nodes, &places_of_gpus);
    let missing = missing::reasons(&inputs, &columns, &owners);
    let pods = pods(inputs.facts);
    let fleet = Fleet {
        at_ms: inputs.at_ms,
        source: inputs.source,
        state: inputs.state,
        problems: inputs.problems,
        refresh_s: inputs.refresh_s,
        resolution: inputs.resolution,
        nodes: told,
        gpus: columns,
        owners,
        holds,
        conditions,
        missing,
    };
    Assembled {
        fleet,
        targets,
        seen: health.into_seen(),
        is_dcgm_covered,
        pods,
    }
}

/// Those that say which nodes there are. Of a target that is down, only what else names it says that.
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

type Columns = (FleetGpus, HashMap<(usize, u32), u32>, Vec<FleetCondition>);

fn columns(gpus: &Gpus, places: &HashMap<usize, u32>, health: &Health) -> Columns {
    let mut columns = FleetGpus::default();
    let mut readings: Vec<Vec<Option<f64>>> = SHOWN.map(|_| Vec::new()).into();
    let mut models: HashMap<Arc<str>, u32> = HashMap::new();
    let (mut known, mut conditions) = (HashMap::new(), Vec::new());
    for (at, index, gpu) in gpus
        .iter()
        .enumerate()
        .flat_map(|(at, gpus)| gpus.iter().map(move |(index, it)| (at, *index, it)))
    {
        let Some(node) = places.get(&at) else {
            continue;
        };
        let place = columns.node.len() as u32;
        known.insert((at, index), place);
        let state = health.of_gpu(at, gpu);
        columns.node.push(*node);
        columns.index.push(index);
        columns.model.push(gpu.model.as_ref().map(|name| {
            let next = models.len() as u32;
            *models.entry(Arc::clone(name)).or_insert_with(|| {
                columns.models.push(name.to_string());
                next
            })
        }));
        columns.health.push(state);
        for (column, id) in readings.iter_mut().zip(SHOWN) {
            // What it can hold stays, and what it did is over.
            let is_limit = id == super::metrics::MEMORY_TOTAL || id == super::metrics::POWER_LIMIT;
            column.push(
                gpu.reading(id)
                    .filter(|_| state == GpuHealth::Ok || is_limit),
            );
        }
        let is_ok = state == GpuHealth::Ok;
        columns.processes.push(gpu.processes.filter(|_| is_ok));
        columns.idle_holding_s.push(gpu.idle_s.filter(|_| is_ok));
        let told = gpu
            .conditions
            .iter()
            .filter(|_| state != GpuHealth::Unknown);
        conditions.extend(told.map(|(kind, severity)| FleetCondition {
            gpu: place,
            kind: kind.to_string(),
            severity: *severity,
        }));
    }
    columns.readings = SHOWN
        .iter()
        .map(|id| (*id).to_owned())
        .zip(readings)
        .collect();
    (columns, known, conditions)
}

fn holders(
    facts: &FactsByQuestion,
    nodes: &Nodes,
    places: &HashMap<(usize, u32), u32>,
) -> (Vec<FleetOwner>, Vec<FleetHold>) {
    let questions = [
        QuestionName::Holders,
        QuestionName::HoldersByNode,
        QuestionName::Utilization,
    ];
    let mut all: BTreeMap<&FleetOwner, Vec<u32>> = BTreeMap::new();
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
            all.entry(owner).or_default().push(*place);
        }
    }
    let mut holds = Vec::new();
    for (owner, places) in all.values_mut().enumerate() {
        places.sort_unstable();
        places.dedup();
        holds.extend(places.iter().map(|gpu| FleetHold {
            gpu: *gpu,
            owner: owner as u32,
        }));
    }
    holds.sort_unstable_by_key(|hold| (hold.gpu, hold.owner));
    (all.into_keys().cloned().collect(), holds)
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
