//! Parsing of URL queries.

use std::ops::Range;

use axum::{
    extract::{Query, rejection::QueryRejection},
    http::Uri,
};
use serde::de::DeserializeOwned;

/// Parses a query. Keys without a value are ignored, because JupyterLab appends the time to each
/// URL to avoid cached responses.
pub(crate) fn parse_query<T: DeserializeOwned>(uri: &Uri) -> Result<T, QueryRejection> {
    let with_values = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|part| part.contains('='));
    let known = format!("/?{}", with_values.collect::<Vec<_>>().join("&"));
    // Removing some parts leaves a valid query, so this always parses.
    Query::try_from_uri(&known.parse().unwrap_or_default()).map(|Query(query)| query)
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
