//! Extraction of values about GPUs and nodes from individual series.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::{
    answer::{Answer, Labels, Row},
    labels::{Interner, Target, read_gpu_index, read_owner, read_pod},
    metrics::{self, Family},
    query_table::{HELD_IDLE_STEP_S, NODE_RULES, QueryName},
};
use crate::model::{FleetOwner, is_plausible_reading};

/// The data in one series.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    pub(super) target: Arc<Target>,
    /// The GPU's NVML index, or `None` for a node.
    pub(super) gpu: Option<u32>,
    /// The GPU's UUID, or an empty string if it is unknown.
    pub(super) uuid: Arc<str>,
    pub(super) family: Family,
    /// Whether the series belongs to a MIG device.
    pub(super) is_part: bool,
    /// The id of the reading, or an empty string if the series is not a reading.
    pub(super) id: &'static str,
    /// The value in the unit of the reading.
    pub(super) value: f64,
    /// Additional data from the series' labels.
    pub(super) more: FactDetail,
}

/// The data in a series' labels, as opposed to its value.
#[derive(Debug, Clone)]
pub(super) enum FactDetail {
    None,
    /// The name of a GPU model, and whether the GPU is simulated.
    Model(Arc<str>, bool),
    /// A GPU's owner, and the pod's UID.
    Owner(Arc<FleetOwner>, Arc<str>),
    /// A condition's name or a collector's state.
    Word(Arc<str>),
    /// A GPU model's name, and the GPU's owner, if any.
    ModelAndOwner(Arc<str>, Option<Arc<FleetOwner>>),
}

/// The labels and values parsed from one Prometheus query response.
#[derive(Debug, Default)]
pub(super) struct QueryFacts {
    pub(super) all: Vec<Fact>,
    /// The Prometheus jobs that scraped the series.
    pub(super) jobs: BTreeSet<String>,
    /// Whether two Prometheus jobs scrape the same GPU.
    pub(super) is_doubled: bool,
}

/// The maximum number of Prometheus jobs. In practice, fewer jobs scrape GPUs.
pub(super) const MAX_JOBS: usize = 50;

/// Parses the series in the response to the query `of`.
pub(super) fn read_facts(
    of: QueryName,
    answer: &Answer<'_>,
    node_label: Option<&str>,
) -> QueryFacts {
    let mut interner = Interner::new(node_label);
    let mut reported = QueryFacts {
        all: Vec::with_capacity(answer.rows.len()),
        ..QueryFacts::default()
    };
    let mut jobs_of_gpus = HashMap::new();
    let mut job = String::new();
    let mut parts = HashSet::new();
    for row in &answer.rows {
        let Some(fact) = read_fact(of, row, &mut interner) else {
            continue;
        };
        // The values of MIG devices are added up. A second Prometheus replica would count them
        // twice, so its duplicates are skipped.
        if fact.is_part {
            let part = interner.intern_cleaned_text(row.labels.get("GPU_I_ID"));
            if !parts.insert((Arc::clone(&fact.target), fact.gpu, part, fact.id)) {
                continue;
            }
        }
        let name = row.labels.get("job");
        if of == QueryName::Roster {
            let first = jobs_of_gpus
                .entry((Arc::clone(&fact.target), fact.gpu))
                .or_insert(name);
            reported.is_doubled |= *first != name;
        }
        if job != name && of != QueryName::Up {
            name.clone_into(&mut job);
            if !job.is_empty() && reported.jobs.len() < MAX_JOBS {
                reported.jobs.insert(job.clone());
            }
        }
        reported.all.push(fact);
    }
    reported
}

