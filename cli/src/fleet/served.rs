//! The settings of a server that shows a fleet and reads no GPUs itself.

use std::sync::Arc;

use gpumon_server::{
    Live, Readings, Settings, alerts::AlertSettings, auth::Doors, fleet::FleetSettings,
    runs::RunSettings, view::ShowProcesses,
};
use gpumon_workload::parent::WorkerCommand;

use crate::terminal::price::energy_price;

/// Returns the settings of a fleet server that needs no sign-in.
pub(crate) fn settings(fleet: FleetSettings) -> Settings {
    Settings {
        fleet: Some(fleet),
        ..default_settings()
    }
}

/// Returns the settings of a server that neither reads GPUs nor starts processes.
pub(crate) fn default_settings() -> Settings {
    Settings {
        readings: Readings::None,
        join: None,
        live: Live::default().fixed(),
        doors: Arc::new(Doors::none()),
        show_processes: ShowProcesses::default(),
        // The server refuses all requests that change something.
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
