//! Options for the source of a fleet and the access to its nodes, and the settings of a fleet
//! server.
//!
//! `gpumon serve` has these options with the prefix `fleet-`; `gpumon fleet` and `gpumon top
//! --fleet` have the same options without the prefix.

use std::{env, fs::File, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use gpumon_fleet::{
    hosts::{HostList, MOST_HOSTS, Ssh},
    prometheus::{Authorization, ClientCertificate, PrometheusReader, Settings},
};
use gpumon_probe::{
    bounded,
    private_file::{PrivateFile, Secrecy},
};
use gpumon_server::{
    LiveSettings, SampleSource, ServerSettings,
    alerts::AlertSettings,
    auth::AccessPolicy,
    fleet::{
        FleetSettings,
        hosts::{Hosts, HostsSettings},
        nodes::{HostPattern, NodeSettings, NodeUrl, RemoteNodes},
    },
    runs::RunSettings,
    view::ShowProcesses,
};
use gpumon_workload::parent::WorkerCommand;

use crate::{
    commands::tether,
    exit::{Failure, Result, usage},
    terminal::units::energy_price,
};

/// The options of [`FleetArgs`], renamed to have no prefix `fleet-`.
pub(crate) type UnprefixedFleetArgs = RenamedArgs<FleetArgs, WithoutPrefix>;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Fleet")]
// The prefix `fleet_` distinguishes these fields from the server's other options.
#[allow(clippy::struct_field_names)]
pub(crate) struct FleetArgs {
    #[command(flatten)]
    hosts: HostsArgs,

    /// Address of Prometheus, Thanos, Mimir or VictoriaMetrics without `/api/v1/query`, such as
    /// `https://prometheus.example.org:9090`
    #[arg(long, env = "GPUMON_FLEET_PROMETHEUS", value_name = "URL")]
    fleet_prometheus: Option<String>,

    /// File with a bearer token for Prometheus
    #[arg(
        long,
        env = "GPUMON_FLEET_PROMETHEUS_TOKEN_FILE",
        value_name = "FILE",
        conflicts_with = "fleet_prometheus_user"
    )]
    fleet_prometheus_token_file: Option<PathBuf>,

    /// User name for Prometheus; needs a password file
    #[arg(
        long,
        env = "GPUMON_FLEET_PROMETHEUS_USER",
        value_name = "NAME",
        requires = "fleet_prometheus_password_file"
    )]
    fleet_prometheus_user: Option<String>,

    /// File with the password of that user for Prometheus
    #[arg(
        long,
        env = "GPUMON_FLEET_PROMETHEUS_PASSWORD_FILE",
        value_name = "FILE",
        requires = "fleet_prometheus_user"
    )]
    fleet_prometheus_password_file: Option<PathBuf>,

    /// CA certificates (PEM) that verify the certificate of Prometheus, instead of the system's
    /// certificates
    #[arg(long, env = "GPUMON_FLEET_PROMETHEUS_CA_FILE", value_name = "FILE")]
    fleet_prometheus_ca_file: Option<PathBuf>,

    /// Client certificate (PEM) for a Prometheus that requires one; needs a key file
    #[arg(
        long,
        env = "GPUMON_FLEET_PROMETHEUS_CERT_FILE",
        value_name = "FILE",
        requires = "fleet_prometheus_key_file"
    )]
    fleet_prometheus_cert_file: Option<PathBuf>,

    /// File with the private key (PEM) of the client certificate
    #[arg(
        long,
        env = "GPUMON_FLEET_PROMETHEUS_KEY_FILE",
        value_name = "FILE",
        requires = "fleet_prometheus_cert_file"
    )]
    fleet_prometheus_key_file: Option<PathBuf>,

    /// HTTP header for Prometheus, such as `X-Scope-OrgID: research` for a tenant of Mimir;
    /// repeatable
    #[arg(
        long, env = "GPUMON_FLEET_PROMETHEUS_HEADER", value_name = "NAME: VALUE",
        value_parser = parse_header
    )]
    fleet_prometheus_header: Vec<Pair>,

    /// Label and value that all series of this fleet have, such as `cluster=alps`; repeatable
    #[arg(
        long, env = "GPUMON_FLEET_LABEL", value_name = "NAME=VALUE", value_delimiter = ',',
        value_parser = parse_label
    )]
    fleet_label: Vec<Pair>,

    /// Label that names the node, instead of the host of `instance` or dcgm-exporter's `Hostname`
    #[arg(long, env = "GPUMON_FLEET_NODE_LABEL", value_name = "NAME")]
    fleet_node_label: Option<String>,

    /// URL of a node's gpumon server, to open it from the fleet: {host} is replaced by the host at
    /// which Prometheus reads the node's metrics, {port} by the port of these metrics, {node} by
    /// the node's name; with `none`, nodes cannot be opened
    #[arg(
        long, env = "GPUMON_FLEET_NODE_URL", value_name = "URL",
        default_value_t = NodeUrlPattern::default(), value_parser = parse_node_url
    )]
    fleet_node_url: NodeUrlPattern,

    /// Hosts of nodes to which tokens, passwords and sessions are sent, such as
    /// `*.gpus.example.org`, where `*` matches anything but a dot. By default, nodes whose
    /// certificates are verified by --node-ca-file
    #[arg(
        long,
        env = "GPUMON_FLEET_NODE_HOSTS",
        value_name = "PATTERN",
        value_delimiter = ','
    )]
    fleet_node_hosts: Vec<HostPattern>,

    /// CA certificates (PEM) that verify the certificates of nodes, instead of the system's
    /// certificates
    #[arg(long, env = "GPUMON_FLEET_NODE_CA_FILE", value_name = "FILE")]
    fleet_node_ca_file: Option<PathBuf>,

    /// File with a token of the scope `read` that nodes accept, for viewers who have not signed in
    /// at a node themselves
    #[arg(long, env = "GPUMON_FLEET_NODE_TOKEN_FILE", value_name = "FILE")]
    fleet_node_token_file: Option<PathBuf>,
}

