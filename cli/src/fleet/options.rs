//! The options for the source of a fleet and the access to its nodes. They belong to `gpumon
//! serve`. `gpumon fleet` and `gpumon top --fleet` have the same options without the prefix
//! `fleet-`.

use std::{path::PathBuf, sync::Arc};

use clap::Arg;
use gpumon_fleet::prometheus::{Authorization, ClientCertificate, PrometheusReader, Settings};
use gpumon_server::fleet::{
    FleetSettings,
    nodes::{HostPattern, NodeSettings, NodeUrl, RemoteNodes},
};

use super::{
    hosts::HostsArgs,
    renamed::{Rename, Renamed},
};
use crate::exit::{Failure, usage};

/// The options without the prefix `fleet-`.
pub(crate) type OwnFleetArgs = Renamed<FleetArgs, WithoutPrefix>;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Fleet")]
// The prefix distinguishes the fields from the other options of the server.
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

    /// File with the password of that user
    #[arg(
        long,
        env = "GPUMON_FLEET_PROMETHEUS_PASSWORD_FILE",
        value_name = "FILE",
        requires = "fleet_prometheus_user"
    )]
    fleet_prometheus_password_file: Option<PathBuf>,

    /// CA certificates (PEM) that verify the certificate of Prometheus, instead of those of the
    /// system
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

    /// File with the key (PEM) of that certificate
    #[arg(
        long,
        env = "GPUMON_FLEET_PROMETHEUS_KEY_FILE",
        value_name = "FILE",
        requires = "fleet_prometheus_cert_file"
    )]
    fleet_prometheus_key_file: Option<PathBuf>,

    /// HTTP header for Prometheus, such as `X-Scope-OrgID: research` for a tenant of Mimir;
    /// repeatable
    #[arg(long, env = "GPUMON_FLEET_PROMETHEUS_HEADER", value_name = "NAME: VALUE", value_parser = parse_header)]
    fleet_prometheus_header: Vec<Pair>,

    /// Label and value that all series of this fleet have, such as `cluster=alps`; repeatable
    #[arg(long, env = "GPUMON_FLEET_LABEL", value_name = "NAME=VALUE", value_delimiter = ',', value_parser = parse_label)]
    fleet_label: Vec<Pair>,

    /// Label that names the node, instead of the host of `instance` or dcgm-exporter's `Hostname`
    #[arg(long, env = "GPUMON_FLEET_NODE_LABEL", value_name = "NAME")]
    fleet_node_label: Option<String>,

    /// URL of a node's gpumon server, to open it from the fleet: {host} is replaced by the host at
    /// which Prometheus reads its metrics, {port} by the port there, {node} by the node's name;
    /// with `none`, nodes cannot be opened
    #[arg(long, env = "GPUMON_FLEET_NODE_URL", value_name = "URL", default_value_t = Pattern::default(), value_parser = parse_node_url)]
    fleet_node_url: Pattern,

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

    /// CA certificates (PEM) that verify the certificates of nodes, instead of those of the system
    #[arg(long, env = "GPUMON_FLEET_NODE_CA_FILE", value_name = "FILE")]
    fleet_node_ca_file: Option<PathBuf>,

    /// File with a token of the scope read that nodes accept, for viewers who have not signed in at
    /// a node themselves
    #[arg(long, env = "GPUMON_FLEET_NODE_TOKEN_FILE", value_name = "FILE")]
    fleet_node_token_file: Option<PathBuf>,
}

/// The pattern of node URLs, or `None` if nodes cannot be opened.
#[derive(Debug, Clone)]
struct Pattern(Option<NodeUrl>);

impl Default for Pattern {
    fn default() -> Self {
        Self(Some(NodeUrl::default()))
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(url) => url.fmt(f),
            None => f.write_str("none"),
        }
    }
}

/// A name and its value.
type Pair = (String, String);

#[derive(Debug)]
pub(crate) struct WithoutPrefix;

impl Rename for WithoutPrefix {
    fn rename(arg: Arg) -> Arg {
        let name = arg
            .get_long()
            .and_then(|name| name.strip_prefix("fleet-"))
            .map(ToOwned::to_owned);
        name.into_iter().fold(arg, Arg::long)
    }
}

impl FleetArgs {
    /// Returns the settings of the named fleet, if any.
    pub(crate) fn settings(&self) -> Result<Option<FleetSettings>, Failure> {
        let Some(url) = self.fleet_prometheus.as_ref().filter(|url| !url.is_empty()) else {
            return self.hosts.settings();
        };
        if self.hosts.is_wanted() {
            return Err(usage!(
                "both a Prometheus and hosts are named, and one fleet is shown: remove one of them, --prometheus none or \
                 --hosts none on the command line"
            ));
        }
        let reader = PrometheusReader::new(self.prometheus(url)).map_err(Failure::usage)?;
        let nodes = RemoteNodes::open(self.nodes()).map_err(|why| usage!(why))?;
        Ok(Some(FleetSettings {
            reader: Arc::new(reader),
            nodes,
            hosts: None,
        }))
    }

    fn nodes(&self) -> NodeSettings {
        NodeSettings {
            url: self.fleet_node_url.0.clone(),
            hosts: self.fleet_node_hosts.clone(),
            ca_file: named(self.fleet_node_ca_file.as_ref()),
            token_file: named(self.fleet_node_token_file.as_ref()),
        }
    }

    fn prometheus(&self, url: &str) -> Settings {
        let user = self
            .fleet_prometheus_user
            .clone()
            .zip(named(self.fleet_prometheus_password_file.as_ref()));
        let authorization = match (named(self.fleet_prometheus_token_file.as_ref()), user) {
            (Some(file), _) => Authorization::BearerFile(file),
            (None, Some((user, password_file))) => Authorization::Basic {
                user,
                password_file,
            },
            (None, None) => Authorization::None,
        };
        let certificate = named(self.fleet_prometheus_cert_file.as_ref())
            .zip(named(self.fleet_prometheus_key_file.as_ref()));
        Settings {
            authorization,
            ca_file: named(self.fleet_prometheus_ca_file.as_ref()),
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

/// Returns the error if no fleet is named.
pub(crate) fn no_fleet() -> Failure {
    usage!(
        "which fleet? Name a Prometheus that has metrics of gpumon or dcgm-exporter, by --prometheus URL, or hosts to \
         read over ssh, by --hosts a,b,c; or set `prometheus` or `hosts` in [fleet] of the settings file"
    )
}

/// Returns a file name, unless the variable for it is set but empty.
fn named(file: Option<&PathBuf>) -> Option<PathBuf> {
    file.cloned().filter(|path| !path.as_os_str().is_empty())
}

fn parse_node_url(text: &str) -> Result<Pattern, String> {
    if text.is_empty() || text == "none" {
        Ok(Pattern(None))
    } else {
        text.parse().map(|url| Pattern(Some(url)))
    }
}

fn parse_header(text: &str) -> Result<Pair, String> {
    pair(text, ':').ok_or_else(|| "not NAME: VALUE, as `X-Scope-OrgID: research`".to_owned())
}

fn parse_label(text: &str) -> Result<Pair, String> {
    pair(text, '=').ok_or_else(|| "not NAME=VALUE, as cluster=alps".to_owned())
}

fn pair(text: &str, separator: char) -> Option<Pair> {
    let (name, value) = text.split_once(separator)?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}
