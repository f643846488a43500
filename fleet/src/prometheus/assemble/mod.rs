//! Assembly of a fleet from the values of individual series, with the reasons for missing readings.

mod gpus;
mod nodes;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use gpus::{ExportTime, FleetHealth, Gpu, gather_gpus};

use super::{
    facts::{Fact, FactDetail},
    labels::Target,
    metrics::{Families, Family, Reading},
    query_table::QueryName,
};
use crate::{
    model::{
        Fleet, FleetOwner, FleetSource, FleetState, GpuHealth, OwnerKind, READINGS, Resolution,
    },
    source::{FleetBuilder, NewGpu, NewNode},
};

pub(super) use nodes::Nodes;

/// The most recent values from each query.
#[derive(Debug, Default)]
pub(super) struct FactsByQuery(BTreeMap<QueryName, Arc<Vec<Fact>>>);

impl FactsByQuery {
    pub(super) fn find_facts(&self, question: QueryName) -> &[Fact] {
        self.0.get(&question).map_or(&[], |facts| facts)
    }

    pub(super) fn set(&mut self, question: QueryName, facts: Arc<Vec<Fact>>) {
        self.0.insert(question, facts);
    }
}

/// The data from which a fleet is assembled.
pub(super) struct Inputs<'a> {
    pub(super) at_ms: u64,
    pub(super) facts: &'a FactsByQuery,
    pub(super) resolution: Resolution,
    /// The metric families that exist in Prometheus.
    pub(super) present: Families,
    pub(super) source: FleetSource,
    pub(super) state: FleetState,
    pub(super) problems: Vec<String>,
    pub(super) refresh_s: u32,
    /// The time at which each node last had series, by node name, in milliseconds since 1970.
    pub(super) seen: &'a HashMap<String, u64>,
}

/// The assembled fleet, and other results of the assembly.
#[derive(Debug)]
pub(super) struct AssembledFleet {
    pub(super) fleet: Fleet,
    /// The nodes with their targets.
    pub(super) nodes: Nodes,
    /// The time at which each node last had series, by node name, in milliseconds since 1970.
    pub(super) seen: HashMap<String, u64>,
    /// Whether gpumon exports every GPU that dcgm-exporter exports.
    pub(super) is_dcgm_covered: bool,
    /// Pods by UID. gpumon's counters identify pods by UID only.
    pub(super) pods: HashMap<String, FleetOwner>,
}

