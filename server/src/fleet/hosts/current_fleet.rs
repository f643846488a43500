//! The current state of all GPUs and their owners, from the newest sample of each hub.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gpumon_fleet::{
    FleetBuilder, NewGpu, NewNode, compare_names,
    model::{
        Fleet, FleetOwner, FleetSource, FleetSourceKind, FleetState, GpuHealth, NodeHealth,
        OwnerKind, READINGS,
    },
};
use gpumon_probe::{
    model::{
        Absence, Allocation, ConditionKind, GpuSample, Health, Job, JobKind, Owner, Process,
        Reading, now_ms,
    },
    units,
};

use super::node::{ConnectionStatus, HostNode};
use crate::hub::HubData;

/// The time that hosts have to respond after the start, before they are reported as a problem.
const LOADING_TIME: Duration = Duration::from_secs(2);

/// The maximum number of hosts that a sentence names.
const MAX_NAMED_HOSTS: usize = 5;

/// Returns the fleet of these nodes, sorted by name.
pub(super) fn build_fleet(
    nodes: &[Arc<HostNode>],
    interval: Duration,
    since_start: Duration,
) -> Fleet {
    let mut sorted: Vec<_> = nodes.iter().collect();
    sorted.sort_by(|one, other| compare_names(&one.host.name, &other.host.name));
    let source = FleetSource {
        kind: FleetSourceKind::Hosts,
        name: format_host_count(nodes.len()),
    };
    let refresh_s = (interval.as_secs() as u32).max(1);
    let now_ms = now_ms();
    let mut building = HostsFleetBuilder {
        now_ms,
        fleet: FleetBuilder::new(Fleet::new_unread(source, now_ms, refresh_s)),
        absences: BTreeMap::new(),
        unread: BTreeMap::new(),
        is_connecting: false,
    };
    for node in sorted {
        building.add_node(node);
    }
    building.build(nodes.len(), since_start)
}

pub(super) fn format_host_count(count: usize) -> String {
    format!("{count} host{}", if count == 1 { "" } else { "s" })
}

struct HostsFleetBuilder {
    now_ms: u64,
    fleet: FleetBuilder,
    /// For each reading, the reasons why it is absent, each with the number of affected GPUs.
    absences: BTreeMap<&'static str, BTreeMap<String, u32>>,
    /// The reasons why hosts are not read, by host.
    unread: BTreeMap<String, String>,
    /// Whether at least one host has neither responded nor failed.
    is_connecting: bool,
}

impl HostsFleetBuilder {
    fn add_node(&mut self, node: &HostNode) {
        let known = node.hub.current_data();
        let is_fresh = node.hub.is_fresh(self.now_ms);
        let (health, reason) = node_health_and_reason(node, &known, is_fresh, self.now_ms);
        self.is_connecting |= health != NodeHealth::Up && !node.has_failed();
        if let Some(reason) = &reason {
            let name = node.host.name.clone();
            self.unread.insert(name, reason.clone());
        }
        let inventory = known.inventory.as_ref();
        let nothing = || "No data has been received from the host yet".to_owned();
        let place = self.fleet.add_node(NewNode {
            name: node.host.name.clone(),
            health,
            unopenable: match inventory {
                Some(_) => None,
                None => Some(reason.clone().unwrap_or_else(nothing)),
            },
            reason,
            gpus: inventory.map_or(0, |inventory| inventory.gpus.len()) as u32,
        });
        let Some(sample) = &known.sample else { return };
        for gpu in &sample.gpus {
            let name = inventory.and_then(|inventory| {
                let found = inventory.gpus.iter().find(|it| it.index == gpu.index)?;
                found.name.value().map(String::as_str)
            });
            self.add_gpu(place, gpu, name, is_fresh);
        }
    }

    fn add_gpu(&mut self, node: u32, gpu: &GpuSample, model: Option<&str>, is_fresh: bool) {
        let readings = [
            value_or_absence(&gpu.utilization.gpu_percent),
            bytes_or_absence(&gpu.memory.used_bytes),
            bytes_or_absence(&gpu.memory.total_bytes),
            value_or_absence(&gpu.power.draw_watts),
            value_or_absence(&gpu.power.limit_watts),
            value_or_absence(&gpu.temperature.gpu_celsius),
        ];
        for (id, reading) in READINGS.into_iter().zip(&readings) {
            if let (Err(reason), true) = (reading, is_fresh) {
                let reasons = self.absences.entry(id).or_default();
                *reasons.entry(reason.to_string()).or_default() += 1;
            }
        }
        let mut conditions = gpu.conditions.iter();
        let idle_ms = conditions.find_map(|condition| match condition.kind {
            ConditionKind::HeldIdle { idle_ms, .. } => Some(idle_ms),
            _ => None,
        });
        let place = self.fleet.add_gpu(
            node,
            NewGpu {
                index: gpu.index,
                model,
                health: match gpu.health {
                    _ if !is_fresh => GpuHealth::Unknown,
                    // A GPU that the system has switched off responds as soon as a process uses it.
                    Health::Ok | Health::Asleep { .. } => GpuHealth::Ok,
                    Health::Hung { .. } | Health::Lost { .. } | Health::Failed { .. } => {
                        GpuHealth::NotResponding
                    }
                },
                readings: readings.map(Result::ok),
                processes: gpu.process_count(),
                idle_holding_s: idle_ms.map(|ms| ms as f64 / 1000.0),
            },
        );
        if !is_fresh {
            return;
        }
        for owner in gpu_owners(gpu) {
            self.fleet.add_owner(place, owner);
        }
        for condition in &gpu.conditions {
            let kind = match condition.kind {
                ConditionKind::Xid { code, .. } => format!("xid_{code}"),
                ref kind => kind.tag().unwrap_or("other").to_owned(),
            };
            let severity = condition.severity.rank();
            self.fleet.add_condition(place, kind, severity);
        }
    }

