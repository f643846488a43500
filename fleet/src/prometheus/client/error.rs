//! The reasons why a query fails, as sentences with remedies.

use std::{error::Error, time::Duration};

use gpumon_probe::owner::clean_line;
use hyper::StatusCode;

/// The reason why a query has failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::prometheus) enum QueryError {
    #[error("{0}")]
    Credentials(String),
    #[error(
        "Prometheus cannot be reached at {address}: {cause}. Check its address, and that it runs"
    )]
    Unreachable { address: String, cause: String },
    #[error(
        "Prometheus at {address} has not answered within {} s. It is overloaded, or something between drops requests; \
         look at its own metrics, or permit more time",
        .limit.as_secs_f64()
    )]
    Slow { address: String, limit: Duration },
    #[error(
        "Prometheus at {address} does not let this server in ({status}). Check the file with the token or password, the \
         client certificate, and the tenant's header"
    )]
    Refused { address: String, status: StatusCode },
    #[error(
        "{address} sends requests elsewhere ({status}), to {to}. Give the address at which Prometheus itself answers"
    )]
    Elsewhere {
        address: String,
        status: StatusCode,
        to: String,
    },
    #[error(
        "there is no API of Prometheus at {address} ({status}). Give the address below which /api/v1/query is"
    )]
    NotThere { address: String, status: StatusCode },
    #[error("Prometheus at {address} refuses a query ({status}): {message}")]
    Rejected {
        address: String,
        status: StatusCode,
        message: String,
    },
    #[error(
        "what answers at {address} is not Prometheus: {cause}. Give the address below which /api/v1/query is"
    )]
    NotPrometheus { address: String, cause: String },
    #[error(
        "the answer of Prometheus at {address} is larger than {} MiB. Choose fewer nodes by a label, or load the \
         recording rules",
        .most >> 20
    )]
    TooLarge { address: String, most: usize },
}

impl QueryError {
    /// Returns `true` if other queries would fail for the same reason.
    pub(in crate::prometheus) fn is_of_all(&self) -> bool {
        !matches!(self, Self::Rejected { .. } | Self::TooLarge { .. })
    }
}

/// Formats an error with its causes, without repetitions.
pub(super) fn causes(error: &dyn Error) -> String {
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
