//! The endpoints of usage: `GET /api/v1/usage` by owner, `GET /api/v1/cost` by notebook kernel, and
//! `GET /api/v1/jobs`.

use std::{ops::Range, time::Duration};

use axum::{
    Extension, Json,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, Uri},
    response::Response,
};
use gpumon_probe::model::{Cost, StoredCost};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use ts_rs::TS;

use crate::{
    app::AppState,
    auth::Client,
    hub::Hub,
    query::{self, check_query},
    refusal::{Refusal, bad_request},
    responses::{Resource, respond_with_json, to_json},
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

/// Returns the usage by owner from memory and, for a span, also from disk, without calling the
/// driver.
pub(crate) async fn get_usage(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    query: Result<Query<UsageQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let query = check_query(query, "from_ms and to_ms, or no parameters")?;
    let span = query.into_span(app.hub.now_ms()).map_err(bad_request)?;
    let view = View::for_client(&client, app.show_processes).await;
    let subject = Resource::Usage { span: span.clone() };
    let write = move |hub: &Hub, view: &View| {
        let usage = span.map_or_else(|| hub.usage(), |span| hub.read_usage(&span));
        to_json(&view.filter_usage(usage))
    };
    Ok(respond_with_json(&app, &headers, &client, view, subject, write).await)
}

impl UsageQuery {
    fn into_span(self, now_ms: u64) -> Result<Option<Range<u64>>, String> {
        if self.from_ms.is_none() && self.to_ms.is_none() {
            return Ok(None);
        }
        query::parse_span(self.from_ms.unwrap_or(0), self.to_ms, now_ms).map(Some)
    }
}

/// The maximum wait until the costs up to the end of a span are final. The driver's last records of
/// a span usually arrive within two seconds, but a GPU that does not respond sends none.
const MAX_COST_WAIT: Duration = Duration::from_secs(5);

/// The query of `GET /api/v1/cost`: a kernel and a span. JupyterLab shows the cost below a cell.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CostQuery {
    /// The ID of the kernel in Jupyter.
    kernel_id: String,
    /// The start of the span in milliseconds since 1970.
    from_ms: u64,
    /// The end of the span in milliseconds since 1970. The response waits up to 5 s for the
    /// driver's records of the span. By default, the cost until now is returned.
    to_ms: Option<u64>,
}

/// The cost of a notebook's kernel in a span.
#[derive(Debug, Serialize, TS, JsonSchema)]
pub struct KernelCost {
    /// The cost as reported by `gpumon run`, but without activity, links, conditions, driver errors
    /// and marks.
    pub cost: Cost,
    /// The same cost in the form stored in notebooks, without the run; `null` if no GPU was held.
    pub stored: Option<StoredCost>,
}

/// Returns the kernel's cost from memory. A kernel that the client may not see has the same
/// response as a kernel without GPUs.
pub(crate) async fn get_cost(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    uri: Uri,
) -> Result<Json<KernelCost>, Refusal> {
    let hint = "kernel_id, from_ms and, for a span that has ended, to_ms";
    let query: CostQuery = query::parse_query(&uri, hint)?;
    let span =
        query::parse_span(query.from_ms, query.to_ms, app.hub.now_ms()).map_err(bad_request)?;
    let view = View::for_client(&client, app.show_processes).await;
    if query.to_ms.is_some() {
        let _ = timeout(MAX_COST_WAIT, app.hub.wait_for_final_costs(span.end)).await;
    }
    let cost = app.hub.kernel_cost(&query.kernel_id, &span, &view);
    let stored = StoredCost::from_cost(&cost);
    Ok(Json(KernelCost { cost, stored }))
}

/// The query of `GET /api/v1/jobs`: a job.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobsQuery {
    /// The ID or name of a job; by default, all jobs are returned.
    id: Option<String>,
}

/// Returns jobs, their GPUs and the times of use from memory and disk, without calling the driver.
pub(crate) async fn get_jobs(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    query: Result<Query<JobsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let JobsQuery { id } = check_query(query, "id, or no parameter")?;
    let view = View::for_client(&client, app.show_processes).await;
    let subject = Resource::Jobs { id: id.clone() };
    let write =
        move |hub: &Hub, view: &View| to_json(&view.filter_jobs(hub.read_jobs(id.as_deref())));
    Ok(respond_with_json(&app, &headers, &client, view, subject, write).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_query_may_omit_start_or_end() {
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
