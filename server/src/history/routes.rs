//! The endpoint `GET /api/v1/history`: a span of history with a limited number of points.

use std::ops::Range;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, Uri},
    response::Response,
};
use gpumon_history::span::{HistoryQuery, MetricSelection, POINT_LIMITS, SpanRequest};

use super::RETENTION_MS;
use crate::{
    app::AppState,
    auth::Client,
    hub::Hub,
    query,
    refusal::{Refusal, bad_request},
    responses::{Resource, respond_with_json, to_json},
    view::View,
};

/// The default number of points, enough for a chart that is as wide as a screen.
const DEFAULT_POINTS: u32 = 600;

/// Returns a span of history from memory and disk, without calling the driver.
pub(crate) async fn get_history(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let hint = "from_ms, to_ms, metrics, and either points or resolution_ms, or no parameters";
    let query: HistoryQuery = query::parse_query(&uri, hint)?;
    let request = resolve_span(&query, app.hub.now_ms()).map_err(bad_request)?;
    let view = View::for_client(&client, app.show_processes).await;
    let SpanRequest {
        from_ms,
        to_ms,
        points,
        resolution_ms,
        ..
    } = request;
    let subject = Resource::History {
        from_ms,
        to_ms,
        points,
        resolution_ms,
        metrics: request.wanted.ids(),
    };
    let write = move |hub: &Hub, view: &View| to_json(&view.filter_span(hub.read_span(&request)));
    Ok(respond_with_json(&app, &headers, &client, view, subject, write).await)
}

/// Returns the span that the query requests at the time `now_ms`, or the reason why the query is
/// not valid.
fn resolve_span(query: &HistoryQuery, now_ms: u64) -> Result<SpanRequest, String> {
    let newest_ms = query.to_ms.unwrap_or(now_ms).min(now_ms);
    let from_ms = query
        .from_ms
        .unwrap_or(newest_ms.saturating_sub(RETENTION_MS));
    let Range {
        start: from_ms,
        end: to_ms,
    } = query::parse_span(from_ms, query.to_ms, now_ms)?;
    let (least, most) = POINT_LIMITS.into_inner();
    let points = query.points.unwrap_or(DEFAULT_POINTS);
    if !POINT_LIMITS.contains(&points) {
        return Err(format!(
            "points={points} is out of range; use {least} to {most}"
        ));
    }
    if let Some(resolution_ms) = query.resolution_ms {
        let many = (to_ms - from_ms)
            .checked_div(resolution_ms)
            .unwrap_or(u64::MAX);
        if many > most.into() {
            return Err(format!(
                "resolution_ms={resolution_ms} gives more than {most} points in this span; use a \
                 shorter span, or at least {} ms",
                (to_ms - from_ms).div_ceil(most.into())
            ));
        }
    }
    let wanted = match &query.metrics {
        None => MetricSelection::select_overview(),
        Some(ids) => {
            let (wanted, reported) = MetricSelection::parse_names(ids.split(','));
            reported?;
            wanted
        }
    };
    if wanted.holders {
        let reach_s = RETENTION_MS / 1000;
        return Err(format!(
            "the memory of processes is kept for only {reach_s} s and is not part of this \
             history; request it in a history frame, or with \
             /api/v1/snapshot?history_s={reach_s}&metrics=processes.memory_bytes"
        ));
    }
    Ok(SpanRequest {
        from_ms,
        to_ms,
        points,
        resolution_ms: query.resolution_ms,
        wanted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 10_000_000;

    #[test]
    fn default_span_is_overview_of_ten_minutes() {
        let request = resolve_span(&HistoryQuery::default(), NOW_MS).unwrap();
        assert_eq!(
            (request.from_ms, request.to_ms, request.points),
            (NOW_MS - 600_000, NOW_MS, 600)
        );
        assert_eq!(
            request.wanted.ids(),
            MetricSelection::select_overview().ids()
        );
    }

    #[test]
    fn invalid_query_is_refused_with_advice() {
        let query = |from_ms, to_ms, metrics: Option<&str>, points| {
            let metrics = metrics.map(ToOwned::to_owned);
            let query = HistoryQuery {
                from_ms,
                to_ms,
                metrics,
                points,
                resolution_ms: None,
            };
            resolve_span(&query, NOW_MS)
        };
        for (query, words) in [
            (
                query(Some(5), Some(5), None, None),
                "from_ms=5 must be before to_ms=5",
            ),
            (
                query(Some(NOW_MS + 1), None, None, None),
                "the current time is 10000000",
            ),
            (query(None, None, None, Some(0)), "1 to 5000"),
            (query(None, None, None, Some(5001)), "1 to 5000"),
            (
                query(None, None, Some("power.drwa"), None),
                "unknown metric 'power.drwa'; use one or more of",
            ),
            (
                query(None, None, Some("processes.memory_bytes"), None),
                "snapshot?history_s=600",
            ),
        ] {
            let error = query.unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let fine = |resolution_ms| {
            let query = HistoryQuery {
                from_ms: Some(0),
                resolution_ms: Some(resolution_ms),
                ..HistoryQuery::default()
            };
            resolve_span(&query, NOW_MS)
        };
        assert_eq!(fine(2000).unwrap().resolution_ms, Some(2000));
        for resolution_ms in [0, 1999] {
            assert!(
                fine(resolution_ms)
                    .unwrap_err()
                    .contains("use a shorter span, or at least 2000 ms"),
                "{resolution_ms}"
            );
        }
        let asked = |query: &str| {
            let uri = format!("/api/v1/history?{query}").parse().unwrap();
            query::parse_query::<HistoryQuery>(&uri, "")
        };
        assert_eq!(
            asked("from_ms=5&points=9&1795493859530").unwrap().points,
            Some(9),
            "as JupyterLab asks"
        );
        assert!(
            asked("").is_ok()
                && asked("form_ms=5")
                    .unwrap_err()
                    .1
                    .contains("unknown field `form_ms`")
        );
        let future = query(None, Some(u64::MAX), Some("mig.memory.used_bytes"), None).unwrap();
        assert_eq!(
            (future.from_ms, future.to_ms),
            (NOW_MS - 600_000, NOW_MS),
            "nothing is known of it"
        );
    }
}
