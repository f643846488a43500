//! Settings for the connection to Prometheus: its address and gpumon's credentials.

use std::{path::PathBuf, time::Duration};

use thiserror::Error;

/// The address of Prometheus, gpumon's credentials, and the selection of series. Secrets are in
/// files, which are read again when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The address without `/api/v1/query`, such as `https://prometheus.example.org:9090/prefix`.
    /// It must not contain credentials.
    pub url: String,
    /// gpumon's credentials for Prometheus.
    pub authorization: Authorization,
    /// A PEM file with the CA certificates that verify the server's certificate, instead of the
    /// system's.
    pub ca_file: Option<PathBuf>,
    /// The client certificate, for servers that require one.
    pub client_certificate: Option<ClientCertificate>,
    /// Additional headers for every request, such as `X-Scope-OrgID` for a Mimir tenant.
    pub headers: Vec<(String, String)>,
    /// Labels and values that select the series to read, such as `cluster` if one Prometheus
    /// contains several clusters.
    pub labels: Vec<(String, String)>,
    /// The label that contains the node's name, instead of the host in `instance` or
    /// dcgm-exporter's label `Hostname`.
    pub node_label: Option<String>,
    /// The interval at which the fleet is read while someone is watching.
    pub period: Duration,
    /// The time limit of a query.
    pub timeout: Duration,
    /// The number of GPUs above which only nodes are listed, using the sums from the recording
    /// rules.
    pub gpus_most: u32,
}

/// gpumon's credentials for Prometheus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Authorization {
    /// No credentials are sent.
    #[default]
    None,
    /// A bearer token in a file.
    BearerFile(PathBuf),
    /// A user name, and a file that contains the password.
    Basic {
        /// The user name.
        user: String,
        /// The file with the password.
        password_file: PathBuf,
    },
}

/// A client certificate and its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The file with the certificate and its chain.
    pub certificate_file: PathBuf,
    /// The file with the unencrypted key.
    pub key_file: PathBuf,
}

/// A problem with the settings, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SettingsError(pub(crate) String);

impl Settings {
    /// The default interval between readings. Prometheus rarely scrapes more often.
    pub const DEFAULT_PERIOD: Duration = Duration::from_secs(15);
    /// The default time limit of a query. A query about ten thousand GPUs takes less time.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
    /// The default number of GPUs above which only nodes are listed. More GPUs do not fit on a
    /// screen, and Prometheus would need seconds for each query.
    pub const DEFAULT_MAX_GPUS: u32 = 20_000;

    /// Creates default settings for the Prometheus server at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            authorization: Authorization::None,
            ca_file: None,
            client_certificate: None,
            headers: Vec::new(),
            labels: Vec::new(),
            node_label: None,
            period: Self::DEFAULT_PERIOD,
            timeout: Self::DEFAULT_TIMEOUT,
            gpus_most: Self::DEFAULT_MAX_GPUS,
        }
    }
}
