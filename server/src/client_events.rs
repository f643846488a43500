//! The endpoints that add events of clients: `POST /api/v1/marks` and `POST /api/v1/cells`. The
//! events appear in the charts of all clients and in the history, so adding them requires
//! permission to start runs.

use std::time::Duration;

use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    middleware,
    routing::post,
};
use gpumon_probe::{
    model::{Cell, Event, EventKind, Mark, now_ms},
    owner::clean_line,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use crate::{
    app::AppState,
    audit,
    auth::{Client, Rate},
    history::RETENTION_MS,
    refusal::{Refusal, bad_request},
    runs,
};

/// The rate limit for marks and cells, shared by all users.
pub(crate) const EVENT_RATE: Rate = Rate {
    burst: 20,
    spacing: Duration::from_secs(1),
};

/// How far a client's clock may be ahead of the server's clock, in milliseconds. Browsers only
/// estimate the server's clock, and notebook kernels can run on other machines.
const MAX_CLOCK_ADVANCE_MS: u64 = 1000;

pub(crate) fn build_router(app: &AppState) -> Router<AppState> {
    let may_run = middleware::from_fn_with_state(app.clone(), runs::require_run_permission);
    let marks = Router::new()
        .route(
            "/api/v1/marks",
            post(post_mark).route_layer(may_run.clone()),
        )
        .route_layer(DefaultBodyLimit::max(MAX_MARK_BYTES));
    let cells = Router::new()
        .route("/api/v1/cells", post(post_cell).route_layer(may_run))
        .route_layer(DefaultBodyLimit::max(MAX_CELL_BYTES));
    marks.merge(cells)
}

/// Counts an event of a client.
///
/// # Errors
/// Returns a refusal that ends with `advice` if there were too many events of this kind.
fn admit_event(app: &AppState, kind: &'static str, advice: &str) -> Result<(), Refusal> {
    let admitted = app.event_limit.admit(kind, EVENT_RATE, Instant::now());
    admitted.map_err(|_| {
        let message = format!(
            "too many {kind}s: at most {} are accepted at once, then one per second{advice}\n",
            EVENT_RATE.burst
        );
        (StatusCode::TOO_MANY_REQUESTS, message)
    })
}

/// Adds an event, and returns the response that contains it.
fn add_event(app: &AppState, at_ms: u64, what: EventKind) -> (StatusCode, Json<Event>) {
    let event = Event {
        at_ms,
        gpu: None,
        what,
    };
    app.hub.add_event(event.clone());
    (StatusCode::CREATED, Json(event))
}

// Marks: a person or a script marks a point in time, and everybody can see the mark.

const MAX_MARK_CHARS: usize = Mark::MAX_TEXT_CHARS;
/// The maximum size of a request body in bytes. It leaves room for escaped characters.
const MAX_MARK_BYTES: usize = 4096;
/// A request to set a mark at a certain time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMark {
    /// The text of the mark, such as `epoch 3`.
    #[schemars(length(min = 1, max = MAX_MARK_CHARS), regex(pattern = r"\S"))]
    text: String,
    /// The time in milliseconds since 1970, within the last 600 seconds; by default, now.
    at_ms: Option<u64>,
}

/// Sets a mark and returns its event.
async fn post_mark(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    body: Bytes,
) -> Result<(StatusCode, Json<Event>), Refusal> {
    let (text, at_ms) = parse_mark(&body, now_ms()).map_err(bad_request)?;
    admit_event(&app, "mark", "; set fewer")?;
    audit::log_action(&client, &format!("set a mark: {text}")).await;
    let user = client.user_name().await;
    Ok(add_event(&app, at_ms, EventKind::Mark(Mark { text, user })))
}

