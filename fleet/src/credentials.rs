//! The client's credentials and trusted certificates. Files are read again at each call.

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

/// The error message for a system without trusted CA certificates.
pub const NO_AUTHORITIES: &str = "this system has no trusted CA certificates; install them \
                                  (Debian: apt-get install ca-certificates)";

/// Returns an `Authorization` header value with the bearer token in `file`.
///
/// # Errors
/// Returns the problem with the file and its remedy.
pub fn read_bearer_header(file: &Path) -> Result<HeaderValue, String> {
    let token = read_secret(file)?;
    if token.contains(char::is_whitespace) {
        return Err(format!(
            "{} contains more than a token; it must contain only the token",
            file.display()
        ));
    }
    build_header(file, &format!("Bearer {token}"))
}

/// Returns an `Authorization` header value for basic authentication of `user` with the password in
/// `password_file`.
///
/// # Errors
/// Returns the problem with the file and its remedy.
pub fn read_basic_header(user: &str, password_file: &Path) -> Result<HeaderValue, String> {
    let pair = format!("{user}:{}", read_secret(password_file)?);
    build_header(password_file, &format!("Basic {}", STANDARD.encode(pair)))
}

fn read_secret(path: &Path) -> Result<String, String> {
    let file = PrivateFile::read(path, Secrecy::Secret).map_err(|error| error.to_string())?;
    let line = file.text().trim();
    if line.is_empty() {
        Err(format!(
            "{} is empty; write the secret into it",
            path.display()
        ))
    } else {
        Ok(line.to_owned())
    }
}

fn build_header(file: &Path, text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::try_from(text).map_err(|_| {
        format!(
            "{} contains characters that are not allowed in a header; it must contain only the \
             token",
            file.display()
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns the trusted certificates in `file`, or the system's if `file` is `None`. Returns `None`
/// if the system has no trusted certificates.
///
/// # Errors
/// Returns the problem with the file and its remedy.
pub fn read_root_certificates(file: Option<&Path>) -> Result<Option<RootCertStore>, String> {
    let mut store = RootCertStore::empty();
    let Some(path) = file else {
        store.add_parsable_certificates(load_native_certs().certs);
        return Ok((!store.is_empty()).then_some(store));
    };
    for certificate in read_certificates(path)? {
        let added = store.add(certificate);
        added.map_err(|error| {
            format!(
                "{} contains an invalid certificate: {error}",
                path.display()
            )
        })?;
    }
    Ok(Some(store))
}

/// Reads the PEM certificates in a file. An empty file is an error.
///
/// # Errors
/// Returns the problem with the file and its remedy.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let file = PrivateFile::read(path, Secrecy::Public).map_err(|error| error.to_string())?;
    parse_certificates(&path.display().to_string(), file.text())
}

/// Reads a PEM private key from a file.
///
/// # Errors
/// Returns the problem with the file and its remedy.
pub(crate) fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let file = PrivateFile::read(path, Secrecy::Secret).map_err(|error| error.to_string())?;
    parse_private_key(&path.display().to_string(), file.text())
}

/// Parses PEM certificates. Text without a certificate is an error. `name` identifies the file or
/// key in error messages.
///
/// # Errors
/// Returns the problem with the text and its remedy.
pub fn parse_certificates(name: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    match CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>() {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(format!(
            "{name} contains no certificate; use a file in PEM format (-----BEGIN CERTIFICATE-----)"
        )),
        Err(error) => Err(format!(
            "{name} is not in PEM format: {error}; convert it with `openssl x509`"
        )),
    }
}

/// Parses a PEM private key. `name` identifies the file or key in error messages.
///
/// # Errors
/// Returns the problem with the text and its remedy.
pub fn parse_private_key(name: &str, pem: &str) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| {
        format!(
            "{name} contains no unencrypted private key in PEM format; decrypt or convert the key \
             with `openssl pkey`"
        )
    })
}

/// Returns a client's TLS configuration builder. The caller must add trusted certificates.
///
/// # Errors
/// Returns an error if the crypto provider lacks required algorithms, which is a bug.
pub fn client_config_builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
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
    fn token_is_reread_from_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let header = || read_bearer_header(&path).map(|value| value.to_str().unwrap().to_owned());
        assert!(header().unwrap_err().contains("cannot read"));
        for (mode, reported) in [
            (0o644, Err("chmod 600")),
            (0o620, Err("chmod go-w")),
            (0o640, Ok("Bearer one")),
        ] {
            fs::write(&path, "one\n").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            match reported {
                Ok(value) => assert_eq!(header().unwrap(), value),
                Err(cure) => assert!(header().unwrap_err().contains(cure)),
            }
        }
        fs::write(&path, "two").unwrap();
        assert_eq!(header().unwrap(), "Bearer two");
        for (text, cause) in [
            (" \n", "empty"),
            ("read b", "more than a token"),
            ("a\u{7f}b", "not allowed in a header"),
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
    fn password_is_sent_as_basic_authentication() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        fs::write(&path, "päss\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let value = read_basic_header("ana", &path).unwrap();
        assert_eq!(value, "Basic YW5hOnDDpHNz");
        assert!(
            !format!("{value:?}").contains("YW5h"),
            "it stays out of logs"
        );
    }
}
