//! What gpumon serves.
//!
//! - [`frame`] is what travels: the stream's frames and the snapshot.
//! - [`supervisor`] keeps the collector running, the child process that reads the driver.
//! - [`hub`] holds what the collector said last and passes it to every client.
//! - [`history`] keeps the recent past for clients that come late.
//! - [`stream`], [`page`] and [`routes`] are the endpoints; [`guard`] stands before all of them.
//! - [`listen`] is where clients come in.
//!
//! This process never loads NVML, so that a hanging or crashing driver cannot take it along.

#![forbid(unsafe_code)]

mod app;
pub mod frame;
mod guard;
mod history;
mod hub;
pub mod listen;
mod page;
mod routes;
mod stream;
pub mod supervisor;

use std::{future::Future, sync::Arc, time::Duration};

use tokio::sync::watch;

use self::{app::AppState, listen::Listener, supervisor::Collector};
pub use self::{guard::Access, hub::Hub};

/// How long open connections may take to end after the shutdown was asked for.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves until `shutdown` completes, then ends every connection and the collector.
///
/// # Errors
/// Where the listener fails.
pub async fn run(
    listener: Listener,
    access: Access,
    collector: Collector,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let hub = Arc::new(Hub::new());
    let (stop, stopped) = watch::channel(false);
    let mut supervision = tokio::spawn(supervisor::supervise(collector, Arc::clone(&hub)));
    let app = routes::router(AppState { hub, stopped: stopped.clone() }, access);
    let mut until_stopped = stopped;
    let graceful = async move {
        shutdown.await;
        let _ = stop.send(true);
    };
    let serving = listener.serve(app, graceful);
    tokio::pin!(serving);
    let result = tokio::select! {
        result = &mut serving => result,
        () = async {
            let _ = until_stopped.wait_for(|stopped| *stopped).await;
            tokio::time::sleep(FAREWELL).await;
        } => Ok(()),
        // It ends only by a defect. A server that looks well and shows nothing new would be worse than none.
        _ = &mut supervision => Err(std::io::Error::other("the collector's supervisor failed")),
    };
    // Dropping the supervisor's future kills its child.
    supervision.abort();
    result
}