    fn build(self, asked: usize, since_start: Duration) -> Fleet {
        let up = asked - self.unread.len();
        let is_loading = self.is_connecting && since_start < LOADING_TIME;
        let mut fleet = self.fleet.finish();
        fleet.state = match up {
            0 if is_loading => FleetState::Loading,
            0 => FleetState::Outdated,
            up if up == asked => FleetState::Current,
            _ => FleetState::Partial,
        };
        if !is_loading {
            fleet.problems = summarize_unread_hosts(self.unread, asked);
        }
        for (id, reasons) in self.absences {
            let is_missing = fleet.gpus.readings[id].iter().all(Option::is_none);
            let most = reasons.into_iter().max_by_key(|(_, count)| *count);
            if let Some((reason, _)) = most.filter(|_| is_missing) {
                fleet.missing.insert(id.to_owned(), capitalize(&reason));
            }
        }
        fleet
    }
}

/// Returns the state of a node, and the reason if it is not up.
fn node_health_and_reason(
    node: &HostNode,
    known: &HubData,
    is_fresh: bool,
    now_ms: u64,
) -> (NodeHealth, Option<String>) {
    if is_fresh {
        return (NodeHealth::Up, None);
    }
    let name = &node.host.name;
    match node.status() {
        ConnectionStatus::Connecting { since_ms } => {
            let waited = units::format_duration(now_ms.saturating_sub(since_ms));
            (
                NodeHealth::Unreachable,
                Some(format!("{name}: no response after {waited}")),
            )
        }
        ConnectionStatus::Connected => {
            let at_ms = known.sample.as_ref().map(|sample| sample.at_ms);
            let reason = match at_ms {
                Some(at_ms) => {
                    let silent = units::format_duration(now_ms.saturating_sub(at_ms));
                    format!(
                        "{name}: no sample for {silent}; the driver may hang, or the clocks may \
                         differ"
                    )
                }
                None => format!("{name}: the host responds, but has sent no readings yet"),
            };
            (NodeHealth::NoReadings, Some(reason))
        }
        ConnectionStatus::Failed { reason, reached } => (
            if reached {
                NodeHealth::NoReadings
            } else {
                NodeHealth::Unreachable
            },
            Some(reason),
        ),
    }
}

/// Returns the reasons why hosts are not read. If there are many, a single sentence names some of
/// the hosts; the details are shown with each node.
fn summarize_unread_hosts(unread: BTreeMap<String, String>, asked: usize) -> Vec<String> {
    let count = unread.len();
    if count <= MAX_NAMED_HOSTS {
        return unread.into_values().collect();
    }
    let named: Vec<_> = unread.into_keys().take(MAX_NAMED_HOSTS).collect();
    let (named, more) = (named.join(", "), count - MAX_NAMED_HOSTS);
    vec![format!(
        "{count} of {asked} hosts cannot be read: {named} and {more} more; each host shows the \
         reason, and gpumon retries automatically"
    )]
}

