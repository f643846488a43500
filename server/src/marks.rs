//! `POST /api/v1/marks`: a person or a script marks a moment, for everybody who looks at this server.
//!
//! A mark is text of somebody's in everybody's charts, so that it is set by whoever may start runs here.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    middleware,
    routing::post,
};
use gpumon_probe::{
    model::{Event, EventKind, Mark, now_ms},
    owner::{clean_line, user_name},
};
use serde::Deserialize;
use tokio::{task::spawn_blocking, time::Instant};

use crate::{app::AppState, history, peer::Peer, runs};

/// Characters of a text, which stands beside a pointer.
const LONGEST_TEXT: usize = 100;
/// Bytes of a request, with each character escaped.
const LARGEST: usize = 4096;
/// How far a browser's idea of the server's clock may be ahead.
const AHEAD_MS: u64 = 1000;
/// So many marks may come at once, and then one per this time.
const BURST: u32 = 20;
const SPACING: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewMark {
    text: String,
    /// Now, where it is left out.
    at_ms: Option<u64>,
}

type Refusal = (StatusCode, String);

pub(crate) fn router(app: &AppState) -> Router<AppState> {
    Router::new()
        .route("/api/v1/marks", post(add))
        .route_layer(DefaultBodyLimit::max(LARGEST))
        .route_layer(middleware::from_fn_with_state(app.clone(), runs::may_run))
}

/// Answers with the event that everybody gets.
async fn add(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<(StatusCode, Json<Event>), Refusal> {
    let (text, at_ms) = read(&body, now_ms()).map_err(|why| (StatusCode::BAD_REQUEST, why + "\n"))?;
    if !app.mark_limit.admit(Instant::now()) {
        let message = format!("too many marks: {BURST} may come at once, and then one per second; set fewer\n");
        return Err((StatusCode::TOO_MANY_REQUESTS, message));
    }
    let user = match peer.uid() {
        // A directory service may be asked for it.
        Some(uid) => spawn_blocking(move || user_name(uid)).await.ok(),
        None => None,
    };
    let event = Event { at_ms, gpu: None, what: EventKind::Mark(Mark { text, user }) };
    app.hub.add_event(event.clone());
    Ok((StatusCode::CREATED, Json(event)))
}

/// Text and moment of a mark.
///
/// # Errors
/// What is wrong with them, and what would be right.
fn read(body: &[u8], now_ms: u64) -> Result<(String, u64), String> {
    let NewMark { text, at_ms } = serde_json::from_slice(body)
        .map_err(|error| format!(r#"invalid mark: {error}; send one as {{"text":"epoch 3"}}"#))?;
    let text = text.trim();
    let length = text.chars().count();
    if !(1..=LONGEST_TEXT).contains(&length) {
        return Err(format!("a mark's text has 1 to {LONGEST_TEXT} characters, not {length}"));
    }
    let at_ms = at_ms.unwrap_or(now_ms);
    if !(now_ms.saturating_sub(history::DEPTH_MS)..=now_ms + AHEAD_MS).contains(&at_ms) {
        let depth_s = history::DEPTH_MS / 1000;
        return Err(format!(
            "{at_ms} is not a moment of the history: send one of the last {depth_s} s as milliseconds since 1970, or \
             leave \"at_ms\" out for now"
        ));
    }
    Ok((clean_line(text), at_ms.min(now_ms)))
}

/// How many marks there may be in a time, of all who set any: they are the server's user's, or were all let in.
#[derive(Debug)]
pub(crate) struct MarkLimit {
    /// When the marks so far would have been set, had they come one by one.
    even: Mutex<Instant>,
}

impl MarkLimit {
    pub(crate) fn new() -> Self {
        Self { even: Mutex::new(Instant::now()) }
    }

    /// Whether another one may be set at this moment.
    fn admit(&self, now: Instant) -> bool {
        let mut even = self.even.lock().unwrap_or_else(PoisonError::into_inner);
        let next = (*even).max(now) + SPACING;
        let is_admitted = next <= now + SPACING * BURST;
        if is_admitted {
            *even = next;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_has_a_short_clean_text_and_a_moment_of_the_history() {
        let now_ms = 1_000_000;
        let read = |body: &str| read(body.as_bytes(), now_ms);
        assert_eq!(read(r#"{"text":" epoch 3\n"}"#), Ok(("epoch 3".to_owned(), now_ms)));
        assert_eq!(read(r#"{"text":"a\u001b[31mb","at_ms":700000}"#), Ok(("a\u{fffd}[31mb".to_owned(), 700_000)));
        assert_eq!(read(r#"{"text":"now","at_ms":1000500}"#), Ok(("now".to_owned(), now_ms)), "a clock that is ahead");
        let longest = "語".repeat(100);
        assert_eq!(read(&format!(r#"{{"text":"{longest}"}}"#)), Ok((longest, now_ms)));
        let refused = [
            ("epoch 3".to_owned(), r#"{"text":"epoch 3"}"#),
            (r#"{"text":"a","gpu":0}"#.to_owned(), "gpu"),
            (r#"{"text":" "}"#.to_owned(), "1 to 100 characters, not 0"),
            (format!(r#"{{"text":"{}"}}"#, "ä".repeat(101)), "1 to 100 characters, not 101"),
            (r#"{"text":"a","at_ms":699999}"#.to_owned(), "last 300 s"),
            (r#"{"text":"a","at_ms":1001001}"#.to_owned(), "leave \"at_ms\" out"),
            (r#"{"text":"a","at_ms":-1}"#.to_owned(), "invalid mark"),
        ];
        for (body, word) in refused {
            let error = read(&body).unwrap_err();
            assert!(error.contains(word), "{body}: {error}");
        }
    }

    #[test]
    fn many_marks_come_at_once_and_then_one_per_second() {
        let limit = MarkLimit::new();
        let start = Instant::now() + Duration::from_secs(1);
        let admitted = |after: Duration| (0..100).filter(|_| limit.admit(start + after)).count();
        assert_eq!(admitted(Duration::ZERO), 20);
        assert_eq!(admitted(Duration::from_millis(999)), 0);
        assert_eq!(admitted(Duration::from_secs(3)), 3);
        assert_eq!(admitted(Duration::from_secs(1000)), 20);
    }
}
