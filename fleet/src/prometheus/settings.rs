//! The address of Prometheus, and this program's credentials.

use std::{path::PathBuf, time::Duration};

use thiserror::Error;

/// The address of Prometheus, and this program's credentials. Secrets are in files, which are read
/// again when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The address without `/api/v1/query`, such as `https://prometheus.example.org:9090/prefix`.
    /// It must not contain credentials.
    pub url: String,
    /// This program's credentials.
    pub authorization: Authorization,
    /// The file with certificates that verify the server's certificate, in PEM, instead of those of
    /// the system.
    pub ca_file: Option<PathBuf>,
    /// The certificate for a server that requires one.
    pub client_certificate: Option<ClientCertificate>,
    /// Further headers of each request, such as `X-Scope-OrgID` for a tenant of Mimir.
    pub headers: Vec<(String, String)>,
    /// Labels and values that select the series to read, such as `cluster` if one Prometheus
    /// contains several clusters.
    pub labels: Vec<(String, String)>,
    /// The label that names the node, instead of the host of `instance` or dcgm-exporter's
    /// `Hostname`.
    pub node_label: Option<String>,
    /// The interval between readings while someone watches.
    pub period: Duration,
    /// The time limit of a query.
    pub timeout: Duration,
    /// The number of GPUs above which only nodes are listed, with the sums of the recording rules.
    pub gpus_most: u32,
}

/// This program's credentials for Prometheus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Authorization {
    /// No credentials are sent.
    #[default]
    None,
    /// A bearer token in a file.
    BearerFile(PathBuf),
    /// A user with a password in a file.
    Basic {
        /// The user name.
        user: String,
        /// The file with the password.
        password_file: PathBuf,
    },
}

/// A certificate and its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The file with the certificate and its chain.
    pub certificate_file: PathBuf,
    /// The file with the unencrypted key.
    pub key_file: PathBuf,
}

/// A problem of settings, with its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SettingsError(pub(crate) String);

impl Settings {
    /// The default interval. Prometheus rarely scrapes more often.
    pub const PERIOD: Duration = Duration::from_secs(15);
    /// The default time limit, longer than a query about ten thousand GPUs takes.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
    /// The default number of GPUs above which only nodes are listed. More GPUs do not fit on a
    /// screen, and take Prometheus seconds.
    pub const GPUS_MOST: u32 = 20_000;

    /// Returns the default settings for this address.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            authorization: Authorization::None,
            ca_file: None,
            client_certificate: None,
            headers: Vec::new(),
            labels: Vec::new(),
            node_label: None,
            period: Self::PERIOD,
            timeout: Self::TIMEOUT,
            gpus_most: Self::GPUS_MOST,
        }
    }
}
