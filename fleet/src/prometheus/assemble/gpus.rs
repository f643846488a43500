//! The GPUs of each node, assembled from the facts of single series.

use std::{collections::BTreeMap, sync::Arc};

use gpumon_probe::vendor::describe_error;

use super::{
    super::{
        facts::{Fact, More},
        metrics::{self, Family},
        questions::QuestionName,
    },
    Inputs,
    nodes::Nodes,
};
use crate::model::{HELD_BYTES, READINGS};

/// The time range in the query `IdleDcgm`, in seconds.
const IDLE_DCGM_S: f64 = 1800.0;

/// The default time after which gpumon reports an idle GPU with memory in use, in seconds.
const HELD_IDLE_S: f64 = 300.0;

/// The time at which gpumon exports a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exported {
    #[default]
    Never,
    /// Within the last hour, even if the node does not respond at present.
    Lately,
    Now,
}

/// The facts about one GPU.
#[derive(Debug, Default)]
pub(super) struct Gpu {
    pub(super) model: Option<Arc<str>>,
    readings: [Option<(Family, f64)>; READINGS.len()],
    /// The totals of its MIG devices, if there is no value of the whole GPU.
    parts: [Option<f64>; READINGS.len()],
    /// The values that add up to dcgm-exporter's total memory: of the whole GPU, and of its MIG
    /// devices.
    memory: [BTreeMap<&'static str, f64>; 2],
    pub(super) processes: Option<u32>,
    pub(super) is_down: bool,
    /// Whether any fact about the GPU is current.
    pub(super) is_current: bool,
    pub(super) gpumon: Exported,
    pub(super) idle_s: Option<f64>,
    /// Severities by the names of conditions.
    pub(super) conditions: BTreeMap<Arc<str>, u8>,
}

/// The GPUs of each node by index. If only nodes are listed, each has one entry.
pub(super) type Gpus = Vec<BTreeMap<u32, Gpu>>;

pub(super) fn gather(inputs: &Inputs<'_>, nodes: &Nodes) -> Gpus {
    let mut gpus: Gpus = nodes.names.iter().map(|_| BTreeMap::new()).collect();
    let mut each = |question: QuestionName, take: &mut dyn FnMut(&mut Gpu, &Fact)| {
        for fact in inputs.facts.of(question) {
            let Some(node) = nodes.of(&fact.target) else {
                continue;
            };
            take(gpus[node].entry(fact.gpu.unwrap_or(0)).or_default(), fact);
        }
    };
    for question in [
        QuestionName::Utilization,
        QuestionName::MemoryUsed,
        QuestionName::Power,
        QuestionName::Temperature,
        QuestionName::PowerLimit,
        QuestionName::MemoryTotal,
        QuestionName::ByNode,
    ] {
        let is_now = !question.is_slow();
        each(question, &mut |gpu, fact| {
            gpu.is_current |= is_now;
            if fact.family == Family::Own {
                gpu.gpumon = Exported::Now;
            }
            gpu.take(
                fact,
                question == QuestionName::MemoryTotal && fact.family.is_dcgm(),
            );
        });
    }
    for question in [QuestionName::Roster, QuestionName::ModelsByNode] {
        each(question, &mut |gpu, fact| {
            if fact.family == Family::Own {
                gpu.gpumon = gpu.gpumon.max(Exported::Lately);
            }
            gpu.take_model(fact);
        });
    }
    each(QuestionName::Down, &mut |gpu, _| {
        (gpu.is_down, gpu.is_current, gpu.gpumon) = (true, true, Exported::Now);
    });
    each(QuestionName::Processes, &mut |gpu, fact| {
        gpu.processes = Some(fact.value as u32);
    });
    for question in [
        QuestionName::Conditions,
        QuestionName::Xids,
        QuestionName::ConditionsByNode,
    ] {
        each(question, &mut |gpu, fact| {
            gpu.take_condition(fact, question);
        });
    }
    each(QuestionName::HeldIdle, &mut |gpu, fact| {
        if gpu.conditions.contains_key("held_idle") {
            gpu.idle_s = Some(
                gpu.idle_s
                    .unwrap_or(HELD_IDLE_S)
                    .max(fact.value + HELD_IDLE_S),
            );
        }
    });
    each(QuestionName::IdleDcgm, &mut |gpu, _| {
        let is_held = gpu
            .reading(metrics::MEMORY_USED)
            .is_some_and(|used| used > HELD_BYTES);
        if gpu.gpumon != Exported::Now && is_held && gpu.reading(metrics::UTILIZATION) == Some(0.0)
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
    pub(super) fn reading(&self, id: &str) -> Option<f64> {
        let at = READINGS.iter().position(|known| *known == id)?;
        self.readings[at].map(|(_, value)| value)
    }

    fn take(&mut self, fact: &Fact, is_summand: bool) {
        self.take_model(fact);
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

    fn take_model(&mut self, fact: &Fact) {
        if let More::Model(name, _) | More::ModelAndOwner(name, _) = &fact.more
            && !name.is_empty()
            && (self.model.is_none() || fact.family == Family::Own)
        {
            self.model = Some(Arc::clone(name));
        }
    }

    fn take_condition(&mut self, fact: &Fact, question: QuestionName) {
        let More::Word(kind) = &fact.more else { return };
        let is_xid = kind.strip_prefix("xid_").and_then(|code| code.parse().ok());
        let severity = match is_xid {
            Some(code) => describe_error(code).severity.rank(),
            None => (fact.value as u8).clamp(1, 3),
        };
        // dcgm-exporter continues to report an Xid that gpumon has recognized as resolved.
        if question == QuestionName::Xids && self.gpumon == Exported::Now {
            return;
        }
        let known = self.conditions.entry(Arc::clone(kind)).or_default();
        *known = severity.max(*known);
        if &**kind == "held_idle" {
            self.idle_s = Some(HELD_IDLE_S);
        }
    }

    fn finish(&mut self) {
        // The numbered Xids are more informative than the summary `xid`.
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
