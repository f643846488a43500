//! How all GPUs are now, from the newest sample of each hub.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gpumon_fleet::model::{
    Fleet, FleetCondition, FleetGpus, FleetHold, FleetNodes, FleetOwner, FleetSource,
    FleetSourceKind, FleetState, GpuHealth, NodeHealth, Resolution,
};
use gpumon_probe::{
    model::{Absence, ConditionKind, GpuSample, Health, Reading, now_ms},
    units,
};

use super::{
    node::{HostNode, Status},
    owners,
};
use crate::hub::Known;

/// A host that has had no time to answer is no problem yet.
const LOADING: Duration = Duration::from_secs(2);

/// So many hosts are named in a sentence.
const NAMED: usize = 5;

type Read = fn(&GpuSample) -> Result<f64, Absence>;

/// Readings by the ids of their fields.
const READINGS: [(&str, Read); 6] = [
    ("utilization.gpu_percent", |gpu| {
        value(&gpu.utilization.gpu_percent)
    }),
    ("memory.used_bytes", |gpu| bytes(&gpu.memory.used_bytes)),
    ("memory.total_bytes", |gpu| bytes(&gpu.memory.total_bytes)),
    ("power.draw_watts", |gpu| value(&gpu.power.draw_watts)),
    ("power.limit_watts", |gpu| value(&gpu.power.limit_watts)),
    ("temperature.gpu_celsius", |gpu| {
        value(&gpu.temperature.gpu_celsius)
    }),
];

/// These nodes, by name.
pub(super) fn fleet(nodes: &[Arc<HostNode>], interval: Duration, since_start: Duration) -> Fleet {
    let mut sorted: Vec<_> = nodes.iter().collect();
    sorted.sort_by(|one, other| one.host.name.cmp(&other.host.name));
    let mut building = Building::new();
    for node in sorted {
        building.add(node);
    }
    building.finish(nodes.len(), interval, since_start)
}

struct Building {
    now_ms: u64,
    nodes: FleetNodes,
    gpus: FleetGpus,
    owners: BTreeMap<FleetOwner, Vec<u32>>,
    conditions: Vec<FleetCondition>,
    /// Why readings are absent, with how many GPUs have no other reason.
    absences: BTreeMap<&'static str, BTreeMap<String, u32>>,
    /// The hosts that are not read, and why.
    unread: BTreeMap<String, String>,
    /// Whether one has neither answered nor failed.
    is_connecting: bool,
}

impl Building {
    fn new() -> Self {
        let readings = READINGS
            .iter()
            .map(|(id, _)| ((*id).to_owned(), Vec::new()))
            .collect();
        Self {
            now_ms: now_ms(),
            nodes: FleetNodes::default(),
            gpus: FleetGpus {
                readings,
                ..FleetGpus::default()
            },
            owners: BTreeMap::new(),
            conditions: Vec::new(),
            absences: BTreeMap::new(),
            unread: BTreeMap::new(),
            is_connecting: false,
        }
    }

    fn add(&mut self, node: &HostNode) {
        let place = self.nodes.name.len() as u32;
        let known = node.hub.known();
        let is_fresh = node.is_fresh(self.now_ms);
        let (health, reason) = health(node, &known, is_fresh, self.now_ms);
        self.is_connecting |= health != NodeHealth::Up && !node.failed();
        if let Some(reason) = reason {
            self.unread.insert(node.host.name.clone(), reason.clone());
            self.nodes.reasons.insert(place, reason);
        }
        self.nodes.name.push(node.host.name.clone());
        self.nodes.health.push(health);
        let gpus = known
            .inventory
            .as_ref()
            .map_or(0, |inventory| inventory.gpus.len());
        self.nodes.gpus.push(gpus as u32);
        if known.inventory.is_none() {
            let why = "Nothing has been read of it yet".to_owned();
            self.nodes.unopenable.insert(
                place,
                self.nodes.reasons.get(&place).cloned().unwrap_or(why),
            );
        }
        let Some(sample) = &known.sample else { return };
        for gpu in &sample.gpus {
            let name = known.inventory.as_ref().and_then(|inventory| {
                let found = inventory.gpus.iter().find(|it| it.index == gpu.index)?;
                found.name.value().cloned()
            });
            self.add_gpu(place, gpu, name, is_fresh);
        }
    }

