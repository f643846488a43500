//! `gpumon serve`: the web server with the page, the stream and the snapshot.

mod doors;
mod reload;

use std::{
    future::Future,
    io, iter,
    net::SocketAddr,
    panic,
    path::{Path, PathBuf},
    thread::available_parallelism,
    time::Duration,
};

use anyhow::Context;
use gpumon_alerts::rules::AlertRules;
use gpumon_history::writer;
use gpumon_probe::units::Accepted;
use gpumon_server::{
    Live, Readings, Settings,
    activation::Inherited,
    alerts::AlertSettings,
    kubernetes,
    listen::{ListenError, Listener},
    local,
    runs::RunSettings,
    service,
    supervisor::Collector,
};
use gpumon_workload::parent::WorkerCommand;
use rustix::{
    process::{Pid, Resource, Rlimit, getppid, getrlimit, setrlimit},
    termios::isatty,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::block_in_place,
};

use self::{
    doors::{JoinArgs, MetricsDoorArgs},
    reload::Reload,
};
use super::collect;
use crate::{
    config::Resolved,
    exit::{Failure, Result},
    fleet::options::FleetArgs,
    options::{LARGEST_SIZE, SamplingArgs, SourceArgs},
    terminal::price::energy_price,
};

pub(super) use self::doors::DoorArgs;

/// Serve the web page, the JSON API, the live stream and Prometheus metrics
///
/// The server listens on loopback, unless it has TLS (--web-config) and tokens (--token-file),
/// users or client certificates. To reach it from another machine without them, forward the port:
/// `ssh -L 9123:127.0.0.1:9123 HOST`. A child process reads the driver; if it hangs or crashes, the
/// server replaces it and keeps its clients connected.
///
/// The page is at /, the current state as JSON at /api/v1/snapshot, the live stream (WebSocket) at
/// /api/v1/stream, and Prometheus metrics at /metrics.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
// Each field is an independent switch of the command line.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    doors: DoorArgs,

    /// Control socket, through which gpumon commands reach this server, if not at its default path
    #[arg(long, env = "GPUMON_CONTROL", value_name = "PATH")]
    control: Option<PathBuf>,

    /// Do not open a control socket
    #[arg(long, env = "GPUMON_NO_CONTROL", conflicts_with = "socket")]
    no_control: bool,

    #[command(flatten)]
    metrics_door: MetricsDoorArgs,

    #[command(flatten)]
    join: JoinArgs,

    #[command(flatten)]
    sampling: SamplingArgs,

    /// Include processes in /metrics: the 100 that hold the most GPU memory
    #[arg(long, env = "GPUMON_METRICS_PROCESSES")]
    metrics_processes: bool,

    /// Allow every user who can connect to the port to start and cancel workload runs and to set
    /// marks; the scopes of tokens are unaffected
    #[arg(long, env = "GPUMON_ALLOW_RUNS")]
    allow_runs: bool,

    #[command(flatten)]
    history: HistoryArgs,

    /// Alert file: rules, evaluated at every sample, and receivers to notify. Reloaded on SIGHUP
    #[arg(long, env = "GPUMON_ALERTS", value_name = "FILE")]
    alerts: Option<PathBuf>,

    /// Socket of the kubelet, which reports the GPUs of each pod; `none` disables this
    #[arg(long, env = "GPUMON_KUBELET_SOCKET", value_name = "PATH", default_value = kubernetes::KUBELET_SOCKET)]
    kubelet_socket: PathBuf,

    #[command(flatten)]
    fleet: FleetArgs,

    /// Program that executes runs, instead of this one
    #[arg(long, env = "GPUMON_WORKER", hide = true, value_name = "PATH")]
    worker: Option<PathBuf>,
}

/// The options for storing history.
#[derive(Debug, clap::Args)]
struct HistoryArgs {
    /// Directory for up to a year of history, created for this user only; `none` keeps 6 hours in
    /// memory
    #[arg(
        long,
        env = "GPUMON_DATA_DIR",
        value_name = "DIR",
        default_value = "none"
    )]
    data_dir: PathBuf,

    /// Default for --data-dir if no command line, variable or settings file names a directory
    #[arg(long, hide = true, value_name = "DIR")]
    default_data_dir: Option<PathBuf>,

    /// Maximum size of history on disk; the oldest rows are deleted first
    #[arg(long, env = "GPUMON_DATA_SIZE", value_name = "SIZE", default_value = "1GB", value_parser = |text: &str| DATA_SIZE.parse(text))]
    data_size: u64,
}

const NOTES: &str = "\
Examples:
  gpumon serve
      Serve the page at http://127.0.0.1:9123/.
  gpumon serve --listen 127.0.0.1:0 --interval-ms 500
      Use a free port, printed in the first message, and sample twice per second.
  gpumon serve --socket /run/user/1000/gpumon-page.sock
      Serve on a unix socket for this user only.
  gpumon serve --shared-socket /run/gpumon/public.sock
      Read the GPUs for the servers of all users of this machine, too.
  gpumon serve --data-dir ~/.local/state/gpumon
      Keep history over restarts, for up to a year.
  gpumon serve --listen 0.0.0.0:9123 --web-config web.yml --token-file tokens
      Serve other machines, over TLS, for those who have a token.
  gpumon serve --public-origin https://gpus.example.org
      Serve behind a reverse proxy that authenticates users.
  gpumon serve --alerts alerts.toml
      Evaluate alert rules and notify receivers; see `gpumon alerts --help`.

