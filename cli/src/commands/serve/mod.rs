//! `gpumon serve`: the server of the web page, the live stream and the snapshot.

mod access;
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
use gpumon_probe::units::AcceptedAmounts;
use gpumon_server::{
    LiveSettings, SampleSource, ServerSettings,
    alerts::AlertSettings,
    kubernetes,
    listen::{ListenError, Listener},
    local,
    runs::RunSettings,
    service_manager::{self, InheritedSockets},
    supervisor::CollectorCommand,
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
    access::{JoinArgs, MetricsListenerArgs},
    reload::Reloader,
};
use super::collect;
use crate::{
    config::ResolvedArguments,
    exit::{Failure, Result},
    fleet::options::{FleetArgs, filter_empty_path},
    options::{MAX_SIZE_BYTES, SamplingArgs, SourceArgs},
    terminal::units::energy_price,
};

pub(super) use self::access::AccessArgs;

/// Serve the web page, the JSON API, the live stream and Prometheus metrics
///
/// The server listens on loopback, unless it has TLS (--web-config) and tokens (--token-file),
/// users or client certificates. To reach a server on loopback from another machine, forward the
/// port: `ssh -L 9123:127.0.0.1:9123 HOST`. A child process reads the driver; if the child process
/// hangs or crashes, the server replaces it and keeps its clients connected.
///
/// The page is at /, the current state as JSON at /api/v1/snapshot, the live stream (WebSocket) at
/// /api/v1/stream, and Prometheus metrics at /metrics.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
// Each field is an independent switch of the command line.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    access: AccessArgs,

    /// Path of the control socket, through which gpumon commands reach this server, if not the
    /// default path
    #[arg(long, env = "GPUMON_CONTROL", value_name = "PATH")]
    control: Option<PathBuf>,

    /// Do not open a control socket
    #[arg(long, env = "GPUMON_NO_CONTROL", conflicts_with = "socket")]
    no_control: bool,

    #[command(flatten)]
    metrics_door: MetricsListenerArgs,

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
    #[arg(
        long, env = "GPUMON_KUBELET_SOCKET", value_name = "PATH",
        default_value = kubernetes::KUBELET_SOCKET
    )]
    kubelet_socket: PathBuf,

    #[command(flatten)]
    fleet: FleetArgs,

    /// Program that executes runs, instead of the gpumon program
    #[arg(long, env = "GPUMON_WORKER", hide = true, value_name = "PATH")]
    worker: Option<PathBuf>,
}

/// Options for storing history.
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
    #[arg(
        long, env = "GPUMON_DATA_SIZE", value_name = "SIZE", default_value = "1GB",
        value_parser = |text: &str| ACCEPTED_DATA_SIZES.parse(text)
    )]
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
      Also read the GPUs for the servers of all users of this machine.
  gpumon serve --data-dir ~/.local/state/gpumon
      Keep history across restarts, for up to a year.
  gpumon serve --listen 0.0.0.0:9123 --web-config web.yml --token-file tokens
      Serve other machines over TLS, for clients that have a token.
  gpumon serve --public-origin https://gpus.example.org
      Serve behind a reverse proxy that authenticates users.
  gpumon serve --alerts alerts.toml
      Evaluate alert rules and notify receivers; see `gpumon alerts --help`.

Every option has an environment variable, such as GPUMON_DATA_DIR for --data-dir, and a key in [serve] of the
settings file; see `gpumon config --help`. On SIGHUP, the server reloads settings files and alert rules.

Environment:
  GPUMON_TOKEN  a token with the scope `run`, in addition to those of --token-file
  XDG_RUNTIME_DIR  folder of the control socket

Files:
  $XDG_RUNTIME_DIR/gpumon.sock, /tmp/gpumon-UID/gpumon.sock, /run/gpumon/gpumon.sock
      Default paths of the control socket: the first one that can be created; the last one for root.
  /run/gpumon/public.sock
      Default path of --join, where the system service shares its readings.
  DIR/history.db
      History, an SQLite database.
  DIR/learned.json
      Usual clock and power of each GPU, used to detect a slower one.
  DIR/benchmarks.json
      Results of `gpumon bench --save-baseline`, used to detect a slower GPU.
  DIR/alerts.json
      Firing alerts, and the receivers notified of each.

Exit codes: 0 stopped by a signal, 1 error, 2 invalid argument or address in use";

/// The maximum number of server threads, so that processors remain for other work.
const MAX_THREADS: usize = 4;

