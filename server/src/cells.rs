//! The endpoint `POST /api/v1/cells`, to which a Jupyter front end reports a notebook cell's use of
//! GPUs. The cell appears in the charts of all clients and in the history. Other users do not see
//! the notebook's name.
//!
//! The client needs permission to start runs, as for marks. The cell's code is not sent.

use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    middleware,
    routing::post,
};
use gpumon_probe::{
    model::{Cell, Event, EventKind, now_ms},
    owner::clean_line,
};
use tokio::time::Instant;

use crate::{app::AppState, auth::Client, history::RETENTION_MS, marks::MARK_RATE, runs};

/// The maximum size of a request in bytes.
const MAX_BODY_BYTES: usize = 8192;
/// The maximum number of characters of a file name.
const MAX_NAME_CHARS: usize = 255;
/// The maximum number of characters in an ID. Jupyter uses UUIDs for kernels, but cells can have
/// other IDs.
const MAX_ID_CHARS: usize = 64;
const MAX_GPUS: usize = 64;
/// How far a kernel's clock may be ahead of the server's clock, in milliseconds.
const MAX_CLOCK_ADVANCE_MS: u64 = 1000;

pub(crate) fn build_router(app: &AppState) -> Router<AppState> {
    let may_run = middleware::from_fn_with_state(app.clone(), runs::require_run_permission);
    Router::new()
        .route("/api/v1/cells", post(post_cell).route_layer(may_run))
        .route_layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// Records a cell, and returns its event.
async fn post_cell(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    body: Bytes,
) -> Result<(StatusCode, Json<Event>), (StatusCode, String)> {
    let mut cell =
        parse_cell(&body, now_ms()).map_err(|why| (StatusCode::BAD_REQUEST, why + "\n"))?;
    if app
        .event_limit
        .admit("cell", MARK_RATE, Instant::now())
        .is_err()
    {
        let message = format!(
            "too many cells: at most {} are accepted at once, then one per second\n",
            MARK_RATE.burst
        );
        return Err((StatusCode::TOO_MANY_REQUESTS, message));
    }
    cell.user = client.user().await;
    let event = Event {
        at_ms: cell.ended_ms,
        gpu: None,
        what: EventKind::Cell(cell),
    };
    app.hub.add_event(event.clone());
    Ok((StatusCode::CREATED, Json(event)))
}

/// Parses and checks a cell.
///
/// # Errors
/// Returns what is wrong with the cell, and the valid values.
fn parse_cell(body: &[u8], now_ms: u64) -> Result<Cell, String> {
    let mut cell: Cell =
        serde_json::from_slice(body).map_err(|error| format!("invalid cell: {error}"))?;
    for (key, text, most) in [
        ("notebook", &mut cell.notebook, MAX_NAME_CHARS),
        ("kernel_id", &mut cell.kernel_id, MAX_ID_CHARS),
        ("cell_id", &mut cell.cell_id, MAX_ID_CHARS),
    ] {
        let length = text.chars().count();
        if !(1..=most).contains(&length) {
            return Err(format!(
                "invalid cell: {key} must have 1 to {most} characters, but has {length}"
            ));
        }
        *text = clean_line(text);
    }
    let latest_ms = now_ms + MAX_CLOCK_ADVANCE_MS;
    if !(now_ms.saturating_sub(RETENTION_MS)..=latest_ms).contains(&cell.ended_ms)
        || cell.started_ms > cell.ended_ms
    {
        let (started_ms, ended_ms, depth_s) = (cell.started_ms, cell.ended_ms, RETENTION_MS / 1000);
        return Err(format!(
            "invalid cell: the execution from {started_ms} to {ended_ms} (milliseconds since 1970) \
             must have ended within the last {depth_s} s"
        ));
    }
    if !(1..=MAX_GPUS).contains(&cell.gpus.len()) {
        return Err(format!(
            "invalid cell: it must have used 1 to {MAX_GPUS} GPUs, not {}",
            cell.gpus.len()
        ));
    }
    cell.ended_ms = cell.ended_ms.min(now_ms);
    cell.started_ms = cell.started_ms.min(cell.ended_ms);
    Ok(cell)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW_MS: u64 = 1_000_000;

    fn make_cell() -> Value {
        json!({
            "notebook": "train.ipynb", "kernel_id": "k", "cell_id": "c", "execution_count": 3, "started_ms": 980_000,
            "ended_ms": 999_000, "gpus": [0], "gpu_ms": 9000.5, "peak_bytes": 1e9, "change_bytes": -5e6, "joules": null,
            "shared": false,
        })
    }

    fn parse_cell_with(key: &str, value: Value) -> Result<Cell, String> {
        let mut cell = make_cell();
        cell[key] = value;
        parse_cell(cell.to_string().as_bytes(), NOW_MS)
    }

    #[test]
    fn cell_has_clean_names_and_recent_time() {
        let read = parse_cell_with("notebook", json!("a\u{1b}[31m.ipynb")).unwrap();
        assert_eq!(
            (read.notebook.as_str(), read.change_bytes),
            ("a\u{fffd}[31m.ipynb", Some(-5e6))
        );
        let ahead = parse_cell_with("ended_ms", json!(NOW_MS + 500)).unwrap();
        assert_eq!(ahead.ended_ms, NOW_MS, "a clock that is ahead");
        for (key, value, word) in [
            (
                "notebook",
                json!(""),
                "notebook must have 1 to 255 characters, but has 0",
            ),
            (
                "cell_id",
                json!("x".repeat(65)),
                "cell_id must have 1 to 64 characters, but has 65",
            ),
            (
                "ended_ms",
                json!(979_000),
                "must have ended within the last 600 s",
            ),
            (
                "ended_ms",
                json!(NOW_MS + 2000),
                "must have ended within the last 600 s",
            ),
            ("gpus", json!([]), "1 to 64 GPUs, not 0"),
            ("gpu_ms", json!("much"), "invalid cell: invalid type"),
            ("code", json!("import torch"), "unknown field `code`"),
        ] {
            let error = parse_cell_with(key, value).unwrap_err();
            assert!(error.contains(word), "{key}: {error}");
        }
    }
}
