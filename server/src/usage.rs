//! The endpoint `GET /api/v1/usage`: usage by owner since the server's start, or in a time span.

use std::ops::Range;

use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    app::AppState,
    auth::Client,
    query,
    respond::{JSON_TYPE, Resource, respond_with_resource, to_json},
    view::View,
};

/// The query of `GET /api/v1/usage`. By default, the usage since the server's start is returned.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageQuery {
    /// The start of the span in milliseconds since 1970, rounded down to a quarter of an hour. If
    /// only `to_ms` is given, the span starts with the earliest known usage.
    from_ms: Option<u64>,
    /// The end of the span in milliseconds since 1970, rounded up to a quarter of an hour. If only
    /// `from_ms` is given, the span ends now.
    to_ms: Option<u64>,
}

/// Returns the usage from memory and, for a span, also from disk, without calling the driver.
pub(crate) async fn get_usage(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    query: Result<Query<UsageQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, (StatusCode, String)> {
    let bad = |why: String| (StatusCode::BAD_REQUEST, why + "\n");
    let hint = "; use from_ms and to_ms, or no parameters";
    let Query(query) = query.map_err(|error| bad(error.body_text() + hint))?;
    let span = query.into_span(app.hub.now_ms()).map_err(bad)?;
    let view = View::for_client(&client, app.show_processes).await;
    let of_view = view.clone();
    let subject = Resource::Usage { span: span.clone() };
    let write = move |hub: &crate::hub::Hub| {
        to_json(
            &of_view.filter_usage(span.map_or_else(|| hub.usage(), |span| hub.read_usage(&span))),
        )
    };
    Ok(respond_with_resource(
        &app,
        &headers,
        client.peer_key(),
        view,
        subject,
        JSON_TYPE,
        write,
    )
    .await)
}

impl UsageQuery {
    fn into_span(self, now_ms: u64) -> Result<Option<Range<u64>>, String> {
        if self.from_ms.is_none() && self.to_ms.is_none() {
            return Ok(None);
        }
        query::parse_span(self.from_ms.unwrap_or(0), self.to_ms, now_ms).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_and_end_of_span_are_optional() {
        let of = |from_ms, to_ms| UsageQuery { from_ms, to_ms }.into_span(1000);
        assert_eq!(of(None, None), Ok(None));
        assert_eq!(of(Some(5), None), Ok(Some(5..1000)));
        assert_eq!(of(None, Some(7)), Ok(Some(0..7)));
        assert_eq!(
            of(Some(5), Some(u64::MAX)),
            Ok(Some(5..1000)),
            "nothing is known of the future"
        );
        assert!(
            of(Some(7), Some(7))
                .unwrap_err()
                .contains("from_ms=7 must be before to_ms=7")
        );
    }
}