/// Parses a request body into the mark's text and time.
///
/// # Errors
/// Returns what is wrong with the mark, and the valid values.
fn parse_mark(body: &[u8], now_ms: u64) -> Result<(String, u64), String> {
    let NewMark { text, at_ms } = serde_json::from_slice(body)
        .map_err(|error| format!(r#"invalid mark: {error}; send one as {{"text":"epoch 3"}}"#))?;
    let text = Mark::parse_text(&text)?;
    let at_ms = at_ms.unwrap_or(now_ms);
    if !(now_ms.saturating_sub(RETENTION_MS)..=now_ms + MAX_CLOCK_ADVANCE_MS).contains(&at_ms) {
        let depth_s = RETENTION_MS / 1000;
        return Err(format!(
            "at_ms={at_ms} is outside the history: send a time within the last {depth_s} s in \
             milliseconds since 1970, or omit \"at_ms\" for the current time"
        ));
    }
    Ok((text, at_ms.min(now_ms)))
}

// Cells: a Jupyter front end reports how a notebook cell used GPUs. The cell's code is not sent,
// and other users do not see the notebook's name.

/// The maximum size of a request in bytes.
const MAX_CELL_BYTES: usize = 8192;
/// The maximum number of characters of a file name.
const MAX_NOTEBOOK_CHARS: usize = 255;
/// The maximum number of characters in an ID. Jupyter uses UUIDs for kernels, but cells can have
/// other IDs.
const MAX_CELL_ID_CHARS: usize = 64;
const MAX_CELL_GPUS: usize = 64;

/// Records a cell, and returns its event.
async fn post_cell(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    body: Bytes,
) -> Result<(StatusCode, Json<Event>), Refusal> {
    let mut cell = parse_cell(&body, now_ms()).map_err(bad_request)?;
    admit_event(&app, "cell", "")?;
    cell.user = client.user_name().await;
    Ok(add_event(&app, cell.ended_ms, EventKind::Cell(cell)))
}

/// Parses and checks a cell.
///
/// # Errors
/// Returns what is wrong with the cell, and the valid values.
fn parse_cell(body: &[u8], now_ms: u64) -> Result<Cell, String> {
    let mut cell: Cell =
        serde_json::from_slice(body).map_err(|error| format!("invalid cell: {error}"))?;
    for (key, text, most) in [
        ("notebook", &mut cell.notebook, MAX_NOTEBOOK_CHARS),
        ("kernel_id", &mut cell.kernel_id, MAX_CELL_ID_CHARS),
        ("cell_id", &mut cell.cell_id, MAX_CELL_ID_CHARS),
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
    if !(1..=MAX_CELL_GPUS).contains(&cell.gpus.len()) {
        return Err(format!(
            "invalid cell: it must have used 1 to {MAX_CELL_GPUS} GPUs, not {}",
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

    #[test]
    fn mark_text_is_cleaned_and_old_time_refused() {
        let now_ms = 1_000_000;
        let read = |body: &str| parse_mark(body.as_bytes(), now_ms);
        assert_eq!(
            read(r#"{"text":" epoch 3\n"}"#),
            Ok(("epoch 3".to_owned(), now_ms))
        );
        assert_eq!(
            read(r#"{"text":"a\u001b[31mb","at_ms":400000}"#),
            Ok(("a\u{fffd}[31mb".to_owned(), 400_000))
        );
        assert_eq!(
            read(r#"{"text":"now","at_ms":1000500}"#),
            Ok(("now".to_owned(), now_ms)),
            "a clock that is ahead"
        );
        let longest = "語".repeat(100);
        assert_eq!(
            read(&format!(r#"{{"text":"{longest}"}}"#)),
            Ok((longest, now_ms))
        );
        let refused = [
            ("epoch 3".to_owned(), r#"{"text":"epoch 3"}"#),
            (r#"{"text":"a","gpu":0}"#.to_owned(), "gpu"),
            (
                r#"{"text":" "}"#.to_owned(),
                "1 to 100 characters, but has 0",
            ),
            (
                format!(r#"{{"text":"{}"}}"#, "ä".repeat(101)),
                "1 to 100 characters, but has 101",
            ),
            (r#"{"text":"a","at_ms":399999}"#.to_owned(), "last 600 s"),
            (
                r#"{"text":"a","at_ms":1001001}"#.to_owned(),
                "omit \"at_ms\" for",
            ),
            (r#"{"text":"a","at_ms":-1}"#.to_owned(), "invalid mark"),
        ];
        for (body, word) in refused {
            let error = read(&body).unwrap_err();
            assert!(error.contains(word), "{body}: {error}");
        }
    }

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
    fn cell_names_are_cleaned_and_invalid_values_refused() {
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
