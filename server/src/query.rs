//! What stands behind the question mark of an address.

use axum::{
    extract::{Query, rejection::QueryRejection},
    http::Uri,
};
use serde::de::DeserializeOwned;

/// Without what has no value: JupyterLab adds the time to each address, so that no answer is an old one.
pub(crate) fn parsed<T: DeserializeOwned>(uri: &Uri) -> Result<T, QueryRejection> {
    let with_values = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|part| part.contains('='));
    let known = format!("/?{}", with_values.collect::<Vec<_>>().join("&"));
    // What was a query is one without some of its parts.
    Query::try_from_uri(&known.parse().unwrap_or_default()).map(|Query(query)| query)
}
