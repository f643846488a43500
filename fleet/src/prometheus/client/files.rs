//! What this program shows to Prometheus, and whom it trusts, by files that are read anew when they
//! change.

use std::path::PathBuf;

use gpumon_probe::file_stamp::FileStamp;
use hyper::header::HeaderValue;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::super::settings::{Authorization, ClientCertificate, Settings};
use crate::credentials::{
    NO_AUTHORITIES, authorities, basic, bearer, certificates_of, private_key_of, tls_client,
};

/// The header, read anew of its file: tokens of Kubernetes are replaced every hour.
///
/// # Errors
/// What is wrong with the file, and the cure.
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

/// For an address that is not encrypted: it trusts nobody.
pub(super) fn no_tls() -> Result<ClientConfig, String> {
    Ok(tls_client()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

/// # Errors
/// Which file is not what it should be, and the cure.
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

/// The files that TLS takes.
pub(super) fn of_tls(settings: &Settings) -> Vec<PathBuf> {
    let own = settings
        .client_certificate
        .iter()
        .flat_map(|it| [&it.certificate_file, &it.key_file]);
    settings.ca_file.iter().chain(own).cloned().collect()
}

/// Returns the stamps of files, which differ if a file has changed.
pub(super) fn read_stamps(paths: &[PathBuf]) -> Vec<Option<FileStamp>> {
    paths.iter().map(|path| FileStamp::read(path)).collect()
}