    fn add_gpu(&mut self, node: u32, gpu: &GpuSample, name: Option<String>, is_fresh: bool) {
        let place = self.gpus.node.len() as u32;
        let gpus = &mut self.gpus;
        let model = name.map(|name| {
            let known = gpus.models.iter().position(|model| *model == name);
            known.unwrap_or_else(|| {
                gpus.models.push(name);
                gpus.models.len() - 1
            }) as u32
        });
        gpus.node.push(node);
        gpus.index.push(gpu.index);
        gpus.model.push(model);
        let health = match gpu.health {
            _ if !is_fresh => GpuHealth::Unknown,
            // One that the system has switched off answers as soon as somebody needs it.
            Health::Ok | Health::Asleep { .. } => GpuHealth::Ok,
            Health::Hung { .. } | Health::Lost { .. } | Health::Failed { .. } => {
                GpuHealth::NotResponding
            }
        };
        gpus.health.push(health);
        for (id, read) in READINGS {
            // How large it was stays known.
            let read = if is_fresh || id == "memory.total_bytes" {
                read(gpu)
            } else {
                Err(Absence::NoAnswer)
            };
            if let (Err(reason), true) = (&read, is_fresh) {
                *self
                    .absences
                    .entry(id)
                    .or_default()
                    .entry(reason.to_string())
                    .or_default() += 1;
            }
            if let Some(values) = gpus.readings.get_mut(id) {
                values.push(read.ok());
            }
        }
        gpus.processes
            .push(gpu.process_count().filter(|_| is_fresh));
        let idle_ms = gpu
            .conditions
            .iter()
            .find_map(|condition| match condition.kind {
                ConditionKind::HeldIdle { idle_ms, .. } => Some(idle_ms),
                _ => None,
            });
        gpus.idle_holding_s
            .push(idle_ms.filter(|_| is_fresh).map(|ms| ms as f64 / 1000.0));
        if !is_fresh {
            return;
        }
        for owner in owners::of_gpu(gpu) {
            self.owners.entry(owner).or_default().push(place);
        }
        self.conditions
            .extend(gpu.conditions.iter().map(|condition| FleetCondition {
                gpu: place,
                kind: match condition.kind {
                    ConditionKind::Xid { code, .. } => format!("xid_{code}"),
                    ref kind => kind.tag().unwrap_or("other").to_owned(),
                },
                severity: condition.severity.rank(),
            }));
    }

    fn finish(self, asked: usize, interval: Duration, since_start: Duration) -> Fleet {
        let Self {
            now_ms,
            nodes,
            gpus,
            owners,
            conditions,
            absences,
            unread,
            is_connecting,
        } = self;
        let up = asked - unread.len();
        let is_loading = is_connecting && since_start < LOADING;
        let state = match up {
            0 if is_loading => FleetState::Loading,
            0 => FleetState::Outdated,
            up if up == asked => FleetState::Current,
            _ => FleetState::Partial,
        };
        let problems = if is_loading {
            Vec::new()
        } else {
            problems(unread, asked)
        };
        let missing = absences.into_iter().filter_map(|(id, reasons)| {
            let is_missing = gpus
                .readings
                .get(id)
                .is_some_and(|values| values.iter().all(Option::is_none));
            let (reason, _) = reasons.into_iter().max_by_key(|(_, count)| *count)?;
            is_missing.then(|| (id.to_owned(), sentence(&reason)))
        });
        let missing = missing.collect();
        let mut listed = Vec::new();
        let mut holds = Vec::new();
        for (owner, held) in owners {
            let place = listed.len() as u32;
            listed.push(owner);
            holds.extend(held.into_iter().map(|gpu| FleetHold { gpu, owner: place }));
        }
        let name = if asked == 1 {
            "1 host".to_owned()
        } else {
            format!("{asked} hosts")
        };
        Fleet {
            at_ms: now_ms,
            source: FleetSource {
                kind: FleetSourceKind::Hosts,
                name,
            },
            state,
            problems,
            refresh_s: (interval.as_secs() as u32).max(1),
            resolution: Resolution::Gpu,
            nodes,
            gpus,
            owners: listed,
            holds,
            conditions,
            missing,
        }
    }
}

/// How a node is, and why it is not up.
fn health(
    node: &HostNode,
    known: &Known,
    is_fresh: bool,
    now_ms: u64,
) -> (NodeHealth, Option<String>) {
    if is_fresh {
        return (NodeHealth::Up, None);
    }
    let name = &node.host.name;
    match node.status() {
        Status::Connecting { since_ms } => {
            let waited = units::duration(now_ms.saturating_sub(since_ms));
            (
                NodeHealth::Unreachable,
                Some(format!("{name}: no answer yet, after {waited}")),
            )
        }
        Status::Connected => {
            let at_ms = known.sample.as_ref().map(|sample| sample.at_ms);
            let reason = match at_ms {
                Some(at_ms) => {
                    let silent = units::duration(now_ms.saturating_sub(at_ms));
                    format!(
                        "{name}: no sample for {silent}; the driver may hang, or the clocks may differ"
                    )
                }
                None => format!("{name}: it answers, and nothing has been read yet"),
            };
            (NodeHealth::NoReadings, Some(reason))
        }
        Status::Failed { reason, reached } => (
            if reached {
                NodeHealth::NoReadings
            } else {
                NodeHealth::Unreachable
            },
            Some(reason),
        ),
    }
}

/// Why hosts are not read; one sentence for many, each of which has its own reason at its place.
fn problems(unread: BTreeMap<String, String>, asked: usize) -> Vec<String> {
    let count = unread.len();
    if count <= NAMED {
        return unread.into_values().collect();
    }
    let named: Vec<_> = unread.into_keys().take(NAMED).collect();
    let (named, more) = (named.join(", "), count - NAMED);
    vec![format!(
        "{count} of {asked} hosts are not read: {named} and {more} more; each says why, and is tried again"
    )]
}

fn sentence(reason: &str) -> String {
    let mut letters = reason.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn value(reading: &Reading<f64>) -> Result<f64, Absence> {
    match reading {
        Reading::Now(value) | Reading::Earlier { value, .. } => Ok(*value),
        Reading::Absent(reason) => Err(reason.clone()),
    }
}

fn bytes(reading: &Reading<u64>) -> Result<f64, Absence> {
    value(&reading.clone().map(|bytes| bytes as f64))
}
