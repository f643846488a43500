//! The credentials for nodes: trusted authorities and a token. Their files are read again when they
//! change.

use std::{path::PathBuf, sync::Arc};

use axum::http::HeaderValue;
use gpumon_fleet::credentials;
use tokio::task::spawn_blocking;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::problem::NodeProblem;
use crate::watched::{LoadedFiles, WatchedFile};

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
                credentials.tls.refresh(|_, _| Ok(())),
                credentials.token.refresh(|_, _| Ok(())),
            ];
            for why in refreshed.into_iter().flatten().filter_map(Result::err) {
                tracing::warn!(
                    "a changed file for the nodes of the fleet could not be loaded, and its \
                     previous version stays in effect: {why}"
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
    let roots = credentials::read_authorities(ca_file.map(PathBuf::as_path));
    let config = roots.and_then(|roots| roots.map(build_tls_config).transpose());
    (ca_file.cloned().into_iter().collect(), config)
}

fn build_tls_config(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let mut config = credentials::build_client_config()?
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
