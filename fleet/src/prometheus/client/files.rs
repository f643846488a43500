//! Credentials and trusted certificates for Prometheus, which are read again when their files
//! change.

use std::path::PathBuf;

use gpumon_probe::file_stamp::FileStamp;
use hyper::header::HeaderValue;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::super::settings::{Authorization, ClientCertificate, Settings};
use crate::credentials::{
    NO_AUTHORITIES, build_client_config, read_authorities, read_basic_header, read_bearer_header,
    read_certificates, read_private_key,
};

/// Returns the `Authorization` header's value, if any. The file is read at each call, because
/// Kubernetes replaces tokens every hour.
///
/// # Errors
/// Returns the problem with the file and its remedy.
pub(super) fn read_authorization(of: &Authorization) -> Result<Option<HeaderValue>, String> {
    match of {
        Authorization::None => Ok(None),
        Authorization::BearerFile(path) => read_bearer_header(path).map(Some),
        Authorization::Basic {
            user,
            password_file,
        } => read_basic_header(user, password_file).map(Some),
    }
}

/// Returns the TLS configuration for an unencrypted address. It trusts no certificate.
pub(super) fn build_unencrypted_config() -> Result<ClientConfig, String> {
    Ok(build_client_config()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

/// Returns the TLS configuration that `settings` describe.
///
/// # Errors
/// Returns the problem with a file and its remedy.
pub(super) fn build_tls_config(settings: &Settings) -> Result<ClientConfig, String> {
    let roots = read_authorities(settings.ca_file.as_deref())?.ok_or_else(|| {
        format!("{NO_AUTHORITIES}, or specify a file with the CA certificate of Prometheus")
    })?;
    let builder = build_client_config()?.with_root_certificates(roots);
    let Some(ClientCertificate {
        certificate_file,
        key_file,
    }) = &settings.client_certificate
    else {
        return Ok(builder.with_no_client_auth());
    };
    let fits = builder.with_client_auth_cert(
        read_certificates(certificate_file)?,
        read_private_key(key_file)?,
    );
    fits.map_err(|error| {
        format!(
            "{} does not match its private key: {error}; specify the file that contains the \
             matching key",
            certificate_file.display()
        )
    })
}

/// Returns the paths of the files that the TLS configuration is read from.
pub(super) fn list_tls_files(settings: &Settings) -> Vec<PathBuf> {
    let own = settings
        .client_certificate
        .iter()
        .flat_map(|it| [&it.certificate_file, &it.key_file]);
    settings.ca_file.iter().chain(own).cloned().collect()
}

/// Returns a stamp for each file, which changes when the file changes.
pub(super) fn read_stamps(paths: &[PathBuf]) -> Vec<Option<FileStamp>> {
    paths.iter().map(|path| FileStamp::read(path)).collect()
}
