//! The credentials for nodes: trusted authorities and a token, from files that are read again when
//! they change.

use std::{path::PathBuf, sync::Arc};

use axum::http::HeaderValue;
use gpumon_fleet::credentials;
use tokio::task::spawn_blocking;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::problem::NodeProblem;
use crate::watched::{Loaded, Watched};

pub(super) struct Credentials {
    tls: Watched<Option<Arc<ClientConfig>>>,
    token: Watched<Option<HeaderValue>>,
}

/// The current credentials.
#[derive(Clone)]
pub(super) struct Shown {
    /// The TLS settings, or `None` if the system has no trusted authorities.
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// The value of the header `Authorization`.
    pub(super) token: Option<HeaderValue>,
}

impl Credentials {
    /// Reads the files.
    ///
    /// # Errors
    /// Returns the problem of a file with its cure.
    pub(super) fn open(
        ca_file: Option<PathBuf>,
        token_file: Option<PathBuf>,
    ) -> Result<Self, String> {
        Ok(Self {
            tls: Watched::new(move || tls(ca_file.as_ref()))?,
            token: Watched::new(move || token(token_file.as_ref()))?,
        })
    }

    /// Returns the credentials, and reads changed files first. A problem is logged once, and the
    /// previous credentials remain valid.
    pub(super) async fn shown(self: &Arc<Self>) -> Result<Shown, NodeProblem> {
        let credentials = Arc::clone(self);
        let read = move || {
            let refreshed = [
                credentials.tls.refresh(|_, _| Ok(())),
                credentials.token.refresh(|_, _| Ok(())),
            ];
            for why in refreshed.into_iter().flatten().filter_map(Result::err) {
                tracing::warn!(
                    "a file for nodes of the fleet is not used, and that before is: {why}"
                );
            }
            let tls = (*credentials.tls.current()).clone();
            Shown {
                tls,
                token: (*credentials.token.current()).clone(),
            }
        };
        spawn_blocking(read)
            .await
            .map_err(|error| NodeProblem::Settings(error.to_string()))
    }
}

fn tls(ca_file: Option<&PathBuf>) -> Loaded<Option<Arc<ClientConfig>>> {
    let roots = credentials::authorities(ca_file.map(PathBuf::as_path));
    let config = roots.and_then(|roots| roots.map(config).transpose());
    (ca_file.cloned().into_iter().collect(), config)
}

fn config(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let mut config = credentials::tls_client()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn token(token_file: Option<&PathBuf>) -> Loaded<Option<HeaderValue>> {
    (
        token_file.cloned().into_iter().collect(),
        token_file.map(|path| credentials::bearer(path)).transpose(),
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
    async fn a_token_is_read_anew_and_one_that_is_wrong_leaves_the_one_before() {
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
        let shown = async || credentials.shown().await.ok().unwrap().token.unwrap();
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
