//! The endpoints of the current data: `GET /api/v1/snapshot`, with recent history on request, and
//! `GET /api/v1/answers` for programs that output the driver's own terms.

use std::ops::RangeInclusive;

use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use gpumon_history::span::MetricSelection;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    app::AppState,
    auth::Client,
    hub::{Hub, SnapshotParts},
    join::client,
    query::check_query,
    refusal::{Refusal, bad_request},
    responses::{Resource, respond_with_json, to_json},
    view::View,
};

/// The valid lengths of the history in seconds.
const HISTORY_LIMITS_S: RangeInclusive<u64> = 1..=600;

/// The query of `GET /api/v1/snapshot`: the optional parts of the snapshot.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotQuery {
    /// The length of the history to include, in seconds.
    #[schemars(range(min = *HISTORY_LIMITS_S.start(), max = *HISTORY_LIMITS_S.end()))]
    history_s: Option<u64>,
    /// Comma-separated metrics of the history; by default, all metrics with a chart.
    metrics: Option<String>,
    /// Whether to leave out details and events.
    #[serde(default)]
    brief: bool,
}

/// Returns a snapshot from memory, without calling the driver.
pub(crate) async fn get_snapshot(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    query: Result<Query<SnapshotQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let query = check_query(query, "history_s, metrics and brief, or no parameters")?;
    let parts = query
        .into_parts(View::for_client(&client, app.show_processes).await)
        .map_err(bad_request)?;
    let subject = Resource::Snapshot {
        history_ms: parts.history_ms,
        metrics: parts.wanted.ids(),
        brief: parts.brief,
    };
    app.watching.add_temporary_viewer();
    let view = parts.view.clone();
    let write = move |hub: &Hub, _: &View| to_json(&hub.take_snapshot(&parts));
    Ok(respond_with_json(&app, &headers, &client, view, subject, write).await)
}

impl SnapshotQuery {
    fn into_parts(self, view: View) -> Result<SnapshotParts, String> {
        let (shortest, longest) = HISTORY_LIMITS_S.into_inner();
        if self
            .history_s
            .is_some_and(|seconds| !(shortest..=longest).contains(&seconds))
        {
            return Err(format!(
                "history_s is out of range; use ?history_s= with {shortest} to {longest}"
            ));
        }
        let wanted = match &self.metrics {
            None => MetricSelection::select_gpu_charts(),
            Some(ids) => {
                let (wanted, reported) = MetricSelection::parse_names(ids.split(','));
                reported?;
                wanted
            }
        };
        Ok(SnapshotParts {
            history_ms: self.history_s.map(|seconds| seconds * 1000),
            wanted,
            brief: self.brief,
            view,
        })
    }
}

/// Returns the driver's answers at the newest sample from the hub, without calling the driver.
pub(crate) async fn get_answers(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
) -> Response {
    let view = View::for_client(&client, app.show_processes).await;
    if !view.shows_other_users() {
        let message = "the driver's responses contain the processes of all users, but this server \
                       shows each client only the client's own processes\n";
        return (StatusCode::FORBIDDEN, message).into_response();
    }
    app.watching.add_temporary_viewer();
    app.hub.refresh_driver_answers().await;
    let write = |hub: &Hub, _: &View| {
        let theirs = hub
            .joined_socket()
            .and_then(|socket| client::fetch_body(&socket, "/api/v1/answers").ok());
        theirs.map_or_else(|| to_json(&hub.driver_answers()), String::into_bytes)
    };
    respond_with_json(&app, &headers, &client, view, Resource::Answers, write).await
}

#[cfg(test)]
mod tests {
    use gpumon_history::span::DeviceKind;
    use gpumon_probe::model::fields::{GPU_FIELDS, charted_fields};

    use super::*;

    fn parse_parts(history_s: Option<u64>, metrics: Option<&str>) -> Result<SnapshotParts, String> {
        SnapshotQuery {
            history_s,
            metrics: metrics.map(ToOwned::to_owned),
            brief: true,
        }
        .into_parts(View::Whole)
    }

    #[test]
    fn invalid_query_is_refused_with_advice() {
        assert!(
            parse_parts(Some(601), None)
                .err()
                .unwrap()
                .contains("1 to 600")
        );
        let error = parse_parts(None, Some("power.draw_watts,power.drwa"))
            .err()
            .unwrap();
        assert!(
            error.contains("'power.drwa'") && error.contains("power.draw_watts"),
            "{error}"
        );
    }

    #[test]
    fn only_named_metrics_are_returned() {
        let parts = parse_parts(Some(60), Some("memory.used_bytes")).unwrap();
        assert_eq!(
            (
                parts.history_ms,
                parts.wanted.metrics_for(DeviceKind::Gpu).len(),
                parts.brief
            ),
            (Some(60_000), 1, true)
        );
        assert_eq!(
            parse_parts(None, None)
                .unwrap()
                .wanted
                .metrics_for(DeviceKind::Gpu)
                .len(),
            charted_fields(GPU_FIELDS).count()
        );
    }
}
