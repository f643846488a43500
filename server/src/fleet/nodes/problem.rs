//! The reasons why a node cannot be shown, with their cures.

use std::io;

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use gpumon_probe::untrusted::escaped;
use thiserror::Error;
use tokio_rustls::rustls::{self, CertificateError};

/// The reason why a node cannot be shown. Messages begin with the node's name.
#[derive(Debug, Error)]
pub(super) enum NodeProblem {
    #[error("no node of the fleet is called so; go back to the fleet, which lists them")]
    Unknown,
    #[error("'{}' is no name of a machine; give the node another label with --node-label, or correct it in Prometheus", escaped(.0))]
    NotAName(String),
    #[error("Prometheus does not tell its port; use --node-url without {{port}}")]
    NoPort,
    /// A reason that the fleet knows.
    #[error("{0}")]
    Unopenable(String),
    #[error(
        "{0} would be reached without encryption; serve TLS there (--web-config), and use --node-url 'https://{{host}}:9123/'"
    )]
    NotEncrypted(String),
    #[error("{0} cannot be reached: {1}; start `gpumon serve` there, or correct --node-url")]
    Unreachable(String, String),
    #[error(
        "{0} has a certificate that is not trusted; name its authority with --node-ca-file FILE"
    )]
    UnknownAuthority(String),
    #[error("{0} has a certificate of another name; use a --node-url with the name that it has")]
    OtherName(String),
    #[error("{0} has a certificate that is not valid: {1}; renew it on the node")]
    Certificate(String, String),
    #[error(
        "{0} does not answer with TLS: {1}; serve TLS there (--web-config), or correct --node-url"
    )]
    NoTls(String, String),
    #[error("{0} sent nothing for {1} s; restart gpumon there")]
    Silent(String, u64),
    #[error("{0} is no server of gpumon: {1}; correct --node-url, or start `gpumon serve` there")]
    NotGpumon(String, String),
    #[error(
        "the answer of {0} is not understood: {1}; install the same version of gpumon there and here"
    )]
    OtherVersion(String, String),
    #[error(
        "the answer of {0} has more than {1} bytes; ask for a shorter span, or for fewer points"
    )]
    TooLong(String, usize),
    #[error(
        "{0} asks for a token or a password, and this server sends none to a host that only Prometheus names; start it \
         with --node-hosts PATTERN, or with --node-ca-file and the nodes' own authority"
    )]
    NotNamed(String),
    #[error("{0}")]
    Settings(String),
    #[error("this server passes on too much at once; close a node, or try again in a few seconds")]
    TooMany,
    #[error("a fleet shows nodes, and changes nothing there; open {0} itself")]
    ReadOnly(String),
    #[error("a fleet does not pass that on; open {0} itself")]
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
    pub(super) fn of_connection(target: &str, error: &io::Error) -> Self {
        let target = target.to_owned();
        let cause = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match cause {
            // A wrong signature means that another authority has the same name.
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
                Self::NoTls(target, "it answers something else".to_owned())
            }
            Some(error) => Self::NoTls(target, error.to_string()),
            None => Self::Unreachable(target, plain(error)),
        }
    }

    /// Returns `true` if the fleet may know the reason better: there is no response, or one from
    /// another program.
    pub(super) fn is_of_address(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(..) | Self::NoTls(..) | Self::NotGpumon(..)
        )
    }

    pub(super) fn answer(&self, node: &str) -> Response {
        (self.status(), format!("{}: {self}\n", escaped(node))).into_response()
    }
}

/// Returns the message without the number of the system's error.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let plain = text.split(" (os error").next().unwrap_or_default();
    plain[..1].to_lowercase() + &plain[1..]
}
