//! `GET /api/v1/cost`: the cost of a notebook's kernel in a span, for the line below a cell.

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

/// The driver's records of the end of a span come within two seconds. A GPU that does not answer is
/// not waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The kernel, and the span.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CostQuery {
    /// Jupyter's ID of the kernel.
    kernel_id: String,
    /// The beginning of the span, in milliseconds since 1970.
    from_ms: u64,
    /// Its end: the answer waits up to 5 s for the driver's records of it. By default, the cost
    /// until now.
    to_ms: Option<u64>,
}

/// The cost of a kernel in a span.
#[derive(Debug, Serialize, TS, JsonSchema)]
pub struct KernelCost {
    /// As of `gpumon run`. Activity, links, conditions, driver errors and marks are left out.
    pub cost: Cost,
    /// The same in the form that notebooks store, without the run; `null` if no GPU was held.
    pub stored: Option<StoredCost>,
}

/// Answers from memory. A kernel that the client may not see is answered as one that holds no GPU.
pub(crate) async fn answer_cost(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    uri: Uri,
) -> Result<Json<KernelCost>, (StatusCode, String)> {
    let bad = |why: String| (StatusCode::BAD_REQUEST, why + "\n");
    let hint = "; ask for kernel_id, from_ms and, of what has ended, to_ms";
    let query: CostQuery = query::parsed(&uri).map_err(|error| bad(error.body_text() + hint))?;
    let span = query::parse_span(query.from_ms, query.to_ms, app.hub.now_ms()).map_err(bad)?;
    let view = View::of(&client, app.show_processes).await;
    if query.to_ms.is_some() {
        let _ = timeout(LONGEST_WAIT, app.hub.wait_for_costs(span.end)).await;
    }
    let cost = app.hub.kernel_cost(&query.kernel_id, &span, &view);
    let stored = StoredCost::new(&cost);
    Ok(Json(KernelCost { cost, stored }))
}
