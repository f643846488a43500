//! The endpoint `GET /api/v1/snapshot`: the current data, and recent history on request.

use std::ops::RangeInclusive;

use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use gpumon_history::wanted::Wanted;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    app::AppState,
    auth::Client,
    respond::{JSON, Resource, respond, to_json},
    snapshot_parts::SnapshotParts,
    view::View,
};

/// The valid lengths of the history in seconds.
const HISTORY_S: RangeInclusive<u64> = 1..=600;

/// The query of `GET /api/v1/snapshot`: optional parts of the snapshot.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotQuery {
    /// The length of the history to include, in seconds.
    #[schemars(range(min = *HISTORY_S.start(), max = *HISTORY_S.end()))]
    history_s: Option<u64>,
    /// Comma-separated metrics of the history; by default, all metrics with a chart.
    metrics: Option<String>,
    /// Whether to leave out details and events.
    #[serde(default)]
    brief: bool,
}

/// Returns a snapshot from memory, without waiting for the driver.
pub(crate) async fn snapshot(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    query: Result<Query<SnapshotQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, (StatusCode, String)> {
    let bad = |why: String| (StatusCode::BAD_REQUEST, why + "\n");
    let hint = "; ask for history_s, metrics and brief, or nothing";
    let Query(query) = query.map_err(|error| bad(error.body_text() + hint))?;
    let parts = query
        .understood(View::of(&client, app.show_processes).await)
        .map_err(bad)?;
    let subject = Resource::Snapshot {
        history_ms: parts.history_ms,
        metrics: parts.wanted.ids(),
        brief: parts.brief,
    };
    app.watching.look();
    let view = parts.view.clone();
    Ok(respond(
        &app,
        &headers,
        client.who(),
        view,
        subject,
        JSON,
        move |hub| to_json(&hub.snapshot(&parts)),
    )
    .await)
}

impl SnapshotQuery {
    fn understood(self, view: View) -> Result<SnapshotParts, String> {
        let (shortest, longest) = HISTORY_S.into_inner();
        if self
            .history_s
            .is_some_and(|seconds| !(shortest..=longest).contains(&seconds))
        {
            return Err(format!(
                "no such history; ask for ?history_s= {shortest} to {longest}"
            ));
        }
        let wanted = match &self.metrics {
            None => Wanted::of_gpus(),
            Some(ids) => {
                let (wanted, told) = Wanted::named(ids.split(','));
                told?;
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

#[cfg(test)]
mod tests {
    use gpumon_history::wanted::DeviceKind;
    use gpumon_probe::model::fields::{GPU_FIELDS, charted};

    use super::*;

    fn understood(history_s: Option<u64>, metrics: Option<&str>) -> Result<SnapshotParts, String> {
        SnapshotQuery {
            history_s,
            metrics: metrics.map(ToOwned::to_owned),
            brief: true,
        }
        .understood(View::Whole)
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_is() {
        assert!(
            understood(Some(601), None)
                .err()
                .unwrap()
                .contains("1 to 600")
        );
        let error = understood(None, Some("power.draw_watts,power.drwa"))
            .err()
            .unwrap();
        assert!(
            error.contains("'power.drwa'") && error.contains("power.draw_watts"),
            "{error}"
        );
    }

    #[test]
    fn only_the_metrics_that_were_named_are_given() {
        let parts = understood(Some(60), Some("memory.used_bytes")).unwrap();
        assert_eq!(
            (
                parts.history_ms,
                parts.wanted.metrics_of(DeviceKind::Gpu).len(),
                parts.brief
            ),
            (Some(60_000), 1, true)
        );
        assert_eq!(
            understood(None, None)
                .unwrap()
                .wanted
                .metrics_of(DeviceKind::Gpu)
                .len(),
            charted(GPU_FIELDS).count()
        );
    }
}
