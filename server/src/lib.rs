//! The server of gpumon.
//!
//! - [`frame`] has the messages of the stream, and the snapshot.
//! - [`supervisor`] keeps the [`collector`] running, the child process that reads the driver,
//!   unless [`control`] requests a pause; [`stuck_collectors`] has those that cannot be killed.
//! - [`join`] shows the readings of another server, [`replay`] those of a recording.
//! - [`kubernetes`] asks the kubelet which pods hold which devices.
//! - [`sampling_interval`] combines the intervals that clients request, [`watching`] counts
//!   viewers, [`rate_limiter`] selects the samples for one client.
//! - [`live`] has the settings that can change while the server runs.
//! - [`hub`] keeps the collector's data and sends it to all clients.
//! - [`history`] keeps the past.
//! - [`fleet`] shows many machines.
//! - [`alerts`] evaluates the rules of the alert file.
//! - [`runs`] starts workload runs.
//! - [`stream`], [`page`], [`past`], [`jobs`], [`metrics`], [`marks`], [`cells`], [`usage`],
//!   [`pause`] and [`routes`] are the endpoints. [`guard`] checks all requests, including each
//!   [`public_origin`]; [`auth`] requires users to sign in; [`peer`] finds the user at the other
//!   end of a connection. [`view`] limits the processes that a client sees, [`audit`] writes the
//!   log, [`refused_credentials`] counts wrong credentials.
//! - [`web_config`] reads TLS settings and users in Prometheus' format; files with credentials are
//!   [`watched`] for changes.
//! - [`openapi`] describes the endpoints and their types.
//! - [`encoder`] encodes large responses outside the event loop, [`respond`] sends them over HTTP.
//! - [`content_type`] has the types of the page's files.
//! - [`memory`] returns freed memory to the system.
//! - [`service`] reports the state to a service manager, [`activation`] takes over its sockets.
//! - [`listen`] opens ports and sockets, [`shared`] limits the socket that all users share,
//!   [`connections`] limits connections, and [`local`] finds the socket of a running server.
//!
//! This process never loads NVML, so that it is not affected by a driver that hangs or crashes.

pub mod activation;
pub mod alerts;
mod answers;
mod app;
mod audit;
pub mod auth;
mod behind_proxy;
mod cells;
mod collector;
mod connections;
mod content_type;
mod control;
pub mod costs;
pub mod driver_answers;
mod encoder;
pub mod fleet;
mod found_gpus;
pub mod frame;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod guard;
mod history;
mod hub;
mod jobs;
pub mod join;
pub mod kubernetes;
pub mod listen;
mod live;
pub mod local;
mod lock;
mod marks;
mod memory;
mod metrics;
pub mod openapi;
mod page;
mod past;
mod pause;
mod peer;
pub mod public_origin;
mod query;
mod rate_limiter;
mod refused_credentials;
mod replay;
mod respond;
mod routes;
pub mod runs;
mod sampling_interval;
pub mod service;
mod shared;
mod snapshot;
mod snapshot_parts;
mod stream;
mod stuck_collectors;
pub mod supervisor;
mod usage;
pub mod view;
mod watched;
mod watching;
mod web_config;

use std::{future::Future, io, path::PathBuf, sync::Arc, time::Duration};

use axum::middleware;
use gpumon_probe::model::EnergyPrice;
use gpumon_recording::Player;
use tokio::{sync::watch, task::JoinSet};

pub use self::live::Live;
use self::{
    alerts::{AlertSettings, Alerts},
    app::{AppState, Encoders},
    auth::{Doors, RatePerClient},
    control::Control,
    fleet::FleetSettings,
    frame::CollectorState,
    hub::Hub,
    join::JoinSettings,
    listen::Listener,
    memory::Memory,
    replay::Replay,
    runs::{RunSettings, Runs},
    sampling_interval::SamplingInterval,
    supervisor::{Collector, Instructions},
    view::ShowProcesses,
    watching::Watching,
};

