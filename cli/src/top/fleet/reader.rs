//! Reading of a fleet for the screen. The same thread runs a server through which the screen
//! connects to nodes.

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

/// The time until the next reading if there is no data or a problem.
const MIN_DELAY: Duration = Duration::from_secs(1);

/// The maximum delay that a source may request.
const MAX_DELAY: Duration = Duration::from_mins(1);

/// Starts a thread that sends the state of the fleet whenever it changes. The thread runs until the
/// program ends, and does not delay the end of the program.
pub(super) fn start_reader(
    fleet: FleetSettings,
    inputs: SyncSender<Input>,
) -> io::Result<Connector> {
    let (listener, connector) = Listener::open_in_process();
    let reader = Arc::clone(&fleet.reader);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let body = move || {
        runtime.block_on(async {
            // If this server ends, connecting to a node fails with an error that is shown.
            tokio::spawn(gpumon_server::run(
                vec![listener],
                served::build_fleet_server_settings(fleet),
                pending(),
            ));
            loop {
                let fleet = reader.fetch_current_fleet().await;
                let is_well = matches!(fleet.state, FleetState::Current | FleetState::Partial);
                let wait = if is_well {
                    Duration::from_secs(fleet.refresh_s.into()).clamp(MIN_DELAY, MAX_DELAY)
                } else {
                    MIN_DELAY
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
