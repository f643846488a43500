//! TLS settings (`tls_server_config`): certificate, key, versions and algorithms, and the accepted
//! client certificates.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use gpumon_fleet::credentials::{parse_certificates, parse_private_key};
use gpumon_probe::{
    owner::clean_line,
    private_file::{PrivateFile, Secrecy},
};
use tokio_rustls::rustls::{
    CipherSuite, RootCertStore, ServerConfig, SupportedProtocolVersion,
    client::verify_server_name,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName},
    server::{ParsedCertificate, WebPkiClientVerifier, danger::ClientCertVerifier},
    version::{TLS12, TLS13},
};
use x509_cert::{
    Certificate,
    der::Decode,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

use super::TlsSection;
use crate::auth::Digest;

/// The TLS settings of connections.
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
    /// The accepted client certificates, if clients may present one.
    pub(crate) clients: Option<ClientCertificates>,
}

impl Tls {
    /// Creates the settings. The paths of all files that were read are added to `files`.
    ///
    /// # Errors
    /// Returns the problem and its remedy.
    pub(super) fn new(
        section: &TlsSection,
        folder: &Path,
        files: &mut Vec<PathBuf>,
    ) -> Result<Self, String> {
        let mut read =
            |inline: &Option<String>, file: &Option<String>, keys: [&str; 2], secrecy| {
                read_pem(
                    folder,
                    files,
                    inline.as_deref(),
                    file.as_deref(),
                    keys,
                    secrecy,
                )
            };
        let certificate = read(
            &section.cert,
            &section.cert_file,
            ["cert", "cert_file"],
            Secrecy::Public,
        )?
        .ok_or(
            "tls_server_config has no certificate: set cert_file and key_file, or remove the \
             section",
        )?;
        let key = read(
            &section.key,
            &section.key_file,
            ["key", "key_file"],
            Secrecy::Secret,
        )?
        .ok_or("tls_server_config has no key for its certificate: set key_file")?;
        let authority = read(
            &section.client_ca,
            &section.client_ca_file,
            ["client_ca", "client_ca_file"],
            Secrecy::Public,
        )?;
        let chain = parse_certificates(&certificate.name, &certificate.text)?;
        let key = parse_private_key(&key.name, &key.text)?;
        let provider = Arc::new(select_provider(section)?);
        let clients = ClientCertificates::new(section, authority.as_ref(), &provider)?;
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&select_versions(section)?)
            .map_err(|error| format!("tls_server_config: {error}"))?;
        let builder = match &clients {
            Some(clients) => builder.with_client_cert_verifier(Arc::clone(&clients.verifier)),
            None => builder.with_no_client_auth(),
        };
        let first = chain[0].clone();
        let mut config = builder.with_single_cert(chain, key).map_err(|error| {
            format!(
                "{} does not match its key: {error}; set key_file to the matching key",
                certificate.name
            )
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.ignore_client_order = section.prefer_server_cipher_suites.unwrap_or(true);
        Ok(Self {
            config: Arc::new(config),
            certificate: first,
            clients,
        })
    }

    /// Returns `true` if the certificate is valid for this hostname or IP address.
    pub(crate) fn has_name(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let (Ok(certificate), Ok(name)) = (
            ParsedCertificate::try_from(&self.certificate),
            ServerName::try_from(host),
        ) else {
            return false;
        };
        verify_server_name(&certificate, &name).is_ok()
    }
}

/// The contents of a PEM file, and the name of their source.
struct Pem {
    name: String,
    text: String,
}

fn read_pem(
    folder: &Path,
    files: &mut Vec<PathBuf>,
    inline: Option<&str>,
    file: Option<&str>,
    [inline_key, file_key]: [&str; 2],
    secrecy: Secrecy,
) -> Result<Option<Pem>, String> {
    // An empty setting counts as absent, as in Prometheus.
    match (
        inline.filter(|text| !text.is_empty()),
        file.filter(|name| !name.is_empty()),
    ) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(format!(
            "tls_server_config has both {inline_key} and {file_key}; remove one"
        )),
        (Some(text), None) => Ok(Some(Pem {
            name: inline_key.to_owned(),
            text: text.to_owned(),
        })),
        (None, Some(file)) => {
            let path = folder.join(file);
            files.push(path.clone());
            let read = PrivateFile::read(&path, secrecy)
                .map_err(|error| format!("{file_key}: {error}"))?;
            Ok(Some(Pem {
                name: path.display().to_string(),
                text: read.text().to_owned(),
            }))
        }
    }
}

