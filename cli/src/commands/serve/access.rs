//! Options of `gpumon serve` that control access: addresses, authentication and visible processes.

use std::{env, net::SocketAddr, path::PathBuf, sync::Arc};

use clap::builder::{FalseyValueParser, OsStringValueParser, TypedValueParser};
use gpumon_probe::child;
use gpumon_server::{
    auth::{AccessPolicy, AccessSettings},
    join::JoinSettings,
    listen::{ListenError, Listener, PortPurpose},
    local,
    public_origin::PublicOrigin,
    view::ShowProcesses,
};

use super::parse_address;
use crate::{
    exit::{Failure, Result, usage},
    fleet::options::filter_empty_path,
    options::{SamplingArgs, SourceArgs},
};

#[derive(Debug, clap::Args)]
pub(crate) struct AccessArgs {
    /// Address and port to listen on; port 0 selects a free port. Addresses other than loopback
    /// need --web-config, together with --token-file or with users or client certificates in the
    /// web configuration
    #[arg(
        long, env = "GPUMON_LISTEN", default_value = "127.0.0.1:9123", value_name = "ADDRESS:PORT",
        value_parser = parse_address
    )]
    listen: SocketAddr,

    /// Listen on a unix socket instead of a port, accessible to this user only
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
    show_processes: ProcessDetails,

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

/// Options for an additional port that serves only metrics.
#[derive(Debug, clap::Args)]
pub(super) struct MetricsListenerArgs {
    /// Additional address and port for Prometheus, with /metrics, /metrics/dcgm, /metrics/dcgm-4.9,
    /// /healthz and /readyz only
    #[arg(
        long, env = "GPUMON_METRICS_LISTEN", value_name = "ADDRESS:PORT",
        value_parser = parse_optional_address
    )]
    metrics_listen: Option<OptionalAddress>,
}

/// An optional address; `None` if the text is empty, for example from an empty variable.
#[derive(Debug, Clone, Copy)]
struct OptionalAddress(Option<SocketAddr>);

fn parse_optional_address(text: &str) -> Result<OptionalAddress, String> {
    if text.is_empty() {
        Ok(OptionalAddress(None))
    } else {
        parse_address(text).map(|address| OptionalAddress(Some(address)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ProcessDetails {
    /// Only the client's own processes
    Own,
    /// All processes, with command lines
    All,
    /// All processes, with program and user. Other details, such as the command line, only if the
    /// client can read them in /proc
    Names,
}

impl AccessArgs {
    /// Reads the files that control access. If `users_may_run` is `true`, users and clients with
    /// certificates may start runs.
    pub(crate) fn build_access_policy(&self, users_may_run: bool) -> Result<Arc<AccessPolicy>> {
        let token = env::var_os(child::TOKEN_VARIABLE).filter(|token| !token.is_empty());
        let token =
            token.map(|token| (child::TOKEN_VARIABLE, token.to_string_lossy().into_owned()));
        let settings = AccessSettings {
            web_config: filter_empty_path(self.web_config.as_ref()),
            token_file: filter_empty_path(self.token_file.as_ref()),
            token,
            users_may_run,
        };
        Ok(Arc::new(
            AccessPolicy::open(settings).map_err(Failure::from_usage_error)?,
        ))
    }

    /// Opens the port, or the unix socket that replaces the port.
    pub(crate) async fn open_listener(
        &self,
        access: &AccessPolicy,
    ) -> Result<Listener, ListenError> {
        match &self.socket {
            Some(path) => Listener::open_unix(path).await,
            None => Listener::open_tcp(self.listen, PortPurpose::Everything, access),
        }
    }

    /// Returns which process details clients may see.
    ///
    /// # Errors
    /// Returns an error if the option is `own` and metrics include processes, because metrics are
    /// the same for every client.
    pub(crate) fn process_visibility(&self, in_metrics: bool) -> Result<ShowProcesses> {
        if in_metrics && self.show_processes == ProcessDetails::Own {
            return Err(usage!(
                "--metrics-processes shows all processes to everybody, but --show-processes own \
                 shows each client only the client's own processes: remove one of the two options"
            ));
        }
        Ok(match self.show_processes {
            ProcessDetails::Own => ShowProcesses::Own,
            ProcessDetails::All => ShowProcesses::All,
            ProcessDetails::Names => ShowProcesses::Names,
        })
    }
}

impl MetricsListenerArgs {
    pub(super) fn open_listener(
        &self,
        access: &AccessPolicy,
    ) -> Result<Option<Listener>, ListenError> {
        let address = self
            .metrics_listen
            .and_then(|OptionalAddress(address)| address);
        address
            .map(|address| Listener::open_tcp(address, PortPurpose::Metrics, access))
            .transpose()
    }
}

/// Options for sharing readings with other servers.
#[derive(Debug, clap::Args)]
pub(super) struct JoinArgs {
    /// Also listen on a unix socket that every user of this machine may read from; other users'
    /// servers join it
    #[arg(long, env = "GPUMON_SHARED_SOCKET", value_name = "PATH", value_parser = build_path_parser())]
    shared_socket: Option<PathBuf>,

    /// Shared socket of another server to join: this server shows the other's readings and history
    /// while it is running, and otherwise reads the GPUs itself
    #[arg(
        long,
        env = "GPUMON_JOIN",
        value_name = "PATH",
        default_value = local::SHARED_SOCKET,
        value_parser = build_path_parser()
    )]
    join: PathBuf,

    /// Always read the GPUs with a separate collector, and never join another server
    #[arg(long, env = "GPUMON_NO_JOIN", value_parser = FalseyValueParser::new())]
    no_join: bool,
}

impl JoinArgs {
    /// Opens the socket for other users if its path is given and not empty.
    pub(super) async fn open_shared_socket(&self) -> Result<Option<Listener>, ListenError> {
        match filter_empty_path(self.shared_socket.as_ref()) {
            Some(path) => Listener::open_shared_unix(&path).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the settings for joining another server, which means using the readings of that
    /// server. Returns `None` if joining is disabled, if other servers can join this server, or if
    /// the command line names a source.
    pub(super) fn make_settings(
        &self,
        source: &SourceArgs,
        sampling: &SamplingArgs,
        is_shared: bool,
    ) -> Option<JoinSettings> {
        let is_named = !self.join.as_os_str().is_empty();
        let joins = is_named && !self.no_join && !is_shared && !source.bypasses_server();
        joins.then(|| JoinSettings {
            socket: self.join.clone(),
            proc_root: sampling.procfs().to_owned(),
        })
    }
}

/// Returns a path parser that accepts an empty path, for example from an empty variable.
fn build_path_parser() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}
