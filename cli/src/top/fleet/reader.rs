//! Reads a fleet for the screen, and runs a server through which the screen reaches the nodes.

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

/// The delay before the next reading while no data is available or there is a problem.
const SOON: Duration = Duration::from_secs(1);

/// The maximum delay that a source may request.
const LATEST: Duration = Duration::from_mins(1);

/// Starts the thread that sends the state of the fleet whenever it changes. The thread ends with
/// the program, which does not wait for a source.
pub(super) fn start(fleet: FleetSettings, inputs: SyncSender<Input>) -> io::Result<Connector> {
    let (listener, connector) = Listener::within();
    let reader = Arc::clone(&fleet.reader);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let body = move || {
        runtime.block_on(async {
            // If the server ends, connections to it fail with an error.
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