/// A URL template for nodes, or `None` if nodes cannot be opened.
#[derive(Debug, Clone)]
struct NodeUrlPattern(Option<NodeUrl>);

impl Default for NodeUrlPattern {
    fn default() -> Self {
        Self(Some(NodeUrl::default()))
    }
}

impl std::fmt::Display for NodeUrlPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(url) => url.fmt(f),
            None => f.write_str("none"),
        }
    }
}

/// A pair of a name and a value, such as a label or an HTTP header.
type Pair = (String, String);

#[derive(Debug)]
pub(crate) struct WithoutPrefix;

impl RenameOption for WithoutPrefix {
    fn rename_option(arg: Arg) -> Arg {
        let name = arg
            .get_long()
            .and_then(|name| name.strip_prefix("fleet-"))
            .map(ToOwned::to_owned);
        name.into_iter().fold(arg, Arg::long)
    }
}

impl FleetArgs {
    /// Returns the settings of the fleet, or `None` if no source is given.
    pub(crate) fn settings(&self) -> Result<Option<FleetSettings>, Failure> {
        let Some(url) = self.fleet_prometheus.as_ref().filter(|url| !url.is_empty()) else {
            return self.hosts.settings();
        };
        if self.hosts.has_hosts() {
            return Err(usage!(
                "both Prometheus and hosts are configured, but a fleet has only one source: remove \
                 one of them, or disable one on the command line with --prometheus none or --hosts \
                 none"
            ));
        }
        let reader = PrometheusReader::new(self.prometheus_settings(url))
            .map_err(Failure::from_usage_error)?;
        let nodes = RemoteNodes::open(self.node_settings()).map_err(|why| usage!(why))?;
        Ok(Some(FleetSettings {
            reader: Arc::new(reader),
            nodes,
            hosts: None,
        }))
    }

    fn node_settings(&self) -> NodeSettings {
        NodeSettings {
            url: self.fleet_node_url.0.clone(),
            hosts: self.fleet_node_hosts.clone(),
            ca_file: filter_empty_path(self.fleet_node_ca_file.as_ref()),
            token_file: filter_empty_path(self.fleet_node_token_file.as_ref()),
        }
    }

