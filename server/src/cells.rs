//! The endpoint `POST /api/v1/cells`, with which a Jupyter front end reports a notebook cell's use
//! of GPUs. The cell appears on the charts of all clients and in the history. Other users do not
//! see the name of the notebook.
//!
//! The client needs permission to start runs, the same as for marks. The code of a cell is not
//! sent.

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

use crate::{app::AppState, auth::Client, history::DEPTH_MS, marks::RATE, runs};

/// The maximum size of a request in bytes.
const LARGEST: usize = 8192;
/// The maximum number of characters of a file name.
const LONGEST_NAME: usize = 255;
/// The maximum number of characters of an ID. Jupyter uses UUIDs for kernels, but cells can have
/// other IDs.
const LONGEST_ID: usize = 64;
const MOST_GPUS: usize = 64;
/// The tolerance for a kernel's clock that is ahead, in milliseconds.
const AHEAD_MS: u64 = 1000;

pub(crate) fn router(app: &AppState) -> Router<AppState> {
    let may_run = middleware::from_fn_with_state(app.clone(), runs::may_run);
    Router::new()
        .route("/api/v1/cells", post(add).route_layer(may_run))
        .route_layer(DefaultBodyLimit::max(LARGEST))
}

/// Adds a cell and returns its event.
async fn add(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    body: Bytes,
) -> Result<(StatusCode, Json<Event>), (StatusCode, String)> {
    let mut cell = read(&body, now_ms()).map_err(|why| (StatusCode::BAD_REQUEST, why + "\n"))?;
    if app.event_limit.admit("cell", RATE, Instant::now()).is_err() {
        let message = format!(
            "too many cells: {} may come at once, and then one per second\n",
            RATE.burst
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
fn read(body: &[u8], now_ms: u64) -> Result<Cell, String> {
    let mut cell: Cell =
        serde_json::from_slice(body).map_err(|error| format!("invalid cell: {error}"))?;
    for (key, text, most) in [
        ("notebook", &mut cell.notebook, LONGEST_NAME),
        ("kernel_id", &mut cell.kernel_id, LONGEST_ID),
        ("cell_id", &mut cell.cell_id, LONGEST_ID),
    ] {
        let length = text.chars().count();
        if !(1..=most).contains(&length) {
            return Err(format!(
                "invalid cell: {key} has 1 to {most} characters, not {length}"
            ));
        }
        *text = clean_line(text);
    }
    let latest_ms = now_ms + AHEAD_MS;
    if !(now_ms.saturating_sub(DEPTH_MS)..=latest_ms).contains(&cell.ended_ms)
        || cell.started_ms > cell.ended_ms
    {
        let (started_ms, ended_ms, depth_s) = (cell.started_ms, cell.ended_ms, DEPTH_MS / 1000);
        return Err(format!(
            "invalid cell: from {started_ms} to {ended_ms} is not a time that has ended in the last {depth_s} s; both are \
             milliseconds since 1970"
        ));
    }
    if !(1..=MOST_GPUS).contains(&cell.gpus.len()) {
        return Err(format!(
            "invalid cell: it has used 1 to {MOST_GPUS} GPUs, not {}",
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

    fn cell() -> Value {
        json!({
            "notebook": "train.ipynb", "kernel_id": "k", "cell_id": "c", "execution_count": 3, "started_ms": 980_000,
            "ended_ms": 999_000, "gpus": [0], "gpu_ms": 9000.5, "peak_bytes": 1e9, "change_bytes": -5e6, "joules": null,
            "shared": false,
        })
    }

    fn with(key: &str, value: Value) -> Result<Cell, String> {
        let mut cell = cell();
        cell[key] = value;
        read(cell.to_string().as_bytes(), NOW_MS)
    }

    #[test]
    fn a_cell_has_clean_names_and_a_time_of_the_last_minutes() {
        let read = with("notebook", json!("a\u{1b}[31m.ipynb")).unwrap();
        assert_eq!(
            (read.notebook.as_str(), read.change_bytes),
            ("a\u{fffd}[31m.ipynb", Some(-5e6))
        );
        let ahead = with("ended_ms", json!(NOW_MS + 500)).unwrap();
        assert_eq!(ahead.ended_ms, NOW_MS, "a clock that is ahead");
        for (key, value, word) in [
            (
                "notebook",
                json!(""),
                "notebook has 1 to 255 characters, not 0",
            ),
            (
                "cell_id",
                json!("x".repeat(65)),
                "cell_id has 1 to 64 characters, not 65",
            ),
            ("ended_ms", json!(979_000), "has ended in the last 600 s"),
            (
                "ended_ms",
                json!(NOW_MS + 2000),
                "has ended in the last 600 s",
            ),
            ("gpus", json!([]), "1 to 64 GPUs, not 0"),
            ("gpu_ms", json!("much"), "invalid cell: invalid type"),
            ("code", json!("import torch"), "unknown field `code`"),
        ] {
            let error = with(key, value).unwrap_err();
            assert!(error.contains(word), "{key}: {error}");
        }
    }
}