fn capitalize(reason: &str) -> String {
    let mut letters = reason.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn value_or_absence(reading: &Reading<f64>) -> Result<f64, Absence> {
    reading.as_result().copied().map_err(Clone::clone)
}

fn bytes_or_absence(reading: &Reading<u64>) -> Result<f64, Absence> {
    value_or_absence(&reading.clone().map(|bytes| bytes as f64))
}

/// Returns all owners of a GPU in the fleet's data model, without duplicates: the owners of its
/// processes and of its allocations.
fn gpu_owners(sample: &GpuSample) -> Vec<FleetOwner> {
    let processes = sample.processes.value().into_iter().flatten();
    let mut owners: Vec<_> = processes.filter_map(process_owner).collect();
    owners.extend(sample.allocated_to.iter().map(allocation_owner));
    owners.sort();
    owners.dedup();
    owners
}

/// Returns the owner of a process, or `None` if neither its user nor its job is known.
fn process_owner(process: &Process) -> Option<FleetOwner> {
    let user = process.user.value().cloned();
    let owner = process.owner.value();
    if let Some(pod) = owner.and_then(|owner| owner.pod.as_ref()) {
        let id = pod.name.clone().unwrap_or_else(|| pod.uid.clone());
        return Some(FleetOwner {
            user,
            kind: OwnerKind::Pod,
            id,
            namespace: pod.namespace.clone(),
        });
    }
    let job = owner.and_then(Owner::job);
    (user.is_some() || job.is_some()).then(|| job_owner(user, job.as_ref()))
}

/// Returns the owner of a job. If `job` is `None` or private, the owner is the user.
pub(super) fn job_owner(user: Option<String>, job: Option<&Job>) -> FleetOwner {
    // All viewers of the fleet see the same owners. Private jobs must therefore not be named.
    let Some(job) = job.filter(|job| !job.private) else {
        return FleetOwner {
            user,
            kind: OwnerKind::User,
            id: String::new(),
            namespace: None,
        };
    };
    let kind = match job.kind {
        JobKind::Notebook => OwnerKind::Notebook,
        JobKind::Slurm => OwnerKind::SlurmJob,
        JobKind::Pbs => OwnerKind::PbsJob,
        JobKind::Lsf => OwnerKind::LsfJob,
        JobKind::Pod => OwnerKind::Pod,
        JobKind::Container => OwnerKind::Container,
        JobKind::Service => OwnerKind::Unit,
    };
    let pod = job
        .name
        .as_ref()
        .filter(|_| job.kind == JobKind::Pod)
        .and_then(|name| name.split_once('/'));
    let (namespace, id) = pod.map_or((None, job.id.clone()), |(space, name)| {
        (Some(space.to_owned()), name.to_owned())
    });
    FleetOwner {
        user,
        kind,
        id,
        namespace,
    }
}

fn allocation_owner(allocation: &Allocation) -> FleetOwner {
    match allocation {
        Allocation::Slurm { job_id, user } => FleetOwner {
            user: user.clone(),
            kind: OwnerKind::SlurmJob,
            id: job_id.clone(),
            namespace: None,
        },
        Allocation::Kubernetes { namespace, pod, .. } => FleetOwner {
            user: None,
            kind: OwnerKind::Pod,
            id: pod.clone(),
            namespace: Some(namespace.clone()),
        },
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{BatchJob, Notebook, ProcessKind};

    use super::*;

    fn make_process(user: Option<&str>, owner: Owner) -> Process {
        let absent = || Reading::Absent(Absence::NeedsGpumon);
        Process {
            pid: 7,
            kind: ProcessKind::Compute,
            memory_bytes: Reading::Now(1),
            sm_percent: absent(),
            memory_percent: absent(),
            encoder_percent: absent(),
            decoder_percent: absent(),
            name: Reading::Absent(Absence::Unknown),
            program: None,
            command: Reading::Absent(Absence::Unknown),
            user: user.map(str::to_owned).ok_or(Absence::Unknown).into(),
            host_memory_bytes: Reading::Absent(Absence::Unknown),
            traced: Reading::Absent(Absence::Unknown),
            started_ms: Reading::Absent(Absence::Unknown),
            mig: None,
            mps: false,
            owner: Reading::Now(owner),
        }
    }

    #[test]
    fn gpu_owners_have_no_duplicates() {
        let kernel = Notebook {
            kernel_id: "k".to_owned(),
            kernel_name: None,
            path: Reading::Absent(Absence::Hidden),
            kernel_pid: 7,
        };
        let notebook = Owner {
            notebook: Some(kernel),
            ..Owner::default()
        };
        let slurm = Owner {
            slurm: Some(BatchJob {
                job_id: "41".to_owned(),
                step: None,
                private: false,
            }),
            ..Owner::default()
        };
        let mut sample = GpuSample::new_absent(0, None, 1, Health::Ok, &Absence::Unknown);
        assert_eq!(gpu_owners(&sample), []);
        sample.processes = Reading::Now(vec![
            make_process(Some("ana"), notebook),
            make_process(Some("bob"), slurm.clone()),
            make_process(Some("bob"), slurm),
            make_process(Some("ana"), Owner::default()),
            make_process(None, Owner::default()),
        ]);
        sample.allocated_to = vec![Allocation::Slurm {
            job_id: "41".to_owned(),
            user: Some("bob".to_owned()),
        }];
        let owners: Vec<_> = gpu_owners(&sample)
            .into_iter()
            .map(|it| (it.user.unwrap(), it.kind, it.id))
            .collect();
        let of = |user: &str, kind, id: &str| (user.to_owned(), kind, id.to_owned());
        assert_eq!(
            owners,
            [
                of("ana", OwnerKind::Notebook, "k"),
                of("ana", OwnerKind::User, ""),
                of("bob", OwnerKind::SlurmJob, "41"),
            ]
        );
    }
}
