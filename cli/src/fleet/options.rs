//! Where a fleet is read, and how its nodes are reached: the options of `gpumon serve`, which `gpumon fleet` and
//! `gpumon top --fleet` have without `fleet-` before them.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Arg;
use gpumon_fleet::prometheus::{Authorization, ClientCertificate, Settings};
use gpumon_server::fleet::FleetSettings;

use super::renamed::{Rename, Renamed};
use crate::exit::Failure;

/// Options without `fleet-` before them.
pub(crate) type OwnFleetArgs = Renamed<FleetArgs, WithoutPrefix>;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetArgs {
    /// Address of Prometheus, Thanos, Mimir or VictoriaMetrics, below which `/api/v1/query` is, as
    /// `https://prometheus.example.org:9090`
    #[arg(long, env = "GPUMON_FLEET_PROMETHEUS", value_name = "URL")]
    fleet_prometheus: Option<String>,

    /// File with a bearer token for Prometheus
    #[arg(long, env = "GPUMON_FLEET_PROMETHEUS_TOKEN_FILE", value_name = "FILE", conflicts_with = "fleet_prometheus_user")]
    fleet_prometheus_token_file: Option<PathBuf>,

    /// User for Prometheus; needs a password file
    #[arg(long, env = "GPUMON_FLEET_PROMETHEUS_USER", value_name = "NAME", requires = "fleet_prometheus_password_file")]
    fleet_prometheus_user: Option<String>,

    /// File with the password of that user
    #[arg(long, env = "GPUMON_FLEET_PROMETHEUS_PASSWORD_FILE", value_name = "FILE", requires = "fleet_prometheus_user")]
    fleet_prometheus_password_file: Option<PathBuf>,

    /// Certificates (PEM) that Prometheus' own is checked with, instead of those of the system
    #[arg(long, env = "GPUMON_FLEET_PROMETHEUS_CA_FILE", value_name = "FILE")]
    fleet_prometheus_ca_file: Option<PathBuf>,

    /// Certificate (PEM) for a Prometheus that asks for one; needs a key file
    #[arg(long, env = "GPUMON_FLEET_PROMETHEUS_CERT_FILE", value_name = "FILE", requires = "fleet_prometheus_key_file")]
    fleet_prometheus_cert_file: Option<PathBuf>,

    /// Key (PEM) of that certificate
    #[arg(long, env = "GPUMON_FLEET_PROMETHEUS_KEY_FILE", value_name = "FILE", requires = "fleet_prometheus_cert_file")]
    fleet_prometheus_key_file: Option<PathBuf>,

    /// Header for Prometheus, as `X-Scope-OrgID: research` for a tenant of Mimir; repeatable
    #[arg(long, env = "GPUMON_FLEET_PROMETHEUS_HEADER", value_name = "NAME: VALUE", value_parser = parse_header)]
    fleet_prometheus_header: Vec<Pair>,

    /// Label and value that all series of this fleet have, as `cluster=alps`; repeatable
    #[arg(long, env = "GPUMON_FLEET_LABEL", value_name = "NAME=VALUE", value_delimiter = ',', value_parser = parse_label)]
    fleet_label: Vec<Pair>,

    /// Label that names the node, instead of the host of `instance` or dcgm-exporter's `Hostname`
    #[arg(long, env = "GPUMON_FLEET_NODE_LABEL", value_name = "NAME")]
    fleet_node_label: Option<String>,
}

/// A name and what it stands for.
type Pair = (String, String);

#[derive(Debug)]
pub(crate) struct WithoutPrefix;

impl Rename for WithoutPrefix {
    fn rename(arg: Arg) -> Arg {
        let name = arg.get_long().and_then(|name| name.strip_prefix("fleet-")).map(ToOwned::to_owned);
        arg.long(name)
    }
}

impl FleetArgs {
    /// The fleet that is named, if one is.
    pub(crate) fn settings(&self) -> Result<Option<FleetSettings>, Failure> {
        let Some(url) = self.fleet_prometheus.as_ref().filter(|url| !url.is_empty()) else { return Ok(None) };
        let settings = self.prometheus(url);
        let _ = settings;
        Err(Failure::usage(anyhow!("")))
    }

    fn prometheus(&self, url: &str) -> Settings {
        let named = |file: &Option<PathBuf>| file.clone().filter(|path| !path.as_os_str().is_empty());
        let user = self.fleet_prometheus_user.clone().zip(named(&self.fleet_prometheus_password_file));
        let authorization = match (named(&self.fleet_prometheus_token_file), user) {
            (Some(file), _) => Authorization::BearerFile(file),
            (None, Some((user, password_file))) => Authorization::Basic { user, password_file },
            (None, None) => Authorization::None,
        };
        let certificate = named(&self.fleet_prometheus_cert_file).zip(named(&self.fleet_prometheus_key_file));
        Settings {
            authorization,
            ca_file: named(&self.fleet_prometheus_ca_file),
            client_certificate: certificate
                .map(|(certificate_file, key_file)| ClientCertificate { certificate_file, key_file }),
            headers: self.fleet_prometheus_header.clone(),
            labels: self.fleet_label.clone(),
            node_label: self.fleet_node_label.clone().filter(|label| !label.is_empty()),
            ..Settings::new(url)
        }
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
