//! The page of a fleet: a server without readings of its own.

use std::iter;

use gpumon_server::{Live, Readings, Settings, alerts::AlertSettings, fleet::FleetSettings, runs::RunSettings};
use gpumon_workload::parent::WorkerCommand;

use super::super::serve::{DoorArgs, asked_to_end};
use crate::exit::Failure;

pub(super) async fn serve(doors: &DoorArgs, fleet: FleetSettings) -> Result<(), Failure> {
    let shutdown = asked_to_end(doors.exit_with_parent, None)?;
    let show_processes = doors.show_processes(false)?;
    let open = doors.open(false)?;
    let door = doors.listener(&open).await?;
    tracing::info!("serving the fleet at {}", door.address(&open));
    let settings = Settings {
        readings: Readings::None,
        live: Live { public_origins: doors.public_origin.clone().into(), ..Live::default() }.fixed(),
        join: None,
        doors: open,
        show_processes,
        // None is started: the server refuses what changes anything.
        runs: RunSettings { worker: WorkerCommand { program: "gpumon".into(), arguments: Vec::new() } },
        history: None,
        alerts: AlertSettings::default(),
        kubelet: None,
        fleet: Some(fleet),
    };
    gpumon_server::run(iter::once(door).collect(), settings, shutdown).await?;
    Ok(())
}
