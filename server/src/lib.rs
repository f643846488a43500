//! What gpumon serves.
//!
//! - [`frame`] is what travels: the stream's frames and the snapshot.
//! - [`kubernetes`] asks the kubelet which pods hold which devices; the collector is told.
//! - [`supervisor`] keeps the [`collector`] running, the child process that reads the driver,
//!   unless [`control`] says that it is to pause; [`stuck_collectors`] are those that cannot be
//!   killed.
//! - [`join`] shows another server's readings in the place of a collector's.
//! - [`sampling_interval`] is how often it samples, [`watching`] whether somebody watches,
//!   [`rate_limiter`] which of the samples one client gets.
//! - [`live`] is what can change while it runs.
//! - [`hub`] holds what the collector said last and passes it to every client.
//! - [`history`] keeps the recent past for clients that come late.
//! - [`fleet`] is many machines at once.
//! - [`replay`] is a recording in the place of a collector.
//! - [`alerts`] evaluates the rules of the alert file, and tells what fires.
//! - [`runs`] are those of the workload runner: processes that work, and what they say.
//! - [`stream`], [`page`], [`past`], [`jobs`], [`metrics`], [`marks`], [`cells`], [`usage`],
//!   [`pause`] and [`routes`] are the endpoints; [`guard`] stands before all of them and knows each
//!   [`public_origin`], [`auth`] has everybody sign in, [`peer`] stands before those that change
//!   anything. [`view`] is how much of processes a client sees, [`audit`] what the log has of whom,
//!   [`refused_credentials`] counts wrong ones.
//! - [`web_config`] is TLS and what else Prometheus' exporters are told in a file; files that let
//!   somebody in are [`watched`].
//! - [`openapi`] describes the endpoints and all that they take and answer with.
//! - [`encoder`] writes what takes milliseconds off the event loop, [`respond`] answers with that
//!   over HTTP.
//! - [`content_type`] is what the files of the page are.
//! - [`memory`] gives back what clients needed.
//! - [`service`] tells a service manager how the server is, [`activation`] takes sockets from it.
//! - [`listen`] is where clients come in, [`shared`] what every user of the machine may do there,
//!   [`connections`] how many may and for how long, and [`local`] the socket where programs of this
//!   machine look for a server.
//!
//! This process never loads NVML, so that a hanging or crashing driver cannot take it along.

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

/// Between samples of most recordings, and between those that a client gets that asks for no other
/// time.
const RECORDED_INTERVAL: Duration = Duration::from_secs(1);

/// What every client of a server without readings is told.
const NO_GPUS: &str = "this server shows a fleet and reads no GPUs itself; open one of its nodes";

/// How often answers that nobody asks for any more are let go of.
const TRIM_INTERVAL: Duration = Duration::from_secs(1);

/// How long open connections may take to end after the shutdown was asked for.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Where samples come from.
#[derive(Debug)]
pub enum Readings {
    /// From a child process that reads the driver.
    Collector(Collector),
    /// From a recording, which every client is told.
    Recording(Box<Player>),
    /// From nowhere: this server shows a fleet alone.
    None,
}

/// What is served.
#[derive(Debug)]
pub struct Settings {
    /// Where samples come from.
    pub readings: Readings,
    /// Whose readings are shown instead of a collector's, while that server is there.
    pub join: Option<JoinSettings>,
    /// What can change meanwhile.
    pub live: watch::Receiver<Live>,
    /// Who may come in.
    pub doors: Arc<Doors>,
    /// What others than the server's own user see of processes.
    pub show_processes: ShowProcesses,
    /// How runs of the workload runner are started, and by whom.
    pub runs: RunSettings,
    /// Where history is written; in memory alone without it.
    pub history: Option<gpumon_history::writer::Settings>,
    /// Which alerts there are.
    pub alerts: AlertSettings,
    /// The kubelet's socket for pod resources; `None` asks none.
    pub kubelet: Option<PathBuf>,
    /// Which fleet is shown, where one is.
    pub fleet: Option<FleetSettings>,
    /// The price by which energy has costs.
    pub energy_price: Option<EnergyPrice>,
}

/// Serves at every listener until `shutdown` completes, then ends every connection and the
/// collector.
///
/// # Errors
/// Where a listener fails.
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
        // So that history begins now, and not when somebody looks.
        if let Some(hosts) = &fleet.hosts {
            hosts.start();
        } else if !reads_gpus {
            // Somebody will come to see it, and is not to wait for the first reading.
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
        // It ends only by a defect. A server that looks well and shows nothing new would be worse
        // than none.
        _ = &mut supervision => Err(io::Error::other("the collector's supervisor failed")),
    };
    // The servers may have closed before the processes of runs have seen that the server stops.
    let _ = stop.send(true);
    app.runs.wait_for_end(SHUTDOWN_TIMEOUT).await;
    // Dropping the supervisor's future kills its child.
    supervision.abort();
    // What has been sampled of the last ten seconds.
    let hub = Arc::clone(&app.hub);
    let _ = tokio::task::spawn_blocking(move || {
        app.alerts.end();
        hub.end_history();
    })
    .await;
    // So that no socket is left over.
    servers.shutdown().await;
    result
}

/// Never ends.
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

/// Ends when the last door has closed, or the first fails.
async fn all_closed(servers: &mut JoinSet<io::Result<()>>) -> io::Result<()> {
    while let Some(closed) = servers.join_next().await {
        closed.map_err(io::Error::other).flatten()?;
    }
    Ok(())
}