/// The sampling interval of most recordings, and of clients that request no other.
const RECORDED_INTERVAL: Duration = Duration::from_secs(1);

/// The collector's message on a server without readings.
const NO_GPUS: &str = "this server shows a fleet and reads no GPUs itself; open one of its nodes";

/// The interval at which unused responses are released.
const TRIM_INTERVAL: Duration = Duration::from_secs(1);

/// The time limit for open connections to end after a shutdown request.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The source of samples.
#[derive(Debug)]
pub enum Readings {
    /// A child process that reads the driver.
    Collector(Collector),
    /// A recording. Clients are informed that it is one.
    Recording(Box<Player>),
    /// No source: this server only shows a fleet.
    None,
}

/// The settings of a server.
#[derive(Debug)]
pub struct Settings {
    /// The source of samples.
    pub readings: Readings,
    /// The server whose readings replace those of the collector while it is available.
    pub join: Option<JoinSettings>,
    /// The settings that can change while the server runs.
    pub live: watch::Receiver<Live>,
    /// The access policy of the server.
    pub doors: Arc<Doors>,
    /// The processes that users other than the server's own can see.
    pub show_processes: ShowProcesses,
    /// The settings for workload runs.
    pub runs: RunSettings,
    /// The settings for history on disk. Without them, history is only in memory.
    pub history: Option<gpumon_history::writer::Settings>,
    /// The alert rules and their file.
    pub alerts: AlertSettings,
    /// The kubelet's socket for pod resources, if the kubelet should be asked.
    pub kubelet: Option<PathBuf>,
    /// The fleet, if the server shows one.
    pub fleet: Option<FleetSettings>,
    /// The price of energy for calculating costs.
    pub energy_price: Option<EnergyPrice>,
}