Every option has a variable, as GPUMON_DATA_DIR for --data-dir, and a key in [serve] of the settings file; see `gpumon
config --help`. On SIGHUP, the server reloads settings files and alert rules.

Environment:
  GPUMON_TOKEN  a token of the scope run, in addition to those of --token-file
  XDG_RUNTIME_DIR  folder of the control socket

Files:
  $XDG_RUNTIME_DIR/gpumon.sock, /tmp/gpumon-UID/gpumon.sock, /run/gpumon/gpumon.sock
      Default paths of the control socket: the first one that can be created; the last one for root.
  /run/gpumon/public.sock
      Default path of --join, where the system service shares its readings.
  DIR/history.db
      History, an SQLite database.
  DIR/learned.json
      Usual clock and power of each GPU, by which a slower one is found.
  DIR/benchmarks.json
      Results of `gpumon bench --save-baseline`, by which a slower GPU is found.
  DIR/alerts.json
      Alerts that fire, and the receivers notified of each.

Exit codes: 0 stopped by a signal, 1 error, 2 invalid argument or address in use";

/// The maximum number of threads. The remaining processors are left to other work.
const MOST_THREADS: usize = 4;

pub(crate) fn run(source: &SourceArgs, args: &ServeArgs, resolved: &Resolved) -> Result {
    // The inherited sockets are taken from environment variables while this process has only one
    // thread.
    let inherited = Inherited::take().map_err(Failure::usage)?;
    in_runtime(serve(source, args, resolved, inherited))
}

/// Runs the server in an async runtime that logs to standard error.
pub(super) fn in_runtime(served: impl Future<Output = Result>) -> Result {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(false)
        .without_time()
        // If the log cannot be written, the server continues.
        .log_internal_errors(false)
        .init();
    // A panic ends only the connection whose task panics, because another process reads the driver.
    drop(panic::take_hook());
    allow_many_connections();
    // With thousands of clients, each sample is sent to all clients at the same time.
    let threads = available_parallelism().map_or(2, |all| all.get().clamp(2, MOST_THREADS));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    let served = runtime.block_on(served);
    // A child process that is stuck in the driver must not delay the exit.
    runtime.shutdown_timeout(Duration::from_millis(200));
    served
}

/// Returns a future that completes when the server should end: on a signal, or when its parent
/// exits if `exit_with_parent` is set. A hang-up signal may reload settings and rules instead.
pub(super) fn asked_to_end(
    exit_with_parent: bool,
    reload: Option<Reload>,
) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let parent = getppid();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = hung_up(&mut hang_up, reload) => {}
            () = parent_gone(parent), if exit_with_parent => {}
        }
    })
}

async fn serve(
    source: &SourceArgs,
    args: &ServeArgs,
    resolved: &Resolved,
    inherited: Inherited,
) -> Result {
    source.source.check()?;
    let program = std::env::current_exe().context("cannot find gpumon's own program file")?;
    let runs = RunSettings {
        worker: WorkerCommand {
            program: args.worker.clone().unwrap_or_else(|| program.clone()),
            arguments: source
                .to_arguments()
                .into_iter()
                .chain(["work".into()])
                .collect(),
        },
    };
    let history = args.history.settings(resolved.is_set("data_dir"));
    let data_dir = history.as_ref().map(|history| &*history.folder);
    let collector = Collector {
        program,
        arguments: source
            .to_arguments()
            .into_iter()
            .chain(collect::arguments(&args.sampling, data_dir))
            .collect(),
        interval: args.sampling.interval(),
    };
    let (rules, problem) = args.alert_rules(resolved.is_typed("alerts"))?;
    let fleet = args.fleet.settings()?;
    let (reload, live, file) = Reload::new(args, resolved);
    let shutdown = asked_to_end(args.doors.exit_with_parent, Some(reload))?;
    let show_processes = args.doors.show_processes(args.metrics_processes)?;
    let doors = args.doors.open(args.allow_runs)?;
    let door = args.doors.open_listener(&doors).await?;
    let metrics_door = args.metrics_door.open_listener(&doors)?;
    let named_door = named_door(args).await?;
    let is_activated = !inherited.is_empty();
    let inherited = inherited.into_listeners()?;
    let shared_door = args.join.open_shared().await?;
    let join = args.join.make_settings(
        source,
        &args.sampling,
        is_activated || shared_door.is_some(),
    );
    let interval_ms = args.sampling.interval_ms;
    tracing::info!(
        "serving {} every {interval_ms} ms at {}",
        source.source,
        door.address(&doors)
    );
    let local_door = match named_door {
        None if args.wants_local_door() && !is_activated => default_door().await,
        named => named,
    };
    if let Some(door) = &metrics_door {
        tracing::info!("serving metrics only at {}metrics", door.address(&doors));
    }
    let others: Vec<Listener> = local_door
        .into_iter()
        .chain(shared_door)
        .chain(inherited)
        .collect();
    for door in &others {
        tracing::info!("local programs find it at {}", door.address(&doors));
    }
    let settings = Settings {
        readings: Readings::Collector(collector),
        live,
        join,
        doors,
        show_processes,
        runs,
        history,
        alerts: AlertSettings {
            rules,
            problem,
            conditions: args.sampling.conditions(),
            file,
        },
        kubelet: named(&args.kubelet_socket),
        fleet,
        energy_price: energy_price().cloned(),
    };
    let listeners = iter::once(door).chain(metrics_door).chain(others).collect();
    gpumon_server::run(listeners, settings, shutdown).await?;
    Ok(())
}

