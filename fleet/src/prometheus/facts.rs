//! The facts about GPUs and nodes in single series.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::{
    answer::{Answer, Labels, Row},
    metrics::{self, Family},
    owners::{owner, pod},
    questions::{HELD_IDLE_STEP_S, NODE_RULES, QuestionName},
    target::{Interner, Target, gpu},
};
use crate::model::{FleetOwner, is_plausible};

/// The content of one series.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    pub(super) target: Arc<Target>,
    /// NVML's index of the GPU, or `None` for a node.
    pub(super) gpu: Option<u32>,
    /// The UUID of the GPU, or an empty string if it is unknown.
    pub(super) uuid: Arc<str>,
    pub(super) family: Family,
    /// Whether the fact is about a MIG device.
    pub(super) is_part: bool,
    /// The id of the reading, or an empty string for other facts.
    pub(super) id: &'static str,
    /// The value in the unit of the reading.
    pub(super) value: f64,
    /// Further content from the labels.
    pub(super) more: More,
}

/// The content of a series in addition to its value.
#[derive(Debug, Clone)]
pub(super) enum More {
    None,
    /// The name of a GPU model, and whether the GPU is simulated.
    Model(Arc<str>, bool),
    /// The owner of a GPU, and the UID of a pod.
    Owner(Arc<FleetOwner>, Arc<str>),
    /// The name of a condition, or the state of a collector.
    Word(Arc<str>),
    /// The name of a GPU model, and the owner of the GPU.
    ModelAndOwner(Arc<str>, Option<Arc<FleetOwner>>),
}

/// The facts in the answer to a query.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) all: Vec<Fact>,
    /// The Prometheus jobs that scrape the series.
    pub(super) jobs: BTreeSet<String>,
    /// Whether two jobs scrape the same GPU.
    pub(super) is_doubled: bool,
}

/// The maximum number of jobs, which is more than the jobs that scrape GPUs in practice.
pub(super) const MOST_JOBS: usize = 50;

/// Reads the facts of an answer.
pub(super) fn read(of: QuestionName, answer: &Answer<'_>, node_label: Option<&str>) -> Facts {
    let mut interner = Interner::new(node_label);
    let mut told = Facts {
        all: Vec::with_capacity(answer.rows.len()),
        ..Facts::default()
    };
    let mut jobs_of_gpus = HashMap::new();
    let mut job = String::new();
    let mut parts = HashSet::new();
    for row in &answer.rows {
        let Some(fact) = fact(of, row, &mut interner) else {
            continue;
        };
        // MIG devices are added up, but two replicas of Prometheus report each of them twice.
        if fact.is_part {
            let part = interner.text(row.labels.get("GPU_I_ID"));
            if !parts.insert((Arc::clone(&fact.target), fact.gpu, part, fact.id)) {
                continue;
            }
        }
        let name = row.labels.get("job");
        if of == QuestionName::Roster {
            let first = jobs_of_gpus
                .entry((Arc::clone(&fact.target), fact.gpu))
                .or_insert(name);
            told.is_doubled |= *first != name;
        }
        if job != name && of != QuestionName::Up {
            name.clone_into(&mut job);
            if !job.is_empty() && told.jobs.len() < MOST_JOBS {
                told.jobs.insert(job.clone());
            }
        }
        told.all.push(fact);
    }
    told
}

