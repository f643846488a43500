//! Settings for the connection to Prometheus: its address and gpumon's credentials.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use hyper::Uri;
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

/// The address of Prometheus without credentials: a scheme, a host, and the path of its API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// The base URL without a trailing slash.
    base: String,
    pub(super) is_encrypted: bool,
    /// Whether the address is on this machine. If so, responses are not compressed, because
    /// compression would take longer than the transfer.
    pub(super) is_local: bool,
}

impl Address {
    /// Parses the address that the user typed.
    ///
    /// # Errors
    /// Returns the problem with the address and its remedy. The message omits the address if it may
    /// contain a password.
    pub(super) fn new(typed: &str) -> Result<Self, SettingsError> {
        let typed = typed.trim();
        if typed.contains('@') {
            return Err(SettingsError(
                "the address of Prometheus contains credentials, which would appear in logs and \
                 process lists; remove the part before the @, and specify the user and a password \
                 file with separate options"
                    .to_owned(),
            ));
        }
        let unfit = |cause: &str| {
            SettingsError(format!(
                "'{}' is not a valid Prometheus address: {cause}; use an address such as \
                 https://prometheus.example.org:9090",
                gpumon_probe::owner::clean_line(typed)
            ))
        };
        let uri: Uri = typed.parse().map_err(|_| unfit("it is not a URL"))?;
        let scheme = uri
            .scheme_str()
            .filter(|scheme| ["http", "https"].contains(scheme));
        let scheme = scheme.ok_or_else(|| unfit("it does not begin with http:// or https://"))?;
        let authority = uri
            .authority()
            .filter(|it| !it.host().is_empty())
            .ok_or_else(|| unfit("it has no host"))?;
        if uri.query().is_some() || typed.contains('#') {
            return Err(unfit("it has a query or a fragment"));
        }
        let path = uri.path().trim_end_matches('/');
        // People copy addresses with these suffixes from a browser's address bar or from Grafana.
        let path = path
            .strip_suffix("/graph")
            .or_else(|| path.strip_suffix("/api/v1"))
            .unwrap_or(path);
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        let is_local = host == "localhost"
            || host
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        Ok(Self {
            base: format!("{scheme}://{authority}{path}"),
            is_encrypted: scheme == "https",
            is_local,
        })
    }

    /// Returns the address for display to users.
    pub(super) fn display_text(&self) -> &str {
        &self.base
    }

    pub(super) fn uri(&self) -> Option<Uri> {
        self.base.parse().ok()
    }

    /// Returns the URL of an API endpoint such as `query`, including its parameters.
    pub(super) fn endpoint_url(&self, endpoint: &str, parameters: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters);
        format!("{}/api/v1/{endpoint}?{}", self.base, query.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_path_is_removed_from_address() {
        for (typed, base) in [
            ("http://127.0.0.1:9090", "http://127.0.0.1:9090"),
            (
                " https://example.org/prometheus/ ",
                "https://example.org/prometheus",
            ),
            (
                "https://mimir.example.org/prometheus/api/v1",
                "https://mimir.example.org/prometheus",
            ),
            ("http://[::1]:9090/graph", "http://[::1]:9090"),
        ] {
            let address = Address::new(typed).unwrap();
            assert_eq!(
                (address.display_text(), address.is_local),
                (base, !base.contains("example"))
            );
        }
        let endpoint = Address::new("http://p/x")
            .unwrap()
            .endpoint_url("query", &[("query", "up{a=\"b & c\"}")]);
        assert_eq!(
            endpoint,
            "http://p/x/api/v1/query?query=up%7Ba%3D%22b+%26+c%22%7D"
        );
    }

    #[test]
    fn invalid_address_is_refused_without_repeating_password() {
        for typed in [
            "",
            "prometheus:9090",
            "ftp://a",
            "http://",
            "http://a/?x=1",
            "http://a/#b",
            "http://a b",
        ] {
            let error = Address::new(typed).unwrap_err().to_string();
            assert!(error.contains("use an address such as https://"), "{error}");
        }
        let error = Address::new("https://ana:secret@example.org")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("specify the user and a password file") && !error.contains("secret"),
            "{error}"
        );
    }
}
