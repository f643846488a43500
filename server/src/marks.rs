//! The endpoint `POST /api/v1/marks`, through which a person or a script marks a time on the charts
//! of all clients.
//!
//! Marks are visible to everybody, so setting them requires permission to start runs.

use std::time::Duration;

use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    middleware,
    routing::post,
};
use gpumon_probe::model::{Event, EventKind, Mark, now_ms};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use crate::{
    app::AppState,
    audit,
    auth::{Client, Rate},
    history, runs,
};

/// The rate limit for marks and cells, shared by all users.
pub(crate) const MARK_RATE: Rate = Rate {
    burst: 20,
    spacing: Duration::from_secs(1),
};

const MAX_TEXT_CHARS: usize = Mark::MAX_TEXT_CHARS;
/// The maximum size of a request body in bytes. It leaves room for escaped characters.
const MAX_BODY_BYTES: usize = 4096;
/// How far a mark's time may be ahead of the server's clock, in milliseconds. Browsers only
/// estimate that clock.
const MAX_CLOCK_ADVANCE_MS: u64 = 1000;

/// A request to set a mark at a certain time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMark {
    /// The text of the mark, such as `epoch 3`.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS), regex(pattern = r"\S"))]
    text: String,
    /// The time in milliseconds since 1970, within the last 600 seconds; by default, now.
    at_ms: Option<u64>,
}

type Refusal = (StatusCode, String);

pub(crate) fn build_router(app: &AppState) -> Router<AppState> {
    let may_run = middleware::from_fn_with_state(app.clone(), runs::require_run_permission);
    Router::new()
        .route("/api/v1/marks", post(post_mark).route_layer(may_run))
        .route_layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// Sets a mark and returns its event.
async fn post_mark(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    body: Bytes,
) -> Result<(StatusCode, Json<Event>), Refusal> {
    let (text, at_ms) =
        parse_mark(&body, now_ms()).map_err(|why| (StatusCode::BAD_REQUEST, why + "\n"))?;
    if app
        .event_limit
        .admit("mark", MARK_RATE, Instant::now())
        .is_err()
    {
        let message = format!(
            "too many marks: at most {} are accepted at once, then one per second; set fewer\n",
            MARK_RATE.burst
        );
        return Err((StatusCode::TOO_MANY_REQUESTS, message));
    }
    audit::log_action(&client, &format!("set a mark: {text}")).await;
    let user = client.user().await;
    let event = Event {
        at_ms,
        gpu: None,
        what: EventKind::Mark(Mark { text, user }),
    };
    app.hub.add_event(event.clone());
    Ok((StatusCode::CREATED, Json(event)))
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
    if !(now_ms.saturating_sub(history::RETENTION_MS)..=now_ms + MAX_CLOCK_ADVANCE_MS)
        .contains(&at_ms)
    {
        let depth_s = history::RETENTION_MS / 1000;
        return Err(format!(
            "at_ms={at_ms} is outside the history: send a time within the last {depth_s} s in \
             milliseconds since 1970, or omit \"at_ms\" for the current time"
        ));
    }
    Ok((text, at_ms.min(now_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_has_clean_text_and_recent_time() {
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
}
