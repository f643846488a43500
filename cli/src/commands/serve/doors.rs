//! Options of `gpumon serve` that control access: addresses, authentication and visible processes.

use std::{env, net::SocketAddr, path::PathBuf, sync::Arc};

use clap::builder::{FalseyValueParser, OsStringValueParser, TypedValueParser};
use gpumon_probe::child;
use gpumon_server::{
    auth::{DoorSettings, Doors},
    join::JoinSettings,
    listen::{ListenError, Listener, Purpose},
    local,
    public_origin::PublicOrigin,
    view::ShowProcesses,
};

use super::parse_address;
use crate::{
    exit::{Failure, Result, usage},
    options::{SamplingArgs, SourceArgs},
};

#[derive(Debug, clap::Args)]
pub(crate) struct DoorArgs {
    /// Address and port to listen on; port 0 selects a free port. Beyond loopback, this needs
    /// --web-config, and --token-file or users or client certificates in it
    #[arg(long, env = "GPUMON_LISTEN", default_value = "127.0.0.1:9123", value_name = "ADDRESS:PORT", value_parser = parse_address)]
    listen: SocketAddr,

    /// Listen on a unix socket instead, accessible to this user only
    #[arg(
        long,
        env = "GPUMON_SOCKET",
        value_name = "PATH",
        conflicts_with = "listen"
    )]
    pub(super) socket: Option<PathBuf>,

    /// Web configuration of Prometheus' exporters: TLS, client certificates, passwords, headers.
    /// Reloaded when it changes
    #[arg(long, env = "GPUMON_WEB_CONFIG", value_name = "FILE")]
    web_config: Option<PathBuf>,

    /// Token file: a line `SCOPE NAME TOKEN` for each token, where SCOPE is metrics, read or run.
    /// Every client on the port then needs a token. Reloaded when it changes
    #[arg(long, env = "GPUMON_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Process details shown to other users; the server's own user and root see everything
    #[arg(
        long,
        env = "GPUMON_SHOW_PROCESSES",
        value_name = "WHAT",
        default_value = "names"
    )]
    show_processes: Show,

    /// Address at which browsers reach this server through a reverse proxy, such as
    /// `https://gpus.example.org`; repeatable. The proxy authenticates users; nobody on the port
    /// counts as this server's own user
    #[arg(
        long,
        env = "GPUMON_PUBLIC_ORIGIN",
        value_name = "URL",
        value_delimiter = ','
    )]
    pub(crate) public_origin: Vec<PublicOrigin>,

    /// Exit when the parent process exits
    #[arg(long, env = "GPUMON_EXIT_WITH_PARENT")]
    pub(crate) exit_with_parent: bool,
}

/// The options for an additional port that serves only metrics.
#[derive(Debug, clap::Args)]
pub(super) struct MetricsDoorArgs {
    /// Additional address and port for Prometheus, with /metrics, /metrics/dcgm, /metrics/dcgm-4.9,
    /// /healthz and /readyz only
    #[arg(long, env = "GPUMON_METRICS_LISTEN", value_name = "ADDRESS:PORT", value_parser = parse_place)]
    metrics_listen: Option<Place>,
}

/// An optional address; `None` for an empty text, as from an empty variable.
#[derive(Debug, Clone, Copy)]
struct Place(Option<SocketAddr>);

fn parse_place(text: &str) -> Result<Place, String> {
    if text.is_empty() {
        Ok(Place(None))
    } else {
        parse_address(text).map(|address| Place(Some(address)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Show {
    /// Only the client's own processes
    Own,
    /// All processes, with command lines
    All,
    /// All processes, with program and user. The rest, such as the command line, only if the client
    /// can read it in /proc
    Names,
}

impl DoorArgs {
    /// Reads the files that control access. `users_may_run` allows users and client certificates to
    /// start runs.
    pub(crate) fn open(&self, users_may_run: bool) -> Result<Arc<Doors>> {
        let named =
            |file: &Option<PathBuf>| file.clone().filter(|path| !path.as_os_str().is_empty());
        let token = env::var_os(child::TOKEN).filter(|token| !token.is_empty());
        let token = token.map(|token| (child::TOKEN, token.to_string_lossy().into_owned()));
        let settings = DoorSettings {
            web_config: named(&self.web_config),
            token_file: named(&self.token_file),
            token,
            users_may_run,
        };
        Ok(Arc::new(Doors::open(settings).map_err(Failure::usage)?))
    }

    /// Opens the port, or the socket that replaces it.
    pub(crate) async fn open_listener(&self, doors: &Doors) -> Result<Listener, ListenError> {
        match &self.socket {
            Some(path) => Listener::unix(path).await,
            None => Listener::tcp(self.listen, Purpose::Everything, doors),
        }
    }

    /// Returns the setting for process details.
    ///
    /// # Errors
    /// Returns an error for `own` with processes in metrics, because metrics are the same for every
    /// client.
    pub(crate) fn show_processes(&self, in_metrics: bool) -> Result<ShowProcesses> {
        if in_metrics && self.show_processes == Show::Own {
            return Err(usage!(
                "--metrics-processes tells everybody of all processes, and --show-processes own shows each client its own \
                 alone: leave one of them out"
            ));
        }
        Ok(match self.show_processes {
            Show::Own => ShowProcesses::Own,
            Show::All => ShowProcesses::All,
            Show::Names => ShowProcesses::Names,
        })
    }
}

impl MetricsDoorArgs {
    pub(super) fn open_listener(&self, doors: &Doors) -> Result<Option<Listener>, ListenError> {
        let address = self.metrics_listen.and_then(|Place(address)| address);
        address
            .map(|address| Listener::tcp(address, Purpose::Metrics, doors))
            .transpose()
    }
}

/// The options for sharing readings with other servers.
#[derive(Debug, clap::Args)]
pub(super) struct JoinArgs {
    /// Also listen on a unix socket that every user of this machine may read from; their own
    /// servers join it
    #[arg(long, env = "GPUMON_SHARED_SOCKET", value_name = "PATH", value_parser = path())]
    shared_socket: Option<PathBuf>,

    /// Shared socket of another server to join: this server shows the other's readings and history
    /// while it is running, and otherwise reads the GPUs itself
    #[arg(
        long,
        env = "GPUMON_JOIN",
        value_name = "PATH",
        default_value = local::SHARED,
        value_parser = path()
    )]
    join: PathBuf,

    /// Always read the GPUs with a collector of its own, and never join another server
    #[arg(long, env = "GPUMON_NO_JOIN", value_parser = FalseyValueParser::new())]
    no_join: bool,
}

impl JoinArgs {
    /// Opens the socket for other users, if one is named. An empty variable names none.
    pub(super) async fn open_shared(&self) -> Result<Option<Listener>, ListenError> {
        match self
            .shared_socket
            .as_ref()
            .filter(|path| !path.as_os_str().is_empty())
        {
            Some(path) => Listener::shared(path).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the settings for joining another server. A server that is itself shared, or whose
    /// command line names a source, does not join.
    pub(super) fn make_settings(
        &self,
        source: &SourceArgs,
        sampling: &SamplingArgs,
        is_shared: bool,
    ) -> Option<JoinSettings> {
        let is_named = !self.join.as_os_str().is_empty();
        let joins = is_named && !self.no_join && !is_shared && !source.is_read_here();
        joins.then(|| JoinSettings {
            socket: self.join.clone(),
            proc_root: sampling.procfs().to_owned(),
        })
    }
}

/// Returns a parser that also accepts an empty path, as from an empty variable.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}
