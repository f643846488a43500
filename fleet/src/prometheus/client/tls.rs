//! How Prometheus is known to be Prometheus, and how this program shows who it is.

use std::sync::Arc;

use rustls_native_certs::load_native_certs;
use tokio_rustls::rustls::{
    ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use super::{
    super::settings::{ClientCertificate, Settings},
    secret,
};

/// For an address that is not encrypted: it trusts nobody.
pub(super) fn none() -> Result<ClientConfig, String> {
    Ok(builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// # Errors
/// Which file is not what it should be, and the cure.
pub(super) fn configuration(settings: &Settings) -> Result<ClientConfig, String> {
    let builder = builder()?.with_root_certificates(roots(settings)?);
    match &settings.client_certificate {
        None => Ok(builder.with_no_client_auth()),
        Some(ClientCertificate { certificate_file, key_file }) => {
            let name = certificate_file.display();
            let chain = certificates(&secret::public(certificate_file)?, &name.to_string())?;
            let key = PrivateKeyDer::from_pem_slice(&secret::secret(key_file)?).map_err(|_| {
                format!(
                    "{} has no private key in PEM that is not encrypted; decrypt it with `openssl pkey`",
                    key_file.display()
                )
            })?;
            let fits = builder.with_client_auth_cert(chain, key);
            fits.map_err(|error| format!("{name} does not fit its key: {error}; name its key beside it"))
        }
    }
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())
}

fn roots(settings: &Settings) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    if let Some(file) = &settings.ca_file {
        let name = file.display().to_string();
        for certificate in certificates(&secret::public(file)?, &name)? {
            store.add(certificate).map_err(|error| format!("{name} has a certificate that is none: {error}"))?;
        }
        return Ok(store);
    }
    store.add_parsable_certificates(load_native_certs().certs);
    if store.is_empty() {
        return Err("this system has no certificates of authorities; install them (Debian: apt-get install \
                    ca-certificates), or name a file with the authority of Prometheus' certificate"
            .to_owned());
    }
    Ok(store)
}

fn certificates(pem: &[u8], name: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    match CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>() {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(format!("{name} has no certificate; name a file in PEM (-----BEGIN CERTIFICATE-----)")),
        Err(error) => Err(format!("{name} is not PEM: {error}; convert it with `openssl x509`")),
    }
}
