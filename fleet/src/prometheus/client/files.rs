//! Credentials and trusted certificates for Prometheus. Their files are read again when they
//! change.

use std::path::PathBuf;

use gpumon_probe::file_stamp::FileStamp;
use hyper::header::HeaderValue;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::super::settings::{Authorization, ClientCertificate, Settings};
use crate::credentials::{
    NO_AUTHORITIES, authorities, basic, bearer, certificates_of, private_key_of, tls_client,
};

/// Returns the header. Its file is read at each call, because Kubernetes replaces tokens every
/// hour.
///
/// # Errors
/// Returns the problem of the file and its remedy.
pub(super) fn authorization(of: &Authorization) -> Result<Option<HeaderValue>, String> {
    match of {
        Authorization::None => Ok(None),
        Authorization::BearerFile(path) => bearer(path).map(Some),
        Authorization::Basic {
            user,
            password_file,
        } => basic(user, password_file).map(Some),
    }
}

/// Returns the TLS configuration for an unencrypted address, which trusts no certificate.
pub(super) fn no_tls() -> Result<ClientConfig, String> {
    Ok(tls_client()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

/// Returns the TLS configuration of the settings.
///
/// # Errors
/// Returns the problem of a file and its remedy.
pub(super) fn tls(settings: &Settings) -> Result<ClientConfig, String> {
    let roots = authorities(settings.ca_file.as_deref())?.ok_or_else(|| {
        format!("{NO_AUTHORITIES}, or name a file with the authority of Prometheus' certificate")
    })?;
    let builder = tls_client()?.with_root_certificates(roots);
    let Some(ClientCertificate {
        certificate_file,
        key_file,
    }) = &settings.client_certificate
    else {
        return Ok(builder.with_no_client_auth());
    };
    let fits = builder.with_client_auth_cert(
        certificates_of(certificate_file)?,
        private_key_of(key_file)?,
    );
    fits.map_err(|error| {
        format!(
            "{} does not fit its key: {error}; name its key beside it",
            certificate_file.display()
        )
    })
}

/// Returns the files that the TLS configuration uses.
pub(super) fn of_tls(settings: &Settings) -> Vec<PathBuf> {
    let own = settings
        .client_certificate
        .iter()
        .flat_map(|it| [&it.certificate_file, &it.key_file]);
    settings.ca_file.iter().chain(own).cloned().collect()
}

/// Returns the stamps of files. A stamp changes when its file does.
pub(super) fn read_stamps(paths: &[PathBuf]) -> Vec<Option<FileStamp>> {
    paths.iter().map(|path| FileStamp::read(path)).collect()
}
