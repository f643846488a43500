//! The endpoint `POST /api/v1/marks`, with which a person or a script marks a moment on the charts
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

/// The rate limit for the marks of all users together, and also for cells.
pub(crate) const RATE: Rate = Rate {
    burst: 20,
    spacing: Duration::from_secs(1),
};

const LONGEST_TEXT: usize = Mark::LONGEST_TEXT;
/// The maximum size of a request in bytes, which allows for escaped characters.
const LARGEST: usize = 4096;
/// The tolerance for a browser's estimate of the server's clock, in milliseconds.
const AHEAD_MS: u64 = 1000;

/// A mark to be set at a moment.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMark {
    /// The text of the mark, such as `epoch 3`.
    #[schemars(length(min = 1, max = LONGEST_TEXT), regex(pattern = r"\S"))]
    text: String,
    /// The time in milliseconds since 1970, within the last 600 seconds; by default, now.
    at_ms: Option<u64>,
}

type Refusal = (StatusCode, String);

pub(crate) fn router(app: &AppState) -> Router<AppState> {
    let may_run = middleware::from_fn_with_state(app.clone(), runs::may_run);
    Router::new()
        .route("/api/v1/marks", post(add).route_layer(may_run))
        .route_layer(DefaultBodyLimit::max(LARGEST))
}

/// Sets a mark and returns its event.
async fn add(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    body: Bytes,
) -> Result<(StatusCode, Json<Event>), Refusal> {
    let (text, at_ms) =
        read(&body, now_ms()).map_err(|why| (StatusCode::BAD_REQUEST, why + "\n"))?;
    if app.event_limit.admit("mark", RATE, Instant::now()).is_err() {
        let message = format!(
            "too many marks: {} may come at once, and then one per second; set fewer\n",
            RATE.burst
        );
        return Err((StatusCode::TOO_MANY_REQUESTS, message));
    }
    audit::note(&client, &format!("set a mark: {text}")).await;
    let user = client.user().await;
    let event = Event {
        at_ms,
        gpu: None,
        what: EventKind::Mark(Mark { text, user }),
    };
    app.hub.add_event(event.clone());
    Ok((StatusCode::CREATED, Json(event)))
}

/// Parses a mark into its text and time.
///
/// # Errors
/// Returns what is wrong with the mark, and the valid values.
fn read(body: &[u8], now_ms: u64) -> Result<(String, u64), String> {
    let NewMark { text, at_ms } = serde_json::from_slice(body)
        .map_err(|error| format!(r#"invalid mark: {error}; send one as {{"text":"epoch 3"}}"#))?;
    let text = Mark::parse_text(&text)?;
    let at_ms = at_ms.unwrap_or(now_ms);
    if !(now_ms.saturating_sub(history::DEPTH_MS)..=now_ms + AHEAD_MS).contains(&at_ms) {
        let depth_s = history::DEPTH_MS / 1000;
        return Err(format!(
            "{at_ms} is not a moment of the history: send one of the last {depth_s} s as milliseconds since 1970, or \
             leave \"at_ms\" out for now"
        ));
    }
    Ok((text, at_ms.min(now_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_has_a_short_clean_text_and_a_moment_of_the_history() {
        let now_ms = 1_000_000;
        let read = |body: &str| read(body.as_bytes(), now_ms);
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
            (r#"{"text":" "}"#.to_owned(), "1 to 100 characters, not 0"),
            (
                format!(r#"{{"text":"{}"}}"#, "ä".repeat(101)),
                "1 to 100 characters, not 101",
            ),
            (r#"{"text":"a","at_ms":399999}"#.to_owned(), "last 600 s"),
            (
                r#"{"text":"a","at_ms":1001001}"#.to_owned(),
                "leave \"at_ms\" out",
            ),
            (r#"{"text":"a","at_ms":-1}"#.to_owned(), "invalid mark"),
        ];
        for (body, word) in refused {
            let error = read(&body).unwrap_err();
            assert!(error.contains(word), "{body}: {error}");
        }
    }
}
