//! Client certificates: the setting `client_auth_type`, and the other settings that concern them.

use std::{net::IpAddr, sync::Arc};

use gpumon_fleet::credentials::parse_certificates;
use gpumon_probe::owner::clean_line;
use tokio_rustls::rustls::{
    RootCertStore,
    crypto::CryptoProvider,
    pki_types::CertificateDer,
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use x509_cert::{
    Certificate,
    der::Decode,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

use super::{file::TlsSection, tls::Pem};
use crate::auth::Digest;

/// The maximum number of characters of a name.
const MAX_NAME_CHARS: usize = 64;

/// The accepted client certificates.
pub(crate) struct ClientCertificates {
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
    allowed_sans: Vec<String>,
    /// Whether clients must have a certificate.
    pub(crate) is_required: bool,
    /// A digest of all settings that determine whether a certificate is valid.
    pub(crate) authority: Digest,
}

impl ClientCertificates {
    pub(super) fn new(
        section: &TlsSection,
        authority: Option<&Pem>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Option<Self>, String> {
        let is_required = match section.client_auth_type.as_deref() {
            None | Some("" | "NoClientCert") => {
                return match (authority, &section.client_allowed_sans[..]) {
                    (None, []) => Ok(None),
                    (Some(_), _) => Err(
                        "client_ca_file has no effect without client_auth_type: set \
                         client_auth_type to RequireAndVerifyClientCert, or remove client_ca_file"
                            .to_owned(),
                    ),
                    (None, _) => Err(
                        "client_allowed_sans has no effect without client_auth_type: set \
                         client_auth_type to RequireAndVerifyClientCert, and set client_ca_file"
                            .to_owned(),
                    ),
                };
            }
            Some("RequireAndVerifyClientCert") => true,
            Some("VerifyClientCertIfGiven") => false,
            Some("RequestClientCert" | "RequireAnyClientCert" | "RequireClientCert") => {
                return Err(
                    "this client_auth_type accepts certificates without verifying them; use \
                     RequireAndVerifyClientCert, and set client_ca_file"
                        .to_owned(),
                );
            }
            Some(_) => {
                return Err(
                    "client_auth_type is unknown: use NoClientCert, VerifyClientCertIfGiven or \
                     RequireAndVerifyClientCert"
                        .to_owned(),
                );
            }
        };
        if !section.client_allowed_sans.is_empty() && !is_required {
            return Err(
                "client_allowed_sans needs client_auth_type RequireAndVerifyClientCert".to_owned(),
            );
        }
        let authority = authority.ok_or(
            "client_auth_type needs client_ca_file with the certificates of the authorities that \
             sign client certificates",
        )?;
        let mut roots = RootCertStore::empty();
        for certificate in parse_certificates(&authority.name, &authority.text)? {
            roots
                .add(certificate)
                .map_err(|error| format!("{}: {error}", authority.name))?;
        }
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let verifier = if is_required {
            verifier
        } else {
            verifier.allow_unauthenticated()
        };
        let verifier = verifier
            .build()
            .map_err(|error| format!("{}: {error}", authority.name))?;
        let mut parts = vec![b"authority", authority.text.as_bytes()];
        parts.extend(section.client_allowed_sans.iter().map(String::as_bytes));
        let (authority, allowed_sans) = (Digest::new(&parts), section.client_allowed_sans.clone());
        Ok(Some(Self {
            verifier,
            allowed_sans,
            is_required,
            authority,
        }))
    }

    /// Returns the name in a verified certificate, or `None` if the certificate is not among the
    /// allowed ones.
    pub(crate) fn find_name(&self, certificate: &CertificateDer<'_>) -> Option<Arc<str>> {
        let certificate = Certificate::from_der(certificate).ok()?;
        let names = alternative_names(&certificate);
        let is_allowed = self.allowed_sans.is_empty()
            || names.iter().any(|name| self.allowed_sans.contains(name));
        let subject = certificate.tbs_certificate().subject().to_string();
        let name = if subject.is_empty() {
            names.into_iter().next().unwrap_or_default()
        } else {
            subject
        };
        is_allowed.then(|| shorten_name(&name).into())
    }
}

pub(super) fn shorten_name(name: &str) -> String {
    clean_line(name).chars().take(MAX_NAME_CHARS).collect()
}

/// Returns a certificate's alternative names: hostnames, IP addresses, email addresses and URIs.
fn alternative_names(certificate: &Certificate) -> Vec<String> {
    let Ok(Some((_, SubjectAltName(names)))) = certificate.tbs_certificate().get_extension() else {
        return Vec::new();
    };
    let text = |name: GeneralName| match name {
        GeneralName::Rfc822Name(name)
        | GeneralName::DnsName(name)
        | GeneralName::UniformResourceIdentifier(name) => Some(name.to_string()),
        GeneralName::IpAddress(address) => {
            let bytes = address.as_bytes();
            let of_4 = || <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
            let of_16 = || <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from);
            of_4().or_else(of_16).map(|address| address.to_string())
        }
        _ => None,
    };
    names.into_iter().filter_map(text).collect()
}