pub(crate) fn run(source: &SourceArgs, args: &ServeArgs, resolved: &ResolvedArguments) -> Result {
    // The inherited sockets are read from environment variables before this process starts other
    // threads.
    let inherited = InheritedSockets::take().map_err(Failure::from_usage_error)?;
    run_in_runtime(serve(source, args, resolved, inherited))
}

/// Runs the server in an async runtime that logs to standard error.
pub(super) fn run_in_runtime(served: impl Future<Output = Result>) -> Result {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(false)
        .without_time()
        // A failure to write the log must not stop the server.
        .log_internal_errors(false)
        .init();
    // The default panic handler is restored, so that a panic ends only the task of one connection.
    // This is safe because the driver is read in another process.
    drop(panic::take_hook());
    raise_open_file_limit();
    // Several threads are used because each sample is sent to all clients at the same time, and
    // there may be thousands of clients.
    let threads = available_parallelism().map_or(2, |all| all.get().clamp(2, MAX_THREADS));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    let served = runtime.block_on(served);
    // A child process that is stuck in the driver must not delay the exit.
    runtime.shutdown_timeout(Duration::from_millis(200));
    served
}

/// Returns a future that completes when the server should shut down: on a signal, or when the
/// parent exits if `exit_with_parent` is set. A hang-up signal may instead reload settings and
/// rules.
pub(super) fn wait_for_shutdown(
    exit_with_parent: bool,
    reload: Option<Reloader>,
) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let parent = getppid();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = reload_until_final_hang_up(&mut hang_up, reload) => {}
            () = wait_for_parent_exit(parent), if exit_with_parent => {}
        }
    })
}

async fn serve(
    source: &SourceArgs,
    args: &ServeArgs,
    resolved: &ResolvedArguments,
    inherited: InheritedSockets,
) -> Result {
    source.source.check_scenario_file()?;
    let program = std::env::current_exe().context("cannot find the gpumon executable")?;
    let runs = RunSettings {
        worker: WorkerCommand {
            program: args.worker.clone().unwrap_or_else(|| program.clone()),
            arguments: [source.to_arguments(), vec!["work".into()]].concat(),
        },
    };
    let history = args.history.to_settings(resolved.is_set("data_dir"));
    let data_dir = history.as_ref().map(|history| &*history.folder);
    let arguments = collect::build_collector_arguments(&args.sampling, data_dir);
    let collector = CollectorCommand {
        program,
        arguments: [source.to_arguments(), arguments].concat(),
        interval: args.sampling.interval(),
    };
    let (rules, problem) = args.read_alert_rules(resolved.is_typed("alerts"))?;
    let fleet = args.fleet.settings()?;
    let (reload, live, file) = Reloader::new(args, resolved);
    let shutdown = wait_for_shutdown(args.access.exit_with_parent, Some(reload))?;
    let show_processes = args.access.process_visibility(args.metrics_processes)?;
    let access = args.access.build_access_policy(args.allow_runs)?;
    let door = args.access.open_listener(&access).await?;
    let metrics_door = args.metrics_door.open_listener(&access)?;
    let named_door = open_named_socket(args).await?;
    let is_activated = !inherited.is_empty();
    let inherited = inherited.into_listeners()?;
    let shared_door = args.join.open_shared_socket().await?;
    let join = args.join.make_settings(
        source,
        &args.sampling,
        is_activated || shared_door.is_some(),
    );
    let interval_ms = args.sampling.interval_ms;
    tracing::info!(
        "sampling {} every {interval_ms} ms, serving at {}",
        source.source,
        door.display_address(&access)
    );
    let local_door = match named_door {
        None if args.needs_control_socket() && !is_activated => open_default_socket().await,
        named => named,
    };
    if let Some(door) = &metrics_door {
        tracing::info!(
            "serving only metrics at {}metrics",
            door.display_address(&access)
        );
    }
    let others: Vec<Listener> = local_door
        .into_iter()
        .chain(shared_door)
        .chain(inherited)
        .collect();
    for door in &others {
        tracing::info!(
            "serving local programs at {}",
            door.display_address(&access)
        );
    }
    let settings = ServerSettings {
        readings: SampleSource::Collector(collector),
        live,
        join,
        policy: access,
        show_processes,
        runs,
        history,
        alerts: AlertSettings {
            rules,
            problem,
            conditions: args.sampling.condition_settings(),
            file,
        },
        kubelet: filter_disabled_path(&args.kubelet_socket),
        fleet,
        energy_price: energy_price().cloned(),
    };
    let listeners = iter::once(door).chain(metrics_door).chain(others).collect();
    Ok(gpumon_server::run(listeners, settings, shutdown).await?)
}