fn select_versions(section: &TlsSection) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let number = |key: &str, text: &Option<String>, default| match text.as_deref() {
        None | Some("") => Ok(default),
        Some("TLS12") => Ok(12),
        Some("TLS13") => Ok(13),
        Some(_) => Err(format!(
            "{key} is not a supported version: use TLS12 or TLS13"
        )),
    };
    let (least, most) = (
        number("min_version", &section.min_version, 12)?,
        number("max_version", &section.max_version, 13)?,
    );
    if least > most {
        return Err(
            "min_version is above max_version, so no version is allowed; change one of them"
                .to_owned(),
        );
    }
    Ok([(12, &TLS12), (13, &TLS13)]
        .into_iter()
        .filter(|(version, _)| (least..=most).contains(version))
        .map(|(_, it)| it)
        .collect())
}

/// The curves. The first name is the one in Go, which the configuration uses, and the second is the
/// one in the TLS library.
const CURVES: [(&str, &str); 3] = [
    ("X25519", "X25519"),
    ("CurveP256", "secp256r1"),
    ("CurveP384", "secp384r1"),
];

fn select_provider(section: &TlsSection) -> Result<CryptoProvider, String> {
    let mut provider = ring::default_provider();
    let is_13 = |suite: CipherSuite| {
        suite
            .as_str()
            .is_some_and(|name| name.starts_with("TLS13_"))
    };
    if !section.cipher_suites.is_empty() {
        // The cipher suites of TLS 1.3 cannot be selected, as in Go.
        let of_12: Vec<_> = provider
            .cipher_suites
            .iter()
            .copied()
            .filter(|suite| !is_13(suite.suite()))
            .collect();
        let name = |suite: CipherSuite| suite.as_str().unwrap_or_default();
        provider.cipher_suites.retain(|suite| is_13(suite.suite()));
        for wanted in section.cipher_suites.iter().filter(|wanted| {
            !wanted.starts_with("TLS_AES_") && !wanted.starts_with("TLS_CHACHA20_")
        }) {
            let found = of_12.iter().find(|suite| {
                name(suite.suite())
                    .strip_suffix("_SHA256")
                    .is_some_and(|short| short == wanted)
                    || name(suite.suite()) == wanted
            });
            let all = || {
                of_12
                    .iter()
                    .map(|suite| name(suite.suite()))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            provider
                .cipher_suites
                .push(*found.ok_or_else(|| unknown_value_error("cipher_suites", wanted, &all()))?);
        }
    }
    if !section.curve_preferences.is_empty() {
        let groups = std::mem::take(&mut provider.kx_groups);
        for wanted in &section.curve_preferences {
            let known = CURVES
                .iter()
                .find(|(name, _)| name == wanted)
                .map(|(_, group)| *group);
            let group = groups.iter().find(|group| {
                group
                    .name()
                    .as_str()
                    .is_some_and(|name| Some(name) == known)
            });
            let all = CURVES.map(|(name, _)| name).join(", ");
            provider.kx_groups.push(
                *group.ok_or_else(|| unknown_value_error("curve_preferences", wanted, &all))?,
            );
        }
    }
    Ok(provider)
}

fn unknown_value_error(key: &str, wanted: &str, all: &str) -> String {
    let wanted = shorten_name(wanted);
    format!("{key}: gpumon does not support '{wanted}'; remove it, or use one or more of {all}")
}

// Client certificates.

/// The maximum number of characters of a name that is shown.
const MAX_SHORT_NAME_CHARS: usize = 64;

/// The accepted client certificates: the setting `client_auth_type`, and the other settings that
/// concern them.
pub(crate) struct ClientCertificates {
    verifier: Arc<dyn ClientCertVerifier>,
    allowed_sans: Vec<String>,
    /// Whether clients must have a certificate.
    pub(crate) is_required: bool,
    /// A digest of all settings that determine whether a certificate is valid.
    pub(crate) authority: Digest,
}

impl ClientCertificates {
    fn new(
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
    pub(crate) fn find_allowed_name(&self, certificate: &CertificateDer<'_>) -> Option<Arc<str>> {
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
    clean_line(name)
        .chars()
        .take(MAX_SHORT_NAME_CHARS)
        .collect()
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
