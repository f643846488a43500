//! gpumon's server.
//!
//! - [`frame`] contains the messages of the stream, and the snapshot.
//! - [`supervisor`] keeps the [`collector`] running, the child process that reads the driver,
//!   unless a pause is requested. [`gpu_search`] finds added GPUs.
//! - [`join`] shows the readings of another server, and [`replay`] the readings of a recording.
//! - [`kubernetes`] asks the kubelet which pods hold which devices.
//! - [`sampling`] combines the intervals that clients request, selects the samples for one client,
//!   and counts viewers.
//! - [`live_settings`] contains the settings that can change while the server runs.
//! - [`hub`] keeps the collector's data and sends it to all clients.
//! - [`history`] keeps past readings.
//! - [`fleet`] shows many machines.
//! - [`alerts`] evaluates the rules of the alert file.
//! - [`runs`] starts workload runs.
//! - [`stream`], [`snapshot`], [`metrics`], [`usage`], [`client_events`], [`pause`], [`page`] and
//!   [`routes`] are the endpoints. [`guard`] checks all requests, including each [`public_origin`].
//!   [`auth`] requires users to sign in, and [`peer`] finds the user at the other end of a
//!   connection. [`view`] limits the processes that a client sees, and [`audit`] writes the audit
//!   log.
//! - [`web_config`] reads TLS settings and users in Prometheus' format. [`watched_file`] checks
//!   files with credentials for changes.
//! - [`openapi`] describes the endpoints and their types.
//! - [`responses`] encodes HTTP responses outside the event loop. [`quota`] limits the memory or
//!   slots that each client uses.
//! - [`content_type`] contains the content types of the page's files.
//! - [`memory`] returns freed memory to the system.
//! - [`service_manager`] reports the state to a service manager, and takes over its sockets.
//! - [`listen`] opens ports and sockets, [`connections`] limits connections, and [`local`] finds
//!   the socket of a running server.
//!
//! This process never loads NVML, so a driver that hangs or crashes does not affect it.

pub mod alerts;
mod app;
mod audit;
pub mod auth;
mod client_events;
mod collector;
mod connections;
mod content_type;
pub mod fleet;
pub mod frame;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod gpu_search;
mod guard;
mod history;
mod hub;
pub mod join;
pub mod kubernetes;
pub mod listen;
mod live_settings;
pub mod local;
mod lock;
mod memory;
mod metrics;
pub mod openapi;
mod page;
mod pause;
mod peer;
pub mod public_origin;
mod query;
mod quota;
mod refusal;
mod replay;
mod responses;
mod routes;
pub mod runs;
mod sampling;
pub mod service_manager;
mod snapshot;
mod stream;
pub mod supervisor;
pub mod usage;
pub mod view;
mod watched_file;
mod web_config;

use std::{future::Future, io, path::PathBuf, sync::Arc, time::Duration};

use axum::middleware;
use gpumon_probe::model::EnergyPrice;
use gpumon_recording::Player;
use tokio::{sync::watch, task::JoinSet};

pub use self::live_settings::LiveSettings;
use self::{
    alerts::{AlertSettings, Alerts},
    app::{AppState, Encoders},
    auth::{AccessPolicy, RatePerClient},
    fleet::FleetSettings,
    frame::CollectorState,
    hub::Hub,
    join::JoinSettings,
    listen::Listener,
    memory::MemoryTrimmer,
    replay::Replay,
    runs::{RunSettings, Runs},
    sampling::{SamplingInterval, ViewerCounter},
    supervisor::{CollectorCommand, CollectorInstructions, PauseControl},
    view::ShowProcesses,
};

/// The sampling interval of most recordings. It also applies to clients that request no other
/// interval.
const RECORDED_INTERVAL: Duration = Duration::from_secs(1);

/// The collector's message on a server that shows only a fleet and reads no GPUs.
const NO_GPUS_MESSAGE: &str =
    "this server shows a fleet and reads no GPUs itself; open one of its nodes";

/// The interval at which unused responses are released.
const TRIM_INTERVAL: Duration = Duration::from_secs(1);

/// The time limit for open connections to end when the server shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The source of samples.
#[derive(Debug)]
pub enum SampleSource {
    /// A child process that reads the driver.
    Collector(CollectorCommand),
    /// A recording. Clients are informed that the readings are recorded.
    Recording(Box<Player>),
    /// No source, because this server only shows a fleet.
    None,
}

