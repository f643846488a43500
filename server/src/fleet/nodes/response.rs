//! Responses of nodes. They are parsed into the types of the API and serialized again.
//!
//! A node may be compromised, and its responses are served from this server's origin. No byte of a
//! response is therefore passed on: the route determines the content type, the body is serialized
//! from the parsed type, and errors are one line of plain text.

use std::sync::Arc;

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use gpumon_history::{jobs::JobList, span::HistorySpan};
use gpumon_probe::{untrusted::escape_untrusted, usage::Usage};
use hyper::body::Incoming;
use serde::{Serialize, de::DeserializeOwned};
use tokio::task::spawn_blocking;

use super::{BodyLimits, problem::NodeProblem};
use crate::{
    alerts::AlertStatus,
    auth::routes::SessionState,
    frame::Snapshot,
    replay::ReplayPosition,
    responses::{JSON_TYPE, compress_gzip, encoded_response},
    runs::{Catalogue, RunDetails, RunList},
};

/// The maximum size of a response in bytes: a month of history with the maximum number of points.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

/// The maximum estimated size of a parsed response in bytes, twice the size of the longest response
/// that consists of numbers.
const MAX_PARSED_BYTES: usize = 128 << 20;

/// The maximum size of an error message in bytes.
const MAX_MESSAGE_BYTES: usize = 2048;

/// The maximum value in seconds that is passed on from a node's `Retry-After` header.
const MAX_RETRY_S: u32 = 3600;

/// The path of a node's sign-in endpoint.
pub(super) const SESSION_PATH: &str = "api/v1/session";

/// A function that parses a body into the type of its route, and serializes the result.
type RewriteFunction = fn(&[u8]) -> serde_json::Result<Vec<u8>>;

/// The routes of a node that are passed on. All other routes change something on the node, or are
/// not used by the page.
const ROUTES: [(&str, RewriteFunction); 9] = [
    (SESSION_PATH, parse_and_serialize::<SessionState>),
    ("api/v1/alerts", parse_and_serialize::<AlertStatus>),
    ("api/v1/catalogue", parse_and_serialize::<Catalogue>),
    ("api/v1/history", parse_and_serialize::<HistorySpan>),
    ("api/v1/jobs", parse_and_serialize::<JobList>),
    ("api/v1/replay", parse_and_serialize::<ReplayPosition>),
    ("api/v1/runs", parse_and_serialize::<RunList>),
    ("api/v1/snapshot", parse_and_serialize::<Snapshot>),
    ("api/v1/usage", parse_and_serialize::<Usage>),
];

fn parse_and_serialize<T: Serialize + DeserializeOwned>(
    body: &[u8],
) -> serde_json::Result<Vec<u8>> {
    if max_parsed_size(body) > MAX_PARSED_BYTES {
        return Err(serde::de::Error::custom("too many JSON elements"));
    }
    // All other code parses these types from `str`. Parsing bytes here would add a second parser
    // for each type to the program, 0.4 MB in total.
    let body = str::from_utf8(body).map_err(serde::de::Error::custom)?;
    serde_json::to_vec(&serde_json::from_str::<T>(body)?)
}

/// Returns an upper bound for the memory that a parsed JSON text uses, in bytes. The bound is
/// computed from the punctuation: an empty object of two bytes, for example, can become a map of
/// 640 bytes.
fn max_parsed_size(body: &[u8]) -> usize {
    let size = |byte: &u8| match byte {
        b'{' => 640,
        b':' => 96,
        b'[' => 32,
        b',' => 16,
        _ => 1,
    };
    body.iter().map(size).sum()
}

/// Parses and serializes a response of the route that the first byte selects. Parsing and
/// serializing the result again must not change it.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz_response(answer: &[u8]) {
    let Some((route, body)) = answer.split_first() else {
        return;
    };
    let (path, rewrite) = ROUTES[usize::from(*route) % ROUTES.len()];
    if let Ok(written) = rewrite(body) {
        assert_eq!(rewrite(&written).ok().as_ref(), Some(&written), "{path}");
    }
}

/// A route of a node. The server forwards requests for it to the node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    rewrite: RewriteFunction,
}

impl Route {
    /// Returns the route with this path relative to the node's address, or `None` if its requests
    /// are not passed on.
    pub(super) fn find(path: &str) -> Option<Self> {
        if path.strip_prefix("api/v1/runs/").is_some_and(is_run_id) {
            return Some(Self {
                rewrite: parse_and_serialize::<RunDetails>,
            });
        }
        ROUTES
            .iter()
            .find(|(known, _)| *known == path)
            .map(|(_, rewrite)| Self { rewrite: *rewrite })
    }
}

/// Returns `true` if the text has the form of a run ID.
fn is_run_id(id: &str) -> bool {
    !id.is_empty()
        && id
            .bytes()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_'))
}

