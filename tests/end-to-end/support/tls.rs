//! Certificates for tests, and a client that uses TLS.

use std::{
    fs::{self, Permissions},
    io,
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    version::{TLS12, TLS13},
};

use super::{
    TEST_TIMEOUT,
    http::{HttpResponse, try_exchange},
};

/// A certificate authority for tests.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key in PEM format.
pub(crate) struct Identity {
    certificate: String,
    key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters
            .distinguished_name
            .push(DnType::CommonName, "tests of gpumon");
        Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for a server or client with these names. The first is the common name.
    pub(crate) fn issue_identity(&self, names: &[&str]) -> Identity {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut parameters = CertificateParams::new(names.clone()).unwrap();
        parameters
            .distinguished_name
            .push(DnType::CommonName, names[0].clone());
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.0).unwrap();
        Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// Returns a client that trusts this authority, presents this certificate and supports these
    /// versions.
    pub(crate) fn make_client_with(
        &self,
        own: Option<&Identity>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> TlsClient {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.pem().as_bytes()).unwrap())
            .unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        TlsClient(Arc::new(match own {
            None => config.with_no_client_auth(),
            Some(Identity { certificate, key }) => {
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                config
                    .with_client_auth_cert(vec![certificate], key)
                    .unwrap()
            }
        }))
    }

    pub(crate) fn make_client(&self) -> TlsClient {
        self.make_client_with(None, &[&TLS12, &TLS13])
    }
}

impl Identity {
    /// Writes `server.crt` and `server.key`.
    pub(crate) fn write_files(&self, folder: &Path) {
        write_secret(&folder.join("server.key"), &self.key);
        replace_file(&folder.join("server.crt"), &self.certificate, 0o644);
    }
}

pub(crate) struct TlsClient(Arc<ClientConfig>);

pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

impl TlsClient {
    pub(crate) fn connect(&self, port: u16) -> TlsStream {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let connection =
            ClientConnection::new(Arc::clone(&self.0), "localhost".try_into().unwrap()).unwrap();
        StreamOwned::new(connection, stream)
    }

    /// Sends a request such as `GET /path` with these headers. Returns an error if the connection
    /// fails.
    pub(crate) fn try_request(
        &self,
        port: u16,
        request: &str,
        headers: &[&str],
        body: &str,
    ) -> io::Result<HttpResponse> {
        try_exchange(
            self.connect(port),
            request,
            &format!("localhost:{port}"),
            headers,
            body,
        )
    }

    pub(crate) fn send_request(&self, port: u16, request: &str, headers: &[&str]) -> HttpResponse {
        self.try_request(port, request, headers, "").unwrap()
    }
}

/// Replaces a file atomically, like programs that renew certificates.
pub(crate) fn replace_file(path: &Path, text: &str, mode: u32) {
    let new = PathBuf::from(format!("{}.new", path.display()));
    fs::write(&new, text).unwrap();
    fs::set_permissions(&new, Permissions::from_mode(mode)).unwrap();
    fs::rename(&new, path).unwrap();
}

pub(crate) fn write_secret(path: &Path, text: &str) {
    replace_file(path, text, 0o600);
}
