//! Assembly of each node's GPUs from the values of individual series.

use std::{collections::BTreeMap, sync::Arc};

use gpumon_probe::vendor::describe_error;

use super::{
    super::{
        facts::{Fact, FactDetail},
        metrics::{self, Family},
        questions::QueryName,
    },
    Inputs,
    nodes::Nodes,
};
use crate::model::{HELD_BYTES, READINGS};

/// The time range that the query `IdleDcgm` covers, in seconds.
const IDLE_DCGM_S: f64 = 1800.0;

/// The default time after which gpumon reports a GPU as idle although its memory is in use, in
/// seconds.
const HELD_IDLE_S: f64 = 300.0;

/// How recently gpumon exported data for a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ExportTime {
    #[default]
    Never,
    /// gpumon exported the GPU within the last hour, but not necessarily now.
    Lately,
    Now,
}

/// The data about one GPU from all series.
#[derive(Debug, Default)]
pub(super) struct Gpu {
    pub(super) model: Option<Arc<str>>,
    readings: [Option<(Family, f64)>; READINGS.len()],
    /// For each reading, the total over the GPU's MIG devices. It is used only if there is no value
    /// for the whole GPU.
    parts: [Option<f64>; READINGS.len()],
    /// The values that add up to the total memory in dcgm-exporter's metrics: for the whole GPU,
    /// and for its MIG devices.
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

/// The GPUs of each node, by index. If only nodes are listed, each node has a single entry.
pub(super) type Gpus = Vec<BTreeMap<u32, Gpu>>;

pub(super) fn gather_gpus(inputs: &Inputs<'_>, nodes: &Nodes) -> Gpus {
    let mut gpus: Gpus = nodes.names.iter().map(|_| BTreeMap::new()).collect();
    let mut each = |question: QueryName, take: &mut dyn FnMut(&mut Gpu, &Fact)| {
        for fact in inputs.facts.find_facts(question) {
            let Some(node) = nodes.find_node(&fact.target) else {
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
        gpu.finish();
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
        // dcgm-exporter continues to export an Xid even after gpumon has recognized it as resolved.
        if question == QueryName::Xids && self.gpumon == ExportTime::Now {
            return;
        }
        let known = self.conditions.entry(Arc::clone(kind)).or_default();
        *known = severity.max(*known);
        if &**kind == "held_idle" {
            self.idle_s = Some(HELD_IDLE_S);
        }
    }

    fn finish(&mut self) {
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