/// Reads the response of `node` for a route, and returns it serialized again. The result is
/// compressed if `compress` is set.
///
/// # Errors
/// Returns an error if the response is not from gpumon or is too long, or if too many responses are
/// being read.
pub(super) async fn read_response(
    bodies: &BodyLimits,
    node: &str,
    route: Route,
    answer: hyper::Response<Incoming>,
    compress: bool,
) -> Result<Response, NodeProblem> {
    let (head, body) = answer.into_parts();
    let foreign = |what: String| NodeProblem::NotGpumon(node.to_owned(), what);
    if head.status == StatusCode::NO_CONTENT {
        return Ok(head.status.into_response());
    }
    let kind = head
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let is_json = media_type(kind) == "application/json";
    if is_json && (head.status.is_success() || head.status == StatusCode::UNAUTHORIZED) {
        let read = bodies.read_body(node, body, MAX_RESPONSE_BYTES).await?;
        let turn = Arc::clone(&bodies.parsers).acquire_owned().await;
        let write = move || {
            let _turn = turn;
            let json = (route.rewrite)(&read.bytes)?;
            serde_json::Result::Ok(if compress { compress_gzip(&json) } else { json })
        };
        let written = spawn_blocking(write)
            .await
            .map_err(|error| foreign(error.to_string()))?;
        let json = written
            .map_err(|error| NodeProblem::OtherVersion(node.to_owned(), error.to_string()))?;
        let mut response = encoded_response(json.into(), JSON_TYPE, compress);
        *response.status_mut() = head.status;
        return Ok(response);
    }
    let is_refusal =
        head.status.is_client_error() || head.status == StatusCode::SERVICE_UNAVAILABLE;
    if !is_refusal {
        let what = if head.status.is_success() {
            format!("'{}'", escape_untrusted(kind))
        } else {
            head.status.to_string()
        };
        return Err(foreign(format!("it responded with {what}")));
    }
    if media_type(kind) != "text/plain" {
        return Err(foreign(format!(
            "it responded with '{}'",
            escape_untrusted(kind)
        )));
    }
    let read = bodies.read_body(node, body, MAX_MESSAGE_BYTES).await?;
    let message = escape_untrusted(String::from_utf8_lossy(&read.bytes).trim_end());
    let mut response = (head.status, message + "\n").into_response();
    if let Some(seconds) = parse_retry_after(&head.headers) {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}

/// Returns the media type of a `Content-Type` header without its parameters (RFC 9110, section
/// 8.3.1).
fn media_type(kind: &str) -> &str {
    kind.split(';').next().unwrap_or_default().trim()
}

fn parse_retry_after(headers: &HeaderMap) -> Option<u32> {
    let seconds: u32 = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()?;
    Some(seconds.min(MAX_RETRY_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_type_is_compared_as_a_whole() {
        assert_eq!(
            media_type("application/json; charset=utf-8"),
            "application/json"
        );
        assert_eq!(media_type("text/plain, text/html"), "text/plain, text/html");
        assert_eq!(media_type("application/jsonp"), "application/jsonp");
    }

    #[test]
    fn response_with_too_many_parts_is_refused() {
        let list = Route::find("api/v1/runs").unwrap();
        let many = format!(r#"{{"runs":[],"x":[{}0]}}"#, r#"{"a":0},"#.repeat(200_000));
        assert!(
            (list.rewrite)(many.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("too many JSON elements")
        );
        // The values of one reading for 64 GPUs over a month: mean, minimum and maximum of each
        // point.
        let numbers = "1234.5,".repeat(64 * 3 * 5000);
        assert!(max_parsed_size(numbers.as_bytes()) < MAX_PARSED_BYTES / 4);
    }

    #[test]
    fn only_listed_routes_are_forwarded_to_node() {
        for path in [
            "api/v1/session",
            "api/v1/history",
            "api/v1/runs",
            "api/v1/runs/1-2",
        ] {
            assert!(Route::find(path).is_some(), "{path}");
        }
        for path in [
            "api/v1/marks",
            "api/v1/answers",
            "api/v1/runs/",
            "api/v1/runs/1/2",
            "api/v1/runs/..",
            "metrics",
        ] {
            assert!(Route::find(path).is_none(), "{path}");
        }
    }

    #[test]
    fn unknown_fields_and_unexpected_bodies_are_not_relayed() {
        let list = Route::find("api/v1/runs").unwrap();
        assert_eq!(
            (list.rewrite)(br#"{ "html": "<script>", "runs": [] }"#).unwrap(),
            br#"{"runs":[]}"#
        );
        for foreign in ["<script>alert(1)</script>", "{}", "[]", "\"text\"", ""] {
            assert!((list.rewrite)(foreign.as_bytes()).is_err(), "{foreign}");
        }
    }
}
