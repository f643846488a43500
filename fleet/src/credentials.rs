//! The credentials and trusted certificates of this program as a client. Files are read at each
//! call.

use std::{path::Path, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use gpumon_probe::private_file::{PrivateFile, Secrecy};
use hyper::header::HeaderValue;
use rustls_native_certs::load_native_certs;
use tokio_rustls::rustls::{
    ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// The error if a system has no trusted certificates, with the remedy.
pub const NO_AUTHORITIES: &str = "this system has no certificates of authorities; install them (Debian: apt-get install ca-certificates)";

/// Returns the value of the `Authorization` header with the token in a file.
///
/// # Errors
/// Returns the problem of the file and its remedy.
pub fn bearer(file: &Path) -> Result<HeaderValue, String> {
    let token = secret(file)?;
    if token.contains(char::is_whitespace) {
        return Err(format!(
            "{} has more than a token; put the token there alone",
            file.display()
        ));
    }
    authorization(file, &format!("Bearer {token}"))
}

/// Returns the value of the `Authorization` header for a user with the password in a file.
///
/// # Errors
/// Returns the problem of the file and its remedy.
pub fn basic(user: &str, password_file: &Path) -> Result<HeaderValue, String> {
    let pair = format!("{user}:{}", secret(password_file)?);
    authorization(password_file, &format!("Basic {}", STANDARD.encode(pair)))
}

fn secret(path: &Path) -> Result<String, String> {
    let file = PrivateFile::read(path, Secrecy::Secret).map_err(|error| error.to_string())?;
    let line = file.text().trim();
    if line.is_empty() {
        Err(format!("{} is empty; put the secret there", path.display()))
    } else {
        Ok(line.to_owned())
    }
}

fn authorization(file: &Path, text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::try_from(text).map_err(|_| {
        format!(
            "{} has characters that no header can have; put the token alone there",
            file.display()
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns the trusted certificates in a file, or those of this system, or `None` if the system has
/// none.
///
/// # Errors
/// Returns the problem of the file and its remedy.
pub fn authorities(file: Option<&Path>) -> Result<Option<RootCertStore>, String> {
    let mut store = RootCertStore::empty();
    let Some(path) = file else {
        store.add_parsable_certificates(load_native_certs().certs);
        return Ok((!store.is_empty()).then_some(store));
    };
    for certificate in certificates_of(path)? {
        let added = store.add(certificate);
        added.map_err(|error| {
            format!("{} has a certificate that is none: {error}", path.display())
        })?;
    }
    Ok(Some(store))
}

/// Returns the certificates in a file, at least one.
///
/// # Errors
/// Returns the problem of the file and its remedy.
pub(crate) fn certificates_of(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let file = PrivateFile::read(path, Secrecy::Public).map_err(|error| error.to_string())?;
    certificates(&path.display().to_string(), file.text())
}

/// Returns the private key in a file.
///
/// # Errors
/// Returns the problem of the file and its remedy.
pub(crate) fn private_key_of(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let file = PrivateFile::read(path, Secrecy::Secret).map_err(|error| error.to_string())?;
    private_key(&path.display().to_string(), file.text())
}

/// Parses PEM certificates, at least one. `name` is the name of the file or key in errors.
///
/// # Errors
/// Returns the problem of the text and its remedy.
pub fn certificates(name: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    match CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>() {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(format!(
            "{name} has no certificate; name a file in PEM (-----BEGIN CERTIFICATE-----)"
        )),
        Err(error) => Err(format!(
            "{name} is not PEM: {error}; convert it with `openssl x509`"
        )),
    }
}

/// Parses a PEM private key. `name` is the name of the file or key in errors.
///
/// # Errors
/// Returns the problem of the text and its remedy.
pub fn private_key(name: &str, pem: &str) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| {
        format!(
            "{name} has no private key in PEM that is not encrypted; decrypt it with `openssl pkey`"
        )
    })
}

/// Returns the TLS configuration of a client, to which trusted certificates must be added.
///
/// # Errors
/// Returns an error if the provider lacks required algorithms, which is a defect.
pub fn tls_client() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use super::*;

    #[test]
    fn a_token_is_read_anew_and_only_where_others_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let header = || bearer(&path).map(|value| value.to_str().unwrap().to_owned());
        assert!(header().unwrap_err().contains("cannot read"));
        for (mode, told) in [
            (0o644, Err("chmod 600")),
            (0o620, Err("chmod go-w")),
            (0o640, Ok("Bearer one")),
        ] {
            fs::write(&path, "one\n").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            match told {
                Ok(value) => assert_eq!(header().unwrap(), value),
                Err(cure) => assert!(header().unwrap_err().contains(cure)),
            }
        }
        fs::write(&path, "two").unwrap();
        assert_eq!(header().unwrap(), "Bearer two");
        for (text, cause) in [
            (" \n", "empty"),
            ("read b", "more than a token"),
            ("a\u{7f}b", "no header"),
        ] {
            fs::write(&path, text).unwrap();
            let error = header().unwrap_err();
            assert!(
                error.contains(cause) && !error.contains("read b"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_password_is_told_as_basic_authentication_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        fs::write(&path, "päss\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let value = basic("ana", &path).unwrap();
        assert_eq!(value, "Basic YW5hOnDDpHNz");
        assert!(
            !format!("{value:?}").contains("YW5h"),
            "it stays out of logs"
        );
    }
}