/// The settings of a server.
pub struct ServerSettings {
    /// The source of samples.
    pub readings: SampleSource,
    /// The settings for joining another server, whose readings replace the collector's while it is
    /// available.
    pub join: Option<JoinSettings>,
    /// The settings that can change while the server runs.
    pub live: watch::Receiver<LiveSettings>,
    /// The server's access policy.
    pub policy: Arc<AccessPolicy>,
    /// The setting that determines which processes users may see. It does not apply to the server's
    /// own user and root.
    pub show_processes: ShowProcesses,
    /// The settings for workload runs.
    pub runs: RunSettings,
    /// The settings for the history on disk. Without them, the history is only kept in memory.
    pub history: Option<gpumon_history::writer::WriterSettings>,
    /// The alert rules and their file.
    pub alerts: AlertSettings,
    /// The kubelet's socket for pod resources, if the kubelet should be queried.
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
    settings: ServerSettings,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let ServerSettings {
        readings,
        join,
        live,
        policy,
        show_processes,
        runs,
        history,
        alerts,
        kubelet,
        fleet,
        energy_price,
    } = settings;
    let (hub, control) = (Arc::new(Hub::new()), Arc::new(PauseControl::new()));
    if let Some(price) = energy_price {
        hub.set_energy_price(price);
    }
    let data_folder = history.as_ref().map(|history| history.folder.clone());
    if let Some(history) = history {
        hub.start_writing_history(history)?;
    }
    let sampling_interval = SamplingInterval::new(match &readings {
        SampleSource::Collector(collector) => collector.interval,
        SampleSource::Recording(_) | SampleSource::None => RECORDED_INTERVAL,
    });
    let watching = ViewerCounter::new();
    let reads_gpus = !matches!(readings, SampleSource::None);
    let (stop, stopped) = watch::channel(false);
    let runs = Arc::new(Runs::new(runs, Arc::clone(&hub), stopped.clone()));
    let (allocations_sender, allocations) = watch::channel(Vec::new());
    let (mut supervision, replay) = match readings {
        SampleSource::Collector(collector) => {
            let instructions = CollectorInstructions {
                interval: sampling_interval.subscribe_interval(),
                watchers: watching.subscribe_viewer_count(),
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
        SampleSource::Recording(player) => (
            tokio::spawn(std::future::pending()),
            Some(Replay::start(*player, Arc::clone(&hub))?),
        ),
        SampleSource::None => {
            hub.set_collector_state(
                CollectorState::Unavailable,
                Some(NO_GPUS_MESSAGE.to_owned()),
            );
            (tokio::spawn(std::future::pending()), None)
        }
    };
    if policy.requires_sign_in() {
        hub.set_refusal_counts(policy.refusal_counts());
    }
    if let Some(fleet) = &fleet {
        hub.set_has_fleet();
        // Connecting at the server's start makes the history begin immediately, not with the first
        // viewer.
        if let Some(hosts) = &fleet.hosts {
            hosts.start_connections();
        } else if !reads_gpus {
            // The first viewer should not have to wait for the first read of the fleet.
            let reader = Arc::clone(&fleet.reader);
            tokio::spawn(async move { reader.fetch_current_fleet().await });
        }
    }
    let alerts = Arc::new(Alerts::new(
        Arc::clone(&hub),
        &alerts,
        Arc::clone(&watching),
    ));
    let mut evaluation = JoinSet::new();
    if let Some(socket) = kubelet {
        tokio::spawn(kubernetes::watch_allocations(socket, allocations_sender));
    }
    evaluation.spawn(alerts::run_alerts(Arc::clone(&alerts), data_folder));
    let following = live_settings::apply_changes(
        live.clone(),
        Arc::clone(&sampling_interval),
        Arc::clone(&hub),
        Arc::clone(&policy),
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
        policy: Arc::clone(&policy),
        show_processes,
        stopped: stopped.clone(),
    };
    let connections = connections::ConnectionTable::new();
    let mut servers = JoinSet::new();
    for listener in listeners {
        let router = routes::build_router(app.clone(), &listener);
        let router = if listener.is_shared() {
            router.layer(middleware::from_fn(local::refuse_changes))
        } else {
            router
        };
        let (live, policy, connections) = (
            app.live.clone(),
            Arc::clone(&policy),
            Arc::clone(&connections),
        );
        servers.spawn(connections::serve_listener(
            listener,
            live,
            policy,
            router,
            connections,
            stopped.clone(),
        ));
    }
    service_manager::notify_ready();
    let result = tokio::select! {
        result = wait_until_closed(&mut servers) => result,
        () = async {
            shutdown.await;
            service_manager::notify_stopping();
            let _ = stop.send(true);
            tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
        } => Ok(()),
        () = trim_memory_regularly(&app, &connections) => Ok(()),
        () = app.hub.end_buckets_regularly() => Ok(()),
        () = following => Ok(()),
        () = service_manager::report_status(&app.hub, &connections) => Ok(()),
        () = metrics::keep_pages_ready(&app) => Ok(()),
        () = Arc::clone(&policy).watch_files() => Ok(()),
        Some(_) = evaluation.join_next() => Err(io::Error::other("the evaluation of alerts failed")),
        // The supervisor ends only because of a bug. In that case, the server ends too: a server
        // that appears to work but shows no new data would be worse than none.
        _ = &mut supervision => Err(io::Error::other("the collector's supervisor failed")),
    };
    // The server also ends if all listeners have closed. In that case, the worker processes of runs
    // must still be notified that they should stop.
    let _ = stop.send(true);
    app.runs.wait_for_workers(SHUTDOWN_TIMEOUT).await;
    // Dropping the supervisor's future kills the collector.
    supervision.abort();
    // The current, incomplete history bucket and the alerts must still be written to disk.
    let hub = Arc::clone(&app.hub);
    let _ = tokio::task::spawn_blocking(move || {
        app.alerts.finish_writing();
        hub.write_remaining_history();
    })
    .await;
    // Shutting down drops the listeners, which removes their socket files.
    servers.shutdown().await;
    result
}

/// Regularly releases unused responses and freed memory. This function never returns.
async fn trim_memory_regularly(app: &AppState, connections: &connections::ConnectionTable) {
    let mut memory = MemoryTrimmer::new();
    loop {
        tokio::time::sleep(TRIM_INTERVAL).await;
        let of_fleet = app
            .fleet
            .as_ref()
            .map_or(0, |fleet| fleet.reader.take_released_memory_kib());
        memory.trim_if_worthwhile(
            connections.count(),
            app.encoders.release_unused_responses() + of_fleet,
        );
    }
}

/// Waits until all listeners have closed, or until one fails.
async fn wait_until_closed(servers: &mut JoinSet<io::Result<()>>) -> io::Result<()> {
    while let Some(closed) = servers.join_next().await {
        closed.map_err(io::Error::other).flatten()?;
    }
    Ok(())
}
