//! The reasons why a node cannot be shown, and their remedies.

use std::io;

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use gpumon_probe::untrusted::escape_untrusted;
use thiserror::Error;
use tokio_rustls::rustls::{self, CertificateError};

/// The reason why a node cannot be shown. Messages begin with the node's name.
#[derive(Debug, Error)]
pub(super) enum NodeProblem {
    #[error("the fleet has no node with this name; go back to the fleet for the list of nodes")]
    Unknown,
    #[error("'{}' is not a valid host name; choose another label for the names of nodes with \
     --node-label, or correct the name in Prometheus", escape_untrusted(.0))]
    NotAName(String),
    #[error("Prometheus does not report the node's port; use --node-url without {{port}}")]
    NoPort,
    /// A reason that the fleet's data already contains.
    #[error("{0}")]
    Unopenable(String),
    #[error(
        "the connection to {0} would not be encrypted; set up TLS there (--web-config), and use \
         --node-url 'https://{{host}}:9123/'"
    )]
    NotEncrypted(String),
    #[error("{0} cannot be reached: {1}; start `gpumon serve` there, or correct --node-url")]
    Unreachable(String, String),
    #[error(
        "{0} has an untrusted certificate; specify its certificate authority with --node-ca-file \
         FILE"
    )]
    UnknownAuthority(String),
    #[error(
        "{0} has a certificate for another name; use a --node-url with the name in the certificate"
    )]
    OtherName(String),
    #[error("{0} has an invalid certificate: {1}; renew it on the node")]
    Certificate(String, String),
    #[error(
        "{0} does not respond with TLS: {1}; set up TLS there (--web-config), or correct --node-url"
    )]
    NoTls(String, String),
    #[error("{0} sent nothing for {1} s; restart gpumon there")]
    Silent(String, u64),
    #[error("{0} is not a gpumon server: {1}; correct --node-url, or start `gpumon serve` there")]
    NotGpumon(String, String),
    #[error(
        "the response from {0} cannot be parsed: {1}; install the same version of gpumon on both \
         machines"
    )]
    OtherVersion(String, String),
    #[error(
        "the response from {0} has more than {1} bytes; request a shorter span or fewer points"
    )]
    TooLong(String, usize),
    #[error(
        "{0} requires a token or a password, but this server sends no credentials to hosts that \
         are known only from Prometheus; start this server with --node-hosts PATTERN, or with \
         --node-ca-file and the nodes' own certificate authority"
    )]
    NotNamed(String),
    #[error("{0}")]
    Settings(String),
    #[error(
        "this server is forwarding too many requests to nodes; close the page of a node, or \
     try again in a few seconds"
    )]
    TooMany,
    #[error("nodes cannot be changed through a fleet; open {0} directly")]
    ReadOnly(String),
    #[error("a fleet does not forward this request; open {0} directly")]
    NotPassedOn(String),
}

impl NodeProblem {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Unknown | Self::NotAName(_) | Self::NotPassedOn(_) => StatusCode::NOT_FOUND,
            Self::ReadOnly(_) => StatusCode::FORBIDDEN,
            Self::TooMany => StatusCode::SERVICE_UNAVAILABLE,
            Self::Silent(..) => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        }
    }

    /// Returns the problem for a connection that could not be opened.
    pub(super) fn from_connection_error(target: &str, error: &io::Error) -> Self {
        let target = target.to_owned();
        let cause = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match cause {
            // A wrong signature means that the certificate is from an authority that has the same
            // name as a trusted one, but is a different one.
            Some(rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            )) => Self::UnknownAuthority(target),
            Some(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Self::OtherName(target),
            Some(rustls::Error::InvalidCertificate(error)) => {
                Self::Certificate(target, error.to_string())
            }
            Some(rustls::Error::InvalidMessage(_)) => {
                Self::NoTls(target, "it sent data that is not TLS".to_owned())
            }
            Some(error) => Self::NoTls(target, error.to_string()),
            None => Self::Unreachable(target, strip_error_number(error)),
        }
    }

    /// Returns `true` if there was no response, or one from another program. The fleet's data may
    /// then contain a more precise reason.
    pub(super) fn may_be_wrong_address(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(..) | Self::NoTls(..) | Self::NotGpumon(..)
        )
    }

    pub(super) fn respond(&self, node: &str) -> Response {
        (
            self.status(),
            format!("{}: {self}\n", escape_untrusted(node)),
        )
            .into_response()
    }
}

/// Returns the error message without the system's error number.
fn strip_error_number(error: &io::Error) -> String {
    let text = error.to_string();
    let plain = text.split(" (os error").next().unwrap_or_default();
    plain[..1].to_lowercase() + &plain[1..]
}