/// Serves all listeners until `shutdown` completes, then ends all connections and the collector.
///
/// # Errors
/// Returns an error if a listener fails.
pub async fn run(
    listeners: Vec<Listener>,
    settings: Settings,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let Settings {
        readings,
        join,
        live,
        doors,
        show_processes,
        runs,
        history,
        alerts,
        kubelet,
        fleet,
        energy_price,
    } = settings;
    let (hub, control) = (Arc::new(Hub::new()), Arc::new(Control::new()));
    if let Some(price) = energy_price {
        hub.set_energy_price(price);
    }
    let data_folder = history.as_ref().map(|history| history.folder.clone());
    if let Some(history) = history {
        hub.write_history(history)?;
    }
    let sampling_interval = SamplingInterval::new(match &readings {
        Readings::Collector(collector) => collector.interval,
        Readings::Recording(_) | Readings::None => RECORDED_INTERVAL,
    });
    let watching = Watching::new();
    let reads_gpus = !matches!(readings, Readings::None);
    let (stop, stopped) = watch::channel(false);
    let runs = Arc::new(Runs::new(runs, Arc::clone(&hub), stopped.clone()));
    let (allocations_sender, allocations) = watch::channel(Vec::new());
    let (mut supervision, replay) = match readings {
        Readings::Collector(collector) => {
            let instructions = Instructions {
                interval: sampling_interval.interval(),
                watchers: watching.watchers(),
                allocations,
            };
            let supervision = supervisor::supervise(
                collector,
                Arc::clone(&hub),
                Arc::clone(&control),
                instructions,
                join,
            );
            (tokio::spawn(supervision), None)
        }
        Readings::Recording(player) => (
            tokio::spawn(std::future::pending()),
            Some(Replay::start(*player, Arc::clone(&hub))?),
        ),
        Readings::None => {
            hub.set_collector_state(CollectorState::Unavailable, Some(NO_GPUS.to_owned()));
            (tokio::spawn(std::future::pending()), None)
        }
    };
    if doors.asks() {
        hub.count_refusals(doors.refused());
    }
    if let Some(fleet) = &fleet {
        hub.tell_of_fleet();
        // Connecting at the start makes history begin at once, not with the first viewer.
        if let Some(hosts) = &fleet.hosts {
            hosts.start();
        } else if !reads_gpus {
            // The first viewer should not have to wait for the first reading.
            let reader = Arc::clone(&fleet.reader);
            tokio::spawn(async move { reader.now().await });
        }
    }
    let alerts = Arc::new(Alerts::new(
        Arc::clone(&hub),
        &alerts,
        Arc::clone(&watching),
    ));
    let mut evaluation = JoinSet::new();
    if let Some(socket) = kubelet {
        tokio::spawn(kubernetes::follow(socket, allocations_sender));
    }
    evaluation.spawn(alerts::run(Arc::clone(&alerts), data_folder));
    let following = live::follow(
        live.clone(),
        Arc::clone(&sampling_interval),
        Arc::clone(&hub),
        Arc::clone(&doors),
    );
    let app = AppState {
        hub,
        alerts,
        sampling_interval,
        watching,
        control,
        runs,
        replay,
        fleet: fleet.map(Arc::new),
        reads_gpus,
        event_limit: Arc::new(RatePerClient::new()),
        encoders: Arc::new(Encoders::new()),
        live,
        doors: Arc::clone(&doors),
        show_processes,
        stopped: stopped.clone(),
    };
    let connections = connections::ConnectionTable::new();
    let mut servers = JoinSet::new();
    for listener in listeners {
        let router = routes::router(app.clone(), &listener);
        let router = if listener.is_shared() {
            router.layer(middleware::from_fn(shared::read_only))
        } else {
            router
        };
        let (live, doors, connections) = (
            app.live.clone(),
            Arc::clone(&doors),
            Arc::clone(&connections),
        );
        servers.spawn(connections::serve(
            listener,
            live,
            doors,
            router,
            connections,
            stopped.clone(),
        ));
    }
    service::ready();
    let result = tokio::select! {
        result = all_closed(&mut servers) => result,
        () = async {
            shutdown.await;
            service::stopping();
            let _ = stop.send(true);
            tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
        } => Ok(()),
        () = trim(&app, &connections) => Ok(()),
        () = app.hub.end_buckets() => Ok(()),
        () = following => Ok(()),
        () = service::report(&app.hub, &connections) => Ok(()),
        () = metrics::keep_ready(&app) => Ok(()),
        () = Arc::clone(&doors).watch() => Ok(()),
        Some(_) = evaluation.join_next() => Err(io::Error::other("the evaluation of alerts failed")),
        // The supervisor only ends because of a defect. A server that appears to work but shows
        // nothing new would be worse than none.
        _ = &mut supervision => Err(io::Error::other("the collector's supervisor failed")),
    };
    // If all listeners have closed, the processes of runs have not been notified yet.
    let _ = stop.send(true);
    app.runs.wait_for_end(SHUTDOWN_TIMEOUT).await;
    // Dropping the supervisor's future kills the collector.
    supervision.abort();
    // The samples of the current bucket are still to be written.
    let hub = Arc::clone(&app.hub);
    let _ = tokio::task::spawn_blocking(move || {
        app.alerts.end();
        hub.end_history();
    })
    .await;
    // The listeners must be dropped, so that their sockets are removed.
    servers.shutdown().await;
    result
}

/// Releases unused responses and freed memory. This function never returns.
async fn trim(app: &AppState, connections: &connections::ConnectionTable) {
    let mut memory = Memory::new();
    loop {
        tokio::time::sleep(TRIM_INTERVAL).await;
        let of_fleet = app
            .fleet
            .as_ref()
            .map_or(0, |fleet| fleet.reader.released_kib());
        memory.trim(connections.count(), app.encoders.trim() + of_fleet);
    }
}

/// Waits until all listeners have closed, or until one fails.
async fn all_closed(servers: &mut JoinSet<io::Result<()>>) -> io::Result<()> {
    while let Some(closed) = servers.join_next().await {
        closed.map_err(io::Error::other).flatten()?;
    }
    Ok(())
}
