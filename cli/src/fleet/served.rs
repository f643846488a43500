//! Settings for a server that shows a fleet and does not read GPUs itself.

use std::sync::Arc;

use gpumon_server::{
    LiveSettings, SampleSource, ServerSettings, alerts::AlertSettings, auth::AccessPolicy,
    fleet::FleetSettings, runs::RunSettings, view::ShowProcesses,
};
use gpumon_workload::parent::WorkerCommand;

use crate::terminal::price::energy_price;

/// Returns the settings of a fleet server that requires no sign-in.
pub(crate) fn build_fleet_server_settings(fleet: FleetSettings) -> ServerSettings {
    ServerSettings {
        fleet: Some(fleet),
        ..default_settings()
    }
}

/// Returns the settings of a server that neither reads GPUs nor starts processes.
pub(crate) fn default_settings() -> ServerSettings {
    ServerSettings {
        readings: SampleSource::None,
        join: None,
        live: LiveSettings::default().into_fixed(),
        policy: Arc::new(AccessPolicy::allow_all()),
        show_processes: ShowProcesses::default(),
        // The worker is never started, because the server refuses all requests that change
        // anything.
        runs: RunSettings {
            worker: WorkerCommand {
                program: "gpumon".into(),
                arguments: Vec::new(),
            },
        },
        history: None,
        alerts: AlertSettings::default(),
        kubelet: None,
        fleet: None,
        energy_price: energy_price().cloned(),
    }
}