pub(super) fn assemble_fleet(inputs: &Inputs<'_>) -> AssembledFleet {
    let mut nodes = Nodes::new(list_node_facts(inputs.facts));
    let mut gpus = gather_gpus(inputs, &nodes);
    let health = FleetHealth::new(inputs, &nodes, &gpus);
    let is_dcgm_covered = inputs.present.own
        && gpus
            .iter()
            .flat_map(BTreeMap::values)
            .all(|gpu| gpu.gpumon == ExportTime::Now);
    let mut builder = FleetBuilder::new(Fleet {
        state: inputs.state,
        problems: inputs.problems.clone(),
        resolution: inputs.resolution,
        ..Fleet::new_unread(inputs.source.clone(), inputs.at_ms, inputs.refresh_s)
    });
    let mut places = HashMap::new();
    for (at, of_gpus) in gpus.iter_mut().enumerate() {
        // Nodes that have disappeared are not listed.
        if health.is_node_gone(at) {
            nodes.targets[at].clear();
            continue;
        }
        let (state, reason) = health.node_health(at);
        let node = builder.add_node(NewNode {
            name: nodes.names[at].clone(),
            health: state,
            reason,
            gpus: match inputs.resolution {
                Resolution::Gpu => of_gpus.len() as u32,
                Resolution::Node => health.nodes[at].gpus_recorded,
            },
            unopenable: explain_unopenable_node(of_gpus, inputs),
        });
        if inputs.resolution == Resolution::Node {
            // If the fleet lists only nodes, each node gets an entry, even if no recording rule has
            // values for it.
            of_gpus.entry(0).or_default();
        }
        for (index, gpu) in of_gpus {
            let state = health.gpu_health(at, gpu);
            let place = builder.add_gpu(
                node,
                NewGpu {
                    index: *index,
                    model: gpu.model.as_deref(),
                    health: state,
                    readings: READINGS.map(|id| gpu.find_reading(id)),
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
    add_owners(&mut builder, inputs.facts, &nodes, &places);
    let mut fleet = builder.finish();
    fleet.missing = explain_missing_data(inputs, &fleet);
    let pods = map_pods_by_uid(inputs.facts);
    AssembledFleet {
        fleet,
        nodes,
        seen: health.seen,
        is_dcgm_covered,
        pods,
    }
}

/// Returns the facts from which the list of nodes is made, each with a flag that is `true` if the
/// fact is current. An `up` series is included only if its target is down and its instance is in no
/// other fact.
fn list_node_facts(facts: &FactsByQuery) -> impl Iterator<Item = (bool, &Fact)> {
    let others = || {
        facts
            .0
            .iter()
            .filter(|(question, _)| **question != QueryName::Up)
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
        .find_facts(QueryName::Up)
        .iter()
        .filter(|fact| fact.value < 1.0);
    let new = down
        .filter(move |fact| !named.contains(&instance(fact)))
        .map(|fact| (true, fact));
    let reported = others().flat_map(|(question, all)| {
        let is_now = !question.is_infrequent();
        all.iter().map(move |fact| (is_now, fact))
    });
    reported.chain(new)
}

fn explain_unopenable_node(gpus: &BTreeMap<u32, Gpu>, inputs: &Inputs<'_>) -> Option<String> {
    let has_gpumon = gpus.values().any(|gpu| gpu.gpumon != ExportTime::Never);
    let is_own = gpus.is_empty() || inputs.resolution == Resolution::Node || has_gpumon;
    (!is_own).then(|| {
        "only dcgm-exporter runs on this node; to open the node, run `gpumon serve` on it"
            .to_owned()
    })
}

fn add_owners(
    builder: &mut FleetBuilder,
    facts: &FactsByQuery,
    nodes: &Nodes,
    places: &HashMap<(usize, u32), u32>,
) {
    let questions = [
        QueryName::Holders,
        QueryName::HoldersByNode,
        QueryName::Utilization,
    ];
    for fact in questions
        .into_iter()
        .flat_map(|question| facts.find_facts(question))
    {
        let (FactDetail::Owner(owner, _) | FactDetail::ModelAndOwner(_, Some(owner))) = &fact.more
        else {
            continue;
        };
        let place = nodes
            .find_node_of_target(&fact.target)
            .and_then(|node| places.get(&(node, fact.gpu.unwrap_or(0))));
        if let Some(place) = place {
            builder.add_owner(*place, (**owner).clone());
        }
    }
}

fn map_pods_by_uid(facts: &FactsByQuery) -> HashMap<String, FleetOwner> {
    let uid = |fact: &Fact| match &fact.more {
        FactDetail::Owner(owner, uid) if owner.kind == OwnerKind::Pod && !uid.is_empty() => {
            Some((uid.to_string(), (**owner).clone()))
        }
        _ => None,
    };
    facts
        .find_facts(QueryName::Holders)
        .iter()
        .filter_map(uid)
        .collect()
}

/// Returns the reason for each kind of data that is missing for all GPUs of the fleet, by the ID of
/// the data.
fn explain_missing_data(inputs: &Inputs<'_>, fleet: &Fleet) -> BTreeMap<String, String> {
    let mut missing = BTreeMap::new();
    let Fleet { gpus, owners, .. } = fleet;
    if gpus.index.is_empty() {
        return missing;
    }
    let has_own = inputs.present.contains(Family::Own);
    for id in READINGS {
        let column = gpus.readings.get(id);
        if column.is_none_or(|column| column.iter().all(Option::is_none)) {
            missing.insert(id.to_owned(), explain_missing_reading(id, inputs));
        }
    }
    let dcgm_lacks = |what: &str| {
        format!(
            "dcgm-exporter does not export {what}; gpumon does: run `gpumon serve` on the nodes"
        )
    };
    if gpus.processes.iter().all(Option::is_none) {
        let why = match inputs.resolution {
            Resolution::Node => {
                "the fleet has too many GPUs to show the number of processes on each; open a \
                 node to see its processes"
                    .to_owned()
            }
            Resolution::Gpu if has_own => explain_missing_metric("gpumon_gpu_processes"),
            Resolution::Gpu => dcgm_lacks("the number of processes on each GPU"),
        };
        missing.insert("processes".to_owned(), why);
    }
    if owners.is_empty() && !has_own {
        let why = "dcgm-exporter exports only pods, and only if DCGM_EXPORTER_KUBERNETES is true; \
                   gpumon also exports users and jobs";
        missing.insert("owners".to_owned(), why.to_owned());
    }
    if !has_own {
        missing.insert(
            "conditions".to_owned(),
            dcgm_lacks("conditions other than Xids"),
        );
    }
    missing
}

fn explain_missing_reading(id: &str, inputs: &Inputs<'_>) -> String {
    let names = |families| {
        Reading::find(id)
            .map(|reading| reading.list_metric_names(families))
            .unwrap_or_default()
    };
    if inputs.resolution == Resolution::Node {
        return "Prometheus has not recorded the sums of this reading; load \
         deploy/prometheus/fleet.yml from this gpumon version into Prometheus"
            .to_owned();
    }
    if inputs.present.own {
        return explain_missing_metric(
            &names(Families {
                own: true,
                ..Families::default()
            })
            .join(", "),
        );
    }
    let names = names(Families {
        own: false,
        ..inputs.present
    });
    format!(
        "dcgm-exporter does not export {}; add it to the collectors file of dcgm-exporter (option \
         --collectors)",
        names.join(" or ")
    )
}

fn explain_missing_metric(metric: &str) -> String {
    format!(
        "Prometheus has no {metric}: the GPUs do not report it, or a relabeling rule in \
         Prometheus drops the metric"
    )
}