    fn prometheus_settings(&self, url: &str) -> Settings {
        let user = self.fleet_prometheus_user.clone().zip(filter_empty_path(
            self.fleet_prometheus_password_file.as_ref(),
        ));
        let authorization = match (
            filter_empty_path(self.fleet_prometheus_token_file.as_ref()),
            user,
        ) {
            (Some(file), _) => Authorization::BearerFile(file),
            (None, Some((user, password_file))) => Authorization::Basic {
                user,
                password_file,
            },
            (None, None) => Authorization::None,
        };
        let certificate = filter_empty_path(self.fleet_prometheus_cert_file.as_ref())
            .zip(filter_empty_path(self.fleet_prometheus_key_file.as_ref()));
        Settings {
            authorization,
            ca_file: filter_empty_path(self.fleet_prometheus_ca_file.as_ref()),
            client_certificate: certificate.map(|(certificate_file, key_file)| ClientCertificate {
                certificate_file,
                key_file,
            }),
            headers: self.fleet_prometheus_header.clone(),
            labels: self.fleet_label.clone(),
            node_label: self
                .fleet_node_label
                .clone()
                .filter(|label| !label.is_empty()),
            ..Settings::new(url)
        }
    }
}

/// Returns the error for a command line without a source of the fleet.
pub(crate) fn make_missing_fleet_error() -> Failure {
    usage!(
        "no fleet is configured: use --prometheus URL for a Prometheus server that has metrics of \
         gpumon or dcgm-exporter, or --hosts a,b,c to read hosts over ssh; or set `prometheus` or \
         `hosts` in [fleet] of the settings file"
    )
}

/// Returns the path, or `None` if the path is empty, for example from an empty variable.
pub(crate) fn filter_empty_path(file: Option<&PathBuf>) -> Option<PathBuf> {
    file.cloned().filter(|path| !path.as_os_str().is_empty())
}

fn parse_node_url(text: &str) -> Result<NodeUrlPattern, String> {
    if text.is_empty() || text == "none" {
        Ok(NodeUrlPattern(None))
    } else {
        text.parse().map(|url| NodeUrlPattern(Some(url)))
    }
}

fn parse_header(text: &str) -> Result<Pair, String> {
    split_pair(text, ':')
        .ok_or_else(|| "expected NAME: VALUE, such as `X-Scope-OrgID: research`".to_owned())
}

fn parse_label(text: &str) -> Result<Pair, String> {
    split_pair(text, '=').ok_or_else(|| "expected NAME=VALUE, such as cluster=alps".to_owned())
}