/// Returns the path, or `None` if the path is `none` or empty.
fn filter_disabled_path(path: &Path) -> Option<PathBuf> {
    (!path.as_os_str().is_empty() && path != Path::new("none")).then(|| path.to_owned())
}

impl HistoryArgs {
    /// Returns the settings for history on disk, or `None` if history is kept in memory. `is_set`
    /// is `true` if the user chose the directory.
    fn to_settings(&self, is_set: bool) -> Option<writer::WriterSettings> {
        let folder = self
            .default_data_dir
            .as_ref()
            .filter(|_| !is_set)
            .unwrap_or(&self.data_dir);
        filter_disabled_path(folder).map(|folder| writer::WriterSettings {
            folder,
            size_bytes: self.data_size,
        })
    }
}

/// The accepted maximum sizes of history on disk. Empty tables are far smaller than the minimum.
const ACCEPTED_DATA_SIZES: AcceptedAmounts<u64> = AcceptedAmounts::accept_sizes(
    10_000_000,
    MAX_SIZE_BYTES,
    "a size of 10MB or more, such as 500MB, 1GB or 2GiB",
);

impl ServeArgs {
    /// Returns the settings that can change while the server runs.
    fn live_settings(&self) -> LiveSettings {
        LiveSettings {
            interval: self.sampling.interval(),
            process_metrics: self.metrics_processes,
            runs_for_all: self.allow_runs,
            public_origins: self.access.public_origin.clone().into(),
            history_bytes: self.history.data_size,
        }
    }

    /// Reads the alert file. If the command line names the file, an invalid file is an error. If a
    /// variable or a settings file names it, an invalid file must not prevent monitoring: the
    /// server then has no rules and reports the reason.
    fn read_alert_rules(&self, is_typed: bool) -> Result<(AlertRules, Option<String>)> {
        match self
            .alert_file()
            .map(|file| AlertRules::read(&file))
            .transpose()
        {
            Ok(rules) => Ok((rules.unwrap_or_default(), None)),
            Err(error) if is_typed => Err(Failure::from_usage_error(error)),
            Err(error) => Ok((AlertRules::default(), Some(error.to_string()))),
        }
    }

    fn alert_file(&self) -> Option<PathBuf> {
        filter_empty_path(self.alerts.as_ref())
    }

    /// Returns `true` if the server should open a control socket in addition to the port.
    fn needs_control_socket(&self) -> bool {
        self.access.socket.is_none() && !self.no_control
    }
}

/// Opens the control socket if its path is given and not empty.
async fn open_named_socket(args: &ServeArgs) -> Result<Option<Listener>, ListenError> {
    match filter_empty_path(args.control.as_ref()) {
        Some(path) if args.needs_control_socket() => Listener::open_unix(&path).await.map(Some),
        _ => Ok(None),
    }
}

/// Opens the control socket at its default path. If the socket cannot be opened, the server runs
/// without it.
async fn open_default_socket() -> Option<Listener> {
    local::listen_on_user_socket()
        .await
        .inspect_err(|why| tracing::warn!("continuing without a control socket: {why}"))
        .ok()
}

/// Raises the soft limit on open files to the hard limit. Idle connections could exhaust the usual
/// soft limit of 1024, and only programs that use select(2) need a limit that low.
fn raise_open_file_limit() {
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
    numeric.parse().map_err(|_| {
        "expected ADDRESS:PORT with a port up to 65535, such as 127.0.0.1:9123".to_owned()
    })
}

/// Completes when a hang-up signal should end the server. This is the case if its terminal was
/// closed, or if it has a terminal and there is nothing to reload. After any other hang-up signal,
/// settings files and alert rules are reloaded.
async fn reload_until_final_hang_up(hang_up: &mut Signal, mut reload: Option<Reloader>) {
    let had_terminal = isatty(std::io::stdin());
    while hang_up.recv().await.is_some() {
        let is_closed = had_terminal && !isatty(std::io::stdin());
        match reload
            .as_mut()
            .filter(|reload| reload.has_reloadable_files())
        {
            Some(reload) if !is_closed => {
                service_manager::notify_reloading();
                block_in_place(|| reload.reload());
                service_manager::notify_reloaded();
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

/// Completes when the parent has exited. The kernel gives an orphan another parent, but sends no
/// signal, so the parent is checked regularly.
async fn wait_for_parent_exit(parent: Option<Pid>) {
    while getppid() == parent {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