fn read_fact(of: QueryName, row: &Row<'_>, interner: &mut Interner<'_>) -> Option<Fact> {
    let labels = &row.labels;
    let value = if of == QueryName::HeldIdle {
        calculate_duration_s(row)?
    } else {
        row.value()?
    };
    let name = labels.get("__name__");
    let (id, family, factor) = match of {
        QueryName::Utilization => metrics::find_reading_by_metric(&[metrics::UTILIZATION], name)?,
        QueryName::MemoryUsed => metrics::find_reading_by_metric(&[metrics::MEMORY_USED], name)?,
        QueryName::Power => metrics::find_reading_by_metric(&[metrics::POWER], name)?,
        QueryName::Temperature => metrics::find_reading_by_metric(&[metrics::TEMPERATURE], name)?,
        QueryName::PowerLimit => metrics::find_reading_by_metric(&[metrics::POWER_LIMIT], name)?,
        QueryName::MemoryTotal => {
            let parts = [
                metrics::MEMORY_TOTAL,
                metrics::MEMORY_USED,
                metrics::MEMORY_FREE,
                metrics::MEMORY_RESERVED,
            ];
            metrics::find_reading_by_metric(&parts, name)?
        }
        // These queries use PromQL functions, which remove the metric name. The family can
        // therefore not be determined from the name.
        QueryName::Xids | QueryName::IdleDcgm => ("", Family::Old, 1.0),
        QueryName::ByNode => {
            let (_, id, factor) = NODE_RULES.into_iter().find(|(rule, ..)| *rule == name)?;
            (id, Family::Own, factor)
        }
        _ => ("", Family::Own, 1.0),
    };
    let more = match of {
        QueryName::Roster => FactDetail::Model(
            interner.intern_cleaned_text(labels.get("name")),
            labels.get("source") == "simulated",
        ),
        QueryName::ModelsByNode => {
            FactDetail::Model(interner.intern_cleaned_text(labels.get("name")), false)
        }
        QueryName::Holders | QueryName::HoldersByNode => FactDetail::Owner(
            Arc::new(read_owner(labels, interner)?),
            interner.intern_cleaned_text(labels.get("pod_uid")),
        ),
        QueryName::States => {
            let state = labels.get("state");
            FactDetail::Word(interner.intern_cleaned_text(if state.is_empty() {
                "stuck"
            } else {
                state
            }))
        }
        QueryName::Conditions | QueryName::ConditionsByNode | QueryName::Xids => {
            FactDetail::Word(find_condition_name(of, labels, value, interner)?)
        }
        _ if family.is_dcgm() && matches!(of, QueryName::Utilization | QueryName::MemoryTotal) => {
            let owner = (of == QueryName::Utilization)
                .then(|| read_pod(labels))
                .flatten();
            FactDetail::ModelAndOwner(
                interner.intern_cleaned_text(labels.get("modelName")),
                owner.map(Arc::new),
            )
        }
        _ => FactDetail::None,
    };
    let of_node = matches!(
        of,
        QueryName::States
            | QueryName::Up
            | QueryName::ByNode
            | QueryName::HoldersByNode
            | QueryName::ModelsByNode
            | QueryName::ConditionsByNode
    );
    Some(Fact {
        target: interner.intern_target(labels, family)?,
        gpu: if of_node {
            None
        } else {
            Some(read_gpu_index(labels)?)
        },
        uuid: interner.intern_cleaned_text(labels.first_value(&["uuid", "UUID"])),
        family,
        is_part: family.is_dcgm() && !labels.get("GPU_I_ID").is_empty(),
        id,
        value: filter_plausible(id, value * factor)?,
        more,
    })
}

/// Returns `value` if it is plausible for a GPU or for all GPUs of a node.
fn filter_plausible(id: &str, value: f64) -> Option<f64> {
    // Because of rounding, an average of values up to 100 can be slightly larger than 100.
    if id == metrics::UTILIZATION && value > 100.0 && value < 100.01 {
        return Some(100.0);
    }
    is_plausible_reading(id, value).then_some(value)
}

/// Returns how long the series has had samples without a gap, up to its last sample, in seconds.
fn calculate_duration_s(row: &Row<'_>) -> Option<f64> {
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

/// Returns the name of a condition. For an Xid, the name contains the Xid's number.
fn find_condition_name(
    of: QueryName,
    labels: &Labels<'_>,
    value: f64,
    interner: &mut Interner<'_>,
) -> Option<Arc<str>> {
    let named = labels.get("condition");
    let code = if of == QueryName::Xids {
        Some(value as u32)
    } else {
        labels.get("code").parse::<u32>().ok()
    };
    match code {
        Some(code) if named.is_empty() => {
            Some(interner.intern_cleaned_text(&format!("xid_{code}")))
        }
        _ if named.is_empty() => None,
        _ => Some(interner.intern_cleaned_text(named)),
    }
}
