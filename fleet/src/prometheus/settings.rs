//! Where Prometheus is, and how this program comes in.

use std::{path::PathBuf, time::Duration};

use thiserror::Error;

/// Where Prometheus is, and how this program comes in. Secrets are in files, which are read anew
/// when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The address below which `/api/v1/query` is, as `https://prometheus.example.org:9090/prefix`. It has no credentials.
    pub url: String,
    /// Who this program is there.
    pub authorization: Authorization,
    /// Certificates that the server's own is checked with, in PEM; those of the system otherwise.
    pub ca_file: Option<PathBuf>,
    /// What is shown to a server that asks for a certificate.
    pub client_certificate: Option<ClientCertificate>,
    /// Further headers of each request, as the tenant of Mimir in `X-Scope-OrgID`.
    pub headers: Vec<(String, String)>,
    /// Labels and values that all series have that are read, as `cluster` where one Prometheus has
    /// several.
    pub labels: Vec<(String, String)>,
    /// The label that names the node; the host of `instance` otherwise, or dcgm-exporter's
    /// `Hostname`.
    pub node_label: Option<String>,
    /// How often readings are read while somebody watches.
    pub period: Duration,
    /// How long one query may take.
    pub timeout: Duration,
    /// From how many GPUs on only nodes are told, as the recording rules sum them up.
    pub gpus_most: u32,
}

/// Who this program is, for Prometheus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Authorization {
    /// Nobody in particular.
    #[default]
    None,
    /// Whoever has the token in this file.
    BearerFile(PathBuf),
    /// A user, by name and the password in a file.
    Basic {
        /// The name.
        user: String,
        /// The file with the password.
        password_file: PathBuf,
    },
}

/// A certificate and its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate, with those above it.
    pub certificate_file: PathBuf,
    /// The key, not encrypted.
    pub key_file: PathBuf,
}

/// What is wrong with settings, and the cure.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SettingsError(pub(crate) String);

impl Settings {
    /// Scrapes are seldom closer.
    pub const PERIOD: Duration = Duration::from_secs(15);
    /// Longer than a query of ten thousand GPUs takes.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
    /// More are not compared on one screen, and take Prometheus seconds.
    pub const GPUS_MOST: u32 = 20_000;

    /// What is set where nothing else is.
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
