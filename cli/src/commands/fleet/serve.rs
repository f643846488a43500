//! The page of a fleet: a server without readings of its own.

use std::iter;

use gpumon_server::{Live, Settings, fleet::FleetSettings};

use super::super::serve::{DoorArgs, asked_to_end};
use crate::{exit::Failure, fleet::served};

pub(super) async fn serve(doors: &DoorArgs, fleet: FleetSettings) -> Result<(), Failure> {
    let shutdown = asked_to_end(doors.exit_with_parent, None)?;
    let show_processes = doors.show_processes(false)?;
    let open = doors.open(false)?;
    let door = doors.listener(&open).await?;
    tracing::info!("serving the fleet at {}", door.address(&open));
    let live = Live {
        public_origins: doors.public_origin.clone().into(),
        ..Live::default()
    }
    .fixed();
    let settings = Settings {
        live,
        doors: open,
        show_processes,
        ..served::settings(fleet)
    };
    gpumon_server::run(iter::once(door).collect(), settings, shutdown).await?;
    Ok(())
}
