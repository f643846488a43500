//! A fleet for tests.

use std::collections::BTreeMap;

use gpumon_fleet::model::{
    Fleet, FleetCondition, FleetHold, FleetOwner, FleetSource, FleetSourceKind, FleetState,
    GpuHealth, NodeHealth, OwnerKind,
};

/// A GPU.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    pub(crate) health: GpuHealth,
    pub(crate) model: &'static str,
    pub(crate) busy: Option<f64>,
    pub(crate) used_gib: Option<f64>,
    pub(crate) total_gib: f64,
    pub(crate) watts: Option<f64>,
    pub(crate) celsius: Option<f64>,
    pub(crate) processes: Option<u32>,
    pub(crate) idle_s: Option<f64>,
    pub(crate) users: Vec<&'static str>,
    pub(crate) condition: Option<(&'static str, u8)>,
}

impl Default for Example {
    fn default() -> Self {
        Self {
            health: GpuHealth::Ok,
            model: "NVIDIA H100 80GB HBM3",
            busy: Some(0.0),
            used_gib: Some(0.0),
            total_gib: 79.6,
            watts: Some(70.0),
            celsius: Some(31.0),
            processes: None,
            idle_s: None,
            users: Vec::new(),
            condition: None,
        }
    }
}

/// One that somebody computes on.
pub(crate) fn busy(user: &'static str, percent: f64) -> Example {
    Example {
        busy: Some(percent),
        used_gib: Some(60.0),
        watts: Some(650.0),
        celsius: Some(64.0),
        processes: Some(1),
        users: vec![user],
        ..Example::default()
    }
}

/// All of these nodes with their GPUs. A node without any is unreachable.
pub(crate) fn fleet(nodes: &[(&str, &[Example])]) -> Fleet {
    let source = FleetSource {
        kind: FleetSourceKind::Prometheus,
        name: "http://prometheus:9090".to_owned(),
    };
    let mut fleet = Fleet {
        state: FleetState::Current,
        ..Fleet::unread(source, 1_763_630_000_000, 15)
    };
    let mut readings: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
    for (place, (name, gpus)) in (0..).zip(nodes) {
        fleet.nodes.name.push((*name).to_owned());
        fleet.nodes.gpus.push(gpus.len() as u32);
        fleet.nodes.health.push(if gpus.is_empty() {
            NodeHealth::Unreachable
        } else {
            NodeHealth::Up
        });
        if gpus.is_empty() {
            fleet
                .nodes
                .reasons
                .insert(place, "connection refused".to_owned());
        }
        for (index, gpu) in (0..).zip(*gpus) {
            let row = fleet.gpus.node.len() as u32;
            let columns = &mut fleet.gpus;
            columns.node.push(place);
            columns.index.push(index);
            columns.health.push(gpu.health);
            let model = columns
                .models
                .iter()
                .position(|known| known == gpu.model)
                .unwrap_or_else(|| {
                    columns.models.push(gpu.model.to_owned());
                    columns.models.len() - 1
                });
            columns.model.push(Some(model as u32));
            columns.processes.push(gpu.processes);
            columns.idle_holding_s.push(gpu.idle_s);
            let gib = f64::from(1 << 30);
            for (field, value) in [
                ("utilization.gpu_percent", gpu.busy),
                ("memory.used_bytes", gpu.used_gib.map(|used| used * gib)),
                ("memory.total_bytes", Some(gpu.total_gib * gib)),
                ("power.draw_watts", gpu.watts),
                ("power.limit_watts", Some(700.0)),
                ("temperature.gpu_celsius", gpu.celsius),
            ] {
                readings.entry(field.to_owned()).or_default().push(value);
            }
            for user in &gpu.users {
                let owner = FleetOwner {
                    user: Some((*user).to_owned()),
                    kind: OwnerKind::SlurmJob,
                    id: format!("{}", 100 + user.len()),
                    namespace: None,
                };
                let owner = fleet
                    .owners
                    .iter()
                    .position(|known| *known == owner)
                    .unwrap_or_else(|| {
                        fleet.owners.push(owner);
                        fleet.owners.len() - 1
                    });
                fleet.holds.push(FleetHold {
                    gpu: row,
                    owner: owner as u32,
                });
            }
            if let Some((kind, severity)) = gpu.condition {
                fleet.conditions.push(FleetCondition {
                    gpu: row,
                    kind: kind.to_owned(),
                    severity,
                });
            }
        }
    }
    fleet.gpus.readings = readings;
    fleet
}