/// Returns a path; `None` for `none`, or for an empty path as from an empty variable.
fn named(path: &Path) -> Option<PathBuf> {
    (!path.as_os_str().is_empty() && path != Path::new("none")).then(|| path.to_owned())
}

impl HistoryArgs {
    /// Returns the settings for history on disk. `is_set` means that the user chose a directory or
    /// `none`.
    fn settings(&self, is_set: bool) -> Option<writer::Settings> {
        let folder = self
            .default_data_dir
            .as_ref()
            .filter(|_| !is_set)
            .unwrap_or(&self.data_dir);
        named(folder).map(|folder| writer::Settings {
            folder,
            size_bytes: self.data_size,
        })
    }
}

/// The accepted sizes of history. The empty tables are far smaller than the minimum.
const DATA_SIZE: Accepted<u64> = Accepted::accept_sizes(
    10_000_000,
    LARGEST_SIZE,
    "a size of 10MB or more, such as 500MB, 1GB or 2GiB",
);

impl ServeArgs {
    /// Returns the settings that can change while the server runs.
    fn live(&self) -> Live {
        Live {
            interval: self.sampling.interval(),
            process_metrics: self.metrics_processes,
            runs_for_all: self.allow_runs,
            public_origins: self.doors.public_origin.clone().into(),
            history_bytes: self.history.data_size,
        }
    }

    /// Reads the alert file. An error is returned only if the command line names the file. A file
    /// that a variable or the settings name belongs to the machine, and must not prevent
    /// monitoring: if it is invalid, the server has no rules and reports why.
    fn alert_rules(&self, is_typed: bool) -> Result<(AlertRules, Option<String>)> {
        match self
            .alert_file()
            .map(|file| AlertRules::read(&file))
            .transpose()
        {
            Ok(rules) => Ok((rules.unwrap_or_default(), None)),
            Err(error) if is_typed => Err(Failure::usage(error)),
            Err(error) => Ok((AlertRules::default(), Some(error.to_string()))),
        }
    }

    fn alert_file(&self) -> Option<PathBuf> {
        self.alerts
            .clone()
            .filter(|file| !file.as_os_str().is_empty())
    }

    /// Returns `true` if a control socket is needed in addition to the port.
    fn wants_local_door(&self) -> bool {
        self.doors.socket.is_none() && !self.no_control
    }
}

/// Opens the control socket that the user named, if any. An empty variable names none.
async fn named_door(args: &ServeArgs) -> Result<Option<Listener>, ListenError> {
    match args
        .control
        .as_ref()
        .filter(|path| !path.as_os_str().is_empty() && args.wants_local_door())
    {
        Some(path) => Listener::unix(path).await.map(Some),
        None => Ok(None),
    }
}

/// Opens the control socket at its default path. If that fails, the server continues without a
/// control socket.
async fn default_door() -> Option<Listener> {
    local::listen()
        .await
        .inspect_err(|why| tracing::warn!("going on without a local socket: {why}"))
        .ok()
}

/// Raises the limit on open files to its maximum. The usual soft limit of 1024 exists only for
/// programs that use select(2), and idle connections could exhaust it.
fn allow_many_connections() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}

pub(super) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text
        .strip_prefix("localhost:")
        .map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    numeric
        .parse()
        .map_err(|_| "not ADDRESS:PORT with a port up to 65535, as 127.0.0.1:9123".to_owned())
}

/// Completes when a hang-up signal should end the server: if its terminal was closed, or if it has
/// a terminal and nothing can be reloaded. Other hang-up signals reload settings files and alert
/// rules.
async fn hung_up(hang_up: &mut Signal, mut reload: Option<Reload>) {
    let had_terminal = isatty(std::io::stdin());
    while hang_up.recv().await.is_some() {
        let is_closed = had_terminal && !isatty(std::io::stdin());
        match reload.as_mut().filter(|reload| reload.has_files()) {
            Some(reload) if !is_closed => {
                service::reloading();
                block_in_place(|| reload.read_anew());
                service::reloaded();
            }
            None if !had_terminal => {
                tracing::info!(
                    "nothing to reload: there is neither a settings file nor --alerts FILE"
                );
            }
            _ => return,
        }
    }
}

/// Completes when the parent has exited. An orphan gets another parent, but no signal.
async fn parent_gone(parent: Option<Pid>) {
    while getppid() == parent {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
