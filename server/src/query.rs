//! Parsing of URL queries.

use std::ops::Range;

use axum::{
    extract::{Query, rejection::QueryRejection},
    http::Uri,
};
use serde::de::DeserializeOwned;

use crate::refusal::{Refusal, bad_request};

/// Parses a query. Keys without a value are ignored, because JupyterLab appends the time to each
/// URL to avoid cached responses.
///
/// # Errors
/// Returns a refusal that mentions `hint` if the query is not valid.
pub(crate) fn parse_query<T: DeserializeOwned>(uri: &Uri, hint: &str) -> Result<T, Refusal> {
    let with_values = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|part| part.contains('='));
    let known = format!("/?{}", with_values.collect::<Vec<_>>().join("&"));
    // Removing some parts leaves a valid query, so this always parses.
    check_query(
        Query::try_from_uri(&known.parse().unwrap_or_default()),
        hint,
    )
}

/// Returns the parsed query.
///
/// # Errors
/// Returns a refusal that mentions `hint` if the query is not valid.
pub(crate) fn check_query<T>(
    query: Result<Query<T>, QueryRejection>,
    hint: &str,
) -> Result<T, Refusal> {
    query
        .map(|Query(query)| query)
        .map_err(|error| bad_request(format!("{}; use {hint}", error.body_text())))
}

/// Returns the span that a query requests, limited to the present.
///
/// # Errors
/// Returns an error if the span does not begin before it ends.
pub(crate) fn parse_span(
    from_ms: u64,
    to_ms: Option<u64>,
    now_ms: u64,
) -> Result<Range<u64>, String> {
    let to_ms = to_ms.unwrap_or(now_ms).min(now_ms);
    if from_ms >= to_ms {
        let times = "both are milliseconds since 1970-01-01 UTC";
        return Err(format!(
            "from_ms={from_ms} must be before to_ms={to_ms}; {times}, and the current time is \
             {now_ms}"
        ));
    }
    Ok(from_ms..to_ms)
}
