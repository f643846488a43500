//! The credentials for nodes: the trusted authorities, a token, and the patterns of hosts that may
//! receive the token. The files of the authorities and the token are read again when they change.

use std::{fmt, path::PathBuf, str::FromStr, sync::Arc};

use axum::http::HeaderValue;
use gpumon_fleet::credentials;
use tokio::task::spawn_blocking;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::problem::NodeProblem;
use crate::watched_file::{LoadedFiles, WatchedFile};

pub(super) struct Credentials {
    tls: WatchedFile<Option<Arc<ClientConfig>>>,
    token: WatchedFile<Option<HeaderValue>>,
}

/// The current credentials for nodes.
#[derive(Clone)]
pub(super) struct NodeCredentials {
    /// The TLS settings, or `None` if the system has no trusted authorities.
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// The value of the header `Authorization`.
    pub(super) token: Option<HeaderValue>,
}

impl Credentials {
    /// Reads the files of the trusted authorities and of the token.
    ///
    /// # Errors
    /// Returns the problem of a file and its remedy.
    pub(super) fn open(
        ca_file: Option<PathBuf>,
        token_file: Option<PathBuf>,
    ) -> Result<Self, String> {
        Ok(Self {
            tls: WatchedFile::new(move || load_tls(ca_file.as_ref()))?,
            token: WatchedFile::new(move || load_token(token_file.as_ref()))?,
        })
    }

    /// Reads the files again if they have changed, and returns the credentials. If this fails, the
    /// problem is logged once and the previous credentials are kept.
    pub(super) async fn refresh(self: &Arc<Self>) -> Result<NodeCredentials, NodeProblem> {
        let credentials = Arc::clone(self);
        let read = move || {
            let refreshed = [
                credentials.tls.reload_if_changed(|_, _| Ok(())),
                credentials.token.reload_if_changed(|_, _| Ok(())),
            ];
            for why in refreshed.into_iter().flatten().filter_map(Result::err) {
                tracing::warn!(
                    "a changed CA or token file for the fleet's nodes could not be loaded, and \
                     its previous version stays in effect: {why}"
                );
            }
            let tls = (*credentials.tls.current()).clone();
            NodeCredentials {
                tls,
                token: (*credentials.token.current()).clone(),
            }
        };
        spawn_blocking(read)
            .await
            .map_err(|error| NodeProblem::Settings(error.to_string()))
    }
}

fn load_tls(ca_file: Option<&PathBuf>) -> LoadedFiles<Option<Arc<ClientConfig>>> {
    let roots = credentials::read_root_certificates(ca_file.map(PathBuf::as_path));
    let config = roots.and_then(|roots| roots.map(build_tls_config).transpose());
    (ca_file.cloned().into_iter().collect(), config)
}

fn build_tls_config(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let mut config = credentials::client_config_builder()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn load_token(token_file: Option<&PathBuf>) -> LoadedFiles<Option<HeaderValue>> {
    (
        token_file.cloned().into_iter().collect(),
        token_file
            .map(|path| credentials::read_bearer_header(path))
            .transpose(),
    )
}

/// The maximum number of wildcards in a pattern. Each wildcard makes matching slower.
const MAX_WILDCARDS: usize = 4;

/// A pattern of hostnames or addresses, such as `*.gpus.example.org`. `*` matches any characters
/// except dots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern(String);

impl HostPattern {
    /// Returns `true` if the pattern matches the whole name or address. Case is ignored.
    pub(super) fn covers_host(&self, host: &str) -> bool {
        matches_wildcards(
            self.0.as_bytes(),
            host.trim_end_matches('.').to_ascii_lowercase().as_bytes(),
        )
    }
}

fn matches_wildcards(pattern: &[u8], host: &[u8]) -> bool {
    match pattern {
        [] => host.is_empty(),
        [b'*', rest @ ..] => {
            let longest = host
                .iter()
                .position(|byte| *byte == b'.')
                .unwrap_or(host.len());
            (0..=longest).any(|length| matches_wildcards(rest, &host[length..]))
        }
        [first, rest @ ..] => host.first() == Some(first) && matches_wildcards(rest, &host[1..]),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            Err(format!(
                "{why}; use a name, an address or a pattern, such as *.gpus.example.org or \
                 10.0.7.*"
            ))
        };
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:*".contains(&byte);
        if !text.bytes().all(is_fit) {
            return wrong(
                "a host can contain only letters, digits, '-', '_', '.' and ':', without a scheme \
                 or a path",
            );
        }
        if !text.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
            return wrong(
                "this pattern contains no letter or digit and would match too many hosts",
            );
        }
        if text.bytes().filter(|byte| *byte == b'*').count() > MAX_WILDCARDS {
            return wrong("a pattern can have at most four wildcards");
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use super::*;

    #[tokio::test]
    async fn invalid_token_file_keeps_previous_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let open = || Credentials::open(None, Some(path.clone()));
        assert!(open().err().unwrap().contains("cannot read"));
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(open().err().unwrap().contains("chmod 600"));
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert!(open().err().unwrap().contains("is empty"));
        fs::write(&path, "read fleet 1234567890123456\n").unwrap();
        let error = open().err().unwrap();
        assert!(
            error.contains("more than a token") && !error.contains("1234567890123456"),
            "{error}"
        );
        fs::write(&path, "1234567890123456\n").unwrap();
        let credentials = Arc::new(open().unwrap());
        let shown = async || credentials.refresh().await.ok().unwrap().token.unwrap();
        assert_eq!(shown().await, "Bearer 1234567890123456");
        assert!(
            !format!("{:?}", shown().await).contains("1234"),
            "it stays out of logs"
        );
        fs::write(&path, "").unwrap();
        assert_eq!(shown().await, "Bearer 1234567890123456");
        fs::write(&path, "65432109876543210").unwrap();
        assert_eq!(shown().await, "Bearer 65432109876543210");
    }
}

#[cfg(test)]
mod host_pattern_tests {
    use super::*;

    fn pattern_covers(pattern: &str, host: &str) -> bool {
        pattern.parse::<HostPattern>().unwrap().covers_host(host)
    }

    #[test]
    fn wildcard_in_host_pattern_does_not_match_dot() {
        for (pattern, host) in [
            ("node1", "node1"),
            ("*.gpus.example.org", "node1.gpus.example.org"),
            ("gpu-*.Example.org", "GPU-17.example.org."),
            ("10.0.7.*", "10.0.7.31"),
            ("fd00::*", "fd00::7"),
            ("a*b*c", "abbc"),
        ] {
            assert!(pattern_covers(pattern, host), "{pattern} {host}");
        }
        for (pattern, host) in [
            ("node1", "node10"),
            ("node1", "node1.evil.example"),
            ("*.gpus.example.org", "gpus.example.org"),
            ("*.gpus.example.org", "a.b.gpus.example.org"),
            ("*.gpus.example.org", "gpus.example.org.evil.example"),
            ("10.0.7.*", "10.0.7.evil.example"),
            ("*1", "node1.evil.example.1"),
        ] {
            assert!(!pattern_covers(pattern, host), "{pattern} {host}");
        }
    }

    #[test]
    fn too_broad_or_invalid_host_pattern_is_refused() {
        for pattern in [
            "*",
            "*.*",
            "",
            ".",
            "https://node1",
            "node1/",
            "a b",
            "*a*b*c*d*e",
        ] {
            let error = pattern.parse::<HostPattern>().unwrap_err();
            assert!(
                error.contains("such as *.gpus.example.org"),
                "{pattern}: {error}"
            );
        }
    }
}
