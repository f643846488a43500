//! Example fleets for tests.

use gpumon_fleet::{
    FleetBuilder, NewGpu, NewNode,
    model::{
        Fleet, FleetOwner, FleetSource, FleetSourceKind, FleetState, GpuHealth, NodeHealth,
        OwnerKind,
    },
};

/// An example GPU.
#[derive(Debug, Clone)]
pub(crate) struct ExampleGpu {
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

impl Default for ExampleGpu {
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

/// Returns a GPU on which a user is computing.
pub(crate) fn make_busy_gpu(user: &'static str, percent: f64) -> ExampleGpu {
    ExampleGpu {
        busy: Some(percent),
        used_gib: Some(60.0),
        watts: Some(650.0),
        celsius: Some(64.0),
        processes: Some(1),
        users: vec![user],
        ..ExampleGpu::default()
    }
}

/// Returns a fleet with the given nodes and GPUs. A node without GPUs is unreachable.
pub(crate) fn build_fleet(nodes: &[(&str, &[ExampleGpu])]) -> Fleet {
    let source = FleetSource {
        kind: FleetSourceKind::Prometheus,
        name: "http://prometheus:9090".to_owned(),
    };
    let mut fleet = FleetBuilder::new(Fleet {
        state: FleetState::Current,
        ..Fleet::new_unread(source, 1_763_630_000_000, 15)
    });
    for (name, gpus) in nodes {
        let is_up = !gpus.is_empty();
        let node = fleet.add_node(NewNode {
            name: (*name).to_owned(),
            health: if is_up {
                NodeHealth::Up
            } else {
                NodeHealth::Unreachable
            },
            reason: (!is_up).then(|| "connection refused".to_owned()),
            gpus: gpus.len() as u32,
            unopenable: None,
        });
        for (index, gpu) in (0..).zip(*gpus) {
            let gib = f64::from(1 << 30);
            let place = fleet.add_gpu(
                node,
                NewGpu {
                    index,
                    model: Some(gpu.model),
                    health: gpu.health,
                    readings: [
                        gpu.busy,
                        gpu.used_gib.map(|used| used * gib),
                        Some(gpu.total_gib * gib),
                        gpu.watts,
                        Some(700.0),
                        gpu.celsius,
                    ],
                    processes: gpu.processes,
                    idle_holding_s: gpu.idle_s,
                },
            );
            for user in &gpu.users {
                let owner = FleetOwner {
                    user: Some((*user).to_owned()),
                    kind: OwnerKind::SlurmJob,
                    id: format!("{}", 100 + user.len()),
                    namespace: None,
                };
                fleet.add_owner(place, owner);
            }
            if let Some((kind, severity)) = gpu.condition {
                fleet.add_condition(place, kind.to_owned(), severity);
            }
        }
    }
    fleet.finish()
}
