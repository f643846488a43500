//! Query errors, described as sentences with remedies.

use std::{error::Error, time::Duration};

use gpumon_probe::owner::clean_line;
use hyper::StatusCode;

/// The reason why a query has failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::prometheus) enum QueryError {
    #[error("{0}")]
    Credentials(String),
    #[error(
        "Prometheus cannot be reached at {address}: {cause}. Check the address, and that \
         Prometheus is running"
    )]
    Unreachable { address: String, cause: String },
    #[error(
        "Prometheus at {address} did not respond within {} s. It may be overloaded, or a proxy \
         may drop requests; check its own metrics and the log of the proxy",
        .limit.as_secs_f64()
    )]
    Slow { address: String, limit: Duration },
    #[error(
        "Prometheus at {address} denies access to this server ({status}). Check the file with the \
         token or password, the client certificate, and the tenant header"
    )]
    Refused { address: String, status: StatusCode },
    #[error(
        "{address} redirects requests ({status}) to {to}. Specify the address of Prometheus itself"
    )]
    Elsewhere {
        address: String,
        status: StatusCode,
        to: String,
    },
    #[error(
        "there is no Prometheus API at {address} ({status}). Specify the part of the address \
         before /api/v1/query"
    )]
    NotThere { address: String, status: StatusCode },
    #[error("Prometheus at {address} rejected a query ({status}): {message}")]
    Rejected {
        address: String,
        status: StatusCode,
        message: String,
    },
    #[error(
        "the server at {address} is not Prometheus: {cause}. Specify the part of the address \
         before /api/v1/query"
    )]
    NotPrometheus { address: String, cause: String },
    #[error(
        "the response from Prometheus at {address} is larger than {} MiB. Select fewer nodes \
         with a label, or load the recording rules in deploy/prometheus/fleet.yml",
        .most >> 20
    )]
    TooLarge { address: String, most: usize },
}

impl QueryError {
    /// Returns `true` if other queries would fail for the same reason.
    pub(in crate::prometheus) fn affects_all_queries(&self) -> bool {
        !matches!(self, Self::Rejected { .. } | Self::TooLarge { .. })
    }
}

/// Formats an error and its chain of causes, without repetitions.
pub(super) fn format_causes(error: &dyn Error) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let cause = error.to_string();
        if !text.contains(&cause) {
            let separator = if text.is_empty() { "" } else { ": " };
            text.push_str(separator);
            text.push_str(&cause);
        }
        next = error.source();
    }
    clean_line(&text)
}
