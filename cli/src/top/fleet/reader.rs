//! Reads a fleet while the screen is there, and serves what its nodes tell to this very program.

use std::{
    future::pending,
    io,
    sync::{Arc, mpsc::SyncSender},
    thread,
    time::Duration,
};

use gpumon_fleet::model::FleetState;
use gpumon_server::{
    fleet::FleetSettings,
    listen::{Connector, Listener},
};

use crate::{fleet::served, top::input::Input};

/// Until something is known, and where something is wrong.
const SOON: Duration = Duration::from_secs(1);

/// The longest that a source lets somebody wait.
const LATEST: Duration = Duration::from_mins(1);

/// Tells how it is, as often as there is something new. The thread ends with the program: nobody
/// waits for a source.
pub(super) fn start(fleet: FleetSettings, inputs: SyncSender<Input>) -> io::Result<Connector> {
    let (listener, connector) = Listener::within();
    let reader = Arc::clone(&fleet.reader);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let body = move || {
        runtime.block_on(async {
            // Where it ends, whoever connects is told.
            tokio::spawn(gpumon_server::run(
                vec![listener],
                served::settings(fleet),
                pending(),
            ));
            loop {
                let fleet = reader.now().await;
                let is_well = matches!(fleet.state, FleetState::Current | FleetState::Partial);
                let wait = if is_well {
                    Duration::from_secs(fleet.refresh_s.into()).clamp(SOON, LATEST)
                } else {
                    SOON
                };
                if inputs.send(Input::Fleet(fleet)).is_err() {
                    return;
                }
                tokio::time::sleep(wait).await;
            }
        });
    };
    thread::Builder::new()
        .name("fleet".to_owned())
        .spawn(body)?;
    Ok(connector)
}
