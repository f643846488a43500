//! The endpoint `GET /api/v1/cost`: the cost of a notebook's kernel in a span. JupyterLab shows the
//! cost below a cell.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::State,
    http::{StatusCode, Uri},
};
use gpumon_probe::model::{Cost, StoredCost};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use ts_rs::TS;

use crate::{app::AppState, auth::Client, query, view::View};

/// The maximum wait for the driver's records of the end of a span. They usually arrive within two
/// seconds, but a GPU that does not respond sends none.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The query of `GET /api/v1/cost`: a kernel and a span.
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
) -> Result<Json<KernelCost>, (StatusCode, String)> {
    let bad = |why: String| (StatusCode::BAD_REQUEST, why + "\n");
    let hint = "; use kernel_id, from_ms and, for a span that has ended, to_ms";
    let query: CostQuery =
        query::parse_query(&uri).map_err(|error| bad(error.body_text() + hint))?;
    let span = query::parse_span(query.from_ms, query.to_ms, app.hub.now_ms()).map_err(bad)?;
    let view = View::for_client(&client, app.show_processes).await;
    if query.to_ms.is_some() {
        let _ = timeout(MAX_WAIT, app.hub.wait_for_costs(span.end)).await;
    }
    let cost = app.hub.kernel_cost(&query.kernel_id, &span, &view);
    let stored = StoredCost::from_cost(&cost);
    Ok(Json(KernelCost { cost, stored }))
}