fn split_pair(text: &str, separator: char) -> Option<Pair> {
    let (name, value) = text.split_once(separator)?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

// Options for the hosts that are read over ssh.

/// The sampling interval of hosts in the fleet overview.
const HOSTS_INTERVAL: Duration = Duration::from_secs(2);

/// The maximum size of a file with host names, in bytes.
const MAX_HOST_FILE_BYTES: usize = 4 << 20;

/// The file name that means standard input.
const STDIN_NAME: &str = "-";

#[derive(Debug, Clone, clap::Args)]
// The field names must match the option names, which have the prefix `fleet-`.
#[allow(clippy::struct_field_names)]
pub(crate) struct HostsArgs {
    /// Hosts to read over ssh instead of a Prometheus, such as `a,ana@b,c:2222,node[01-08]`; up to
    /// 64. Each host is read with gpumon if installed, otherwise with nvidia-smi
    #[arg(long, env = "GPUMON_FLEET_HOSTS", value_name = "LIST")]
    fleet_hosts: Option<String>,

    /// File with hosts to read over ssh, one list per line; # starts a comment, and `-` is standard
    /// input
    #[arg(long, env = "GPUMON_FLEET_HOSTS_FILE", value_name = "FILE")]
    fleet_hosts_file: Option<PathBuf>,

    /// Configuration file of ssh (`ssh -F`), instead of ~/.ssh/config
    #[arg(long, env = "GPUMON_FLEET_SSH_CONFIG", value_name = "FILE")]
    fleet_ssh_config: Option<PathBuf>,
}

impl HostsArgs {
    /// Returns `true` if any hosts are given.
    fn has_hosts(&self) -> bool {
        self.host_list_text().is_some() || self.host_file().is_some()
    }

    fn host_list_text(&self) -> Option<&str> {
        self.fleet_hosts.as_deref().filter(|list| !list.is_empty())
    }

    fn host_file(&self) -> Option<&PathBuf> {
        self.fleet_hosts_file
            .as_ref()
            .filter(|file| !file.as_os_str().is_empty())
    }

    /// Returns the given hosts, at most `most`, or `None` if no hosts are given.
    ///
    /// # Errors
    /// Returns an error if a name is invalid or a file cannot be read.
    pub(crate) fn read_hosts(&self, most: usize) -> Result<Option<HostList>> {
        let listed = self
            .host_list_text()
            .map(|list| HostList::parse(list, most))
            .transpose();
        let listed = listed.map_err(|error| usage!("--hosts: {error}"))?;
        let Some(file) = self.host_file() else {
            return Ok(listed);
        };
        let text = read_host_file(file).map_err(Failure::from_usage_error)?;
        let in_file = HostList::parse_file(&text, most);
        let in_file = in_file.map_err(|error| usage!("{}: {error}", file.display()))?;
        let Some(listed) = listed else {
            return Ok(Some(in_file));
        };
        listed
            .merge(in_file, most)
            .map(Some)
            .map_err(|error| usage!(error))
    }

    /// Returns the settings of a fleet with the given hosts, without connecting to the hosts.
    pub(super) fn settings(&self) -> Result<Option<FleetSettings>> {
        let Some(hosts) = self.read_hosts(MOST_HOSTS)? else {
            return Ok(None);
        };
        let config = self
            .fleet_ssh_config
            .as_deref()
            .filter(|file| !file.as_os_str().is_empty());
        if let Some(file) = config {
            // The configuration can name programs that ssh starts, so its permissions must be
            // checked. ssh does this only for the user's default file. For other files, they are
            // checked here.
            PrivateFile::read(file, Secrecy::Public)
                .map_err(|error| usage!("--ssh-config {}: {error}", file.display()))?;
        }
        let program = env::current_exe().context("cannot find the gpumon executable")?;
        let hosts = Hosts::new(HostsSettings {
            hosts,
            ssh: Ssh::with_config(config),
            tether: (
                program,
                vec![
                    tether::COMMAND_NAME.to_owned(),
                    std::process::id().to_string(),
                ],
            ),
            interval: HOSTS_INTERVAL,
        });
        let nodes = RemoteNodes::open(NodeSettings::default()).map_err(|why| usage!(why))?;
        Ok(Some(FleetSettings {
            reader: hosts.clone(),
            nodes,
            hosts: Some(hosts),
        }))
    }
}

/// Reads a file with host names, up to the maximum size.
pub(crate) fn read_host_file(file: &PathBuf) -> anyhow::Result<String> {
    let read = if file.as_os_str() == STDIN_NAME {
        bounded::read_text_from(std::io::stdin(), MAX_HOST_FILE_BYTES)
    } else {
        File::open(file).and_then(|open| bounded::read_text_from(open, MAX_HOST_FILE_BYTES))
    };
    read.with_context(|| format!("cannot read {} as a list of hosts", file.display()))
}

// Options that two commands share under different names.

/// A rule for renaming options, for use in another command.
pub(crate) trait RenameOption {
    /// Returns the option as it appears in the other command.
    fn rename_option(arg: Arg) -> Arg;
}

/// The options `A`, renamed by `R`.
#[derive(Debug)]
pub(crate) struct RenamedArgs<A, R> {
    pub(crate) args: A,
    names: std::marker::PhantomData<R>,
}

impl<A: FromArgMatches, R> FromArgMatches for RenamedArgs<A, R> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self {
            args: A::from_arg_matches(matches)?,
            names: std::marker::PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.args.update_from_arg_matches(matches)
    }
}

impl<A: Args, R: RenameOption> Args for RenamedArgs<A, R> {
    fn augment_args(command: Command) -> Command {
        let own = A::augment_args(Command::new("options"));
        command.args(own.get_arguments().cloned().map(R::rename_option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Returns the settings of a fleet server that requires no sign-in.
pub(crate) fn build_fleet_server_settings(fleet: FleetSettings) -> ServerSettings {
    ServerSettings {
        fleet: Some(fleet),
        ..build_passive_server_settings()
    }
}

/// Returns the settings of a server that neither reads GPUs nor starts processes.
pub(crate) fn build_passive_server_settings() -> ServerSettings {
    ServerSettings {
        readings: SampleSource::None,
        join: None,
        live: LiveSettings::default().into_constant_receiver(),
        policy: Arc::new(AccessPolicy::allow_all()),
        show_processes: ShowProcesses::default(),
        // The worker is never started, because the server refuses all requests that change
        // anything.
        runs: RunSettings {
            worker: WorkerCommand {
                program: "gpumon".into(),
                arguments: Vec::new(),
            },
        },
        history: None,
        alerts: AlertSettings::default(),
        kubelet: None,
        fleet: None,
        energy_price: energy_price().cloned(),
    }
}