fn fact(of: QuestionName, row: &Row<'_>, interner: &mut Interner<'_>) -> Option<Fact> {
    let labels = &row.labels;
    let value = if of == QuestionName::HeldIdle {
        lasted_s(row)?
    } else {
        row.value()?
    };
    let name = labels.get("__name__");
    let (id, family, factor) = match of {
        QuestionName::Utilization => metrics::by_name(&[metrics::UTILIZATION], name)?,
        QuestionName::MemoryUsed => metrics::by_name(&[metrics::MEMORY_USED], name)?,
        QuestionName::Power => metrics::by_name(&[metrics::POWER], name)?,
        QuestionName::Temperature => metrics::by_name(&[metrics::TEMPERATURE], name)?,
        QuestionName::PowerLimit => metrics::by_name(&[metrics::POWER_LIMIT], name)?,
        QuestionName::MemoryTotal => {
            let parts = [
                metrics::MEMORY_TOTAL,
                metrics::MEMORY_USED,
                metrics::MEMORY_FREE,
                metrics::MEMORY_RESERVED,
            ];
            metrics::by_name(&parts, name)?
        }
        // PromQL functions remove the names of metrics.
        QuestionName::Xids | QuestionName::IdleDcgm => ("", Family::Old, 1.0),
        QuestionName::ByNode => {
            let (_, id, factor) = NODE_RULES.into_iter().find(|(rule, ..)| *rule == name)?;
            (id, Family::Own, factor)
        }
        _ => ("", Family::Own, 1.0),
    };
    let more = match of {
        QuestionName::Roster => More::Model(
            interner.text(labels.get("name")),
            labels.get("source") == "simulated",
        ),
        QuestionName::ModelsByNode => More::Model(interner.text(labels.get("name")), false),
        QuestionName::Holders | QuestionName::HoldersByNode => More::Owner(
            Arc::new(owner(labels, interner)?),
            interner.text(labels.get("pod_uid")),
        ),
        QuestionName::States => {
            let state = labels.get("state");
            More::Word(interner.text(if state.is_empty() { "stuck" } else { state }))
        }
        QuestionName::Conditions | QuestionName::ConditionsByNode | QuestionName::Xids => {
            More::Word(condition(of, labels, value, interner)?)
        }
        _ if family.is_dcgm()
            && matches!(of, QuestionName::Utilization | QuestionName::MemoryTotal) =>
        {
            let owner = (of == QuestionName::Utilization)
                .then(|| pod(labels))
                .flatten();
            More::ModelAndOwner(interner.text(labels.get("modelName")), owner.map(Arc::new))
        }
        _ => More::None,
    };
    let of_node = matches!(
        of,
        QuestionName::States
            | QuestionName::Up
            | QuestionName::ByNode
            | QuestionName::HoldersByNode
            | QuestionName::ModelsByNode
            | QuestionName::ConditionsByNode
    );
    Some(Fact {
        target: interner.target(labels, family)?,
        gpu: if of_node { None } else { Some(gpu(labels)?) },
        uuid: interner.text(labels.first(&["uuid", "UUID"])),
        family,
        is_part: family.is_dcgm() && !labels.get("GPU_I_ID").is_empty(),
        id,
        value: plausible(id, value * factor)?,
        more,
    })
}

/// Returns the value of a reading if it is plausible for a GPU or for all GPUs of a node.
fn plausible(id: &str, value: f64) -> Option<f64> {
    // An average may exceed its values by a rounding error.
    if id == metrics::UTILIZATION && value > 100.0 && value < 100.01 {
        return Some(100.0);
    }
    is_plausible(id, value).then_some(value)
}

/// Returns for how many seconds up to the last sample there has been a sample at each step.
fn lasted_s(row: &Row<'_>) -> Option<f64> {
    let (last, _) = row.samples.last()?;
    let mut begin = *last;
    for (at, _) in row.samples.iter().rev() {
        if begin - at > f64::from(HELD_IDLE_STEP_S) * 1.5 {
            break;
        }
        begin = *at;
    }
    Some(last - begin)
}

/// Returns the name of a condition. An Xid is named by its number.
fn condition(
    of: QuestionName,
    labels: &Labels<'_>,
    value: f64,
    interner: &mut Interner<'_>,
) -> Option<Arc<str>> {
    let named = labels.get("condition");
    let code = if of == QuestionName::Xids {
        Some(value as u32)
    } else {
        labels.get("code").parse::<u32>().ok()
    };
    match code {
        Some(code) if named.is_empty() => Some(interner.text(&format!("xid_{code}"))),
        _ if named.is_empty() => None,
        _ => Some(interner.text(named)),
    }
}
