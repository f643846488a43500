//! Responses of nodes, which are parsed into the types of the API and serialized again.
//!
//! A node may be compromised, and its responses are served from this server's origin. So no byte of
//! a response is passed on: the content type follows from the route, the body is serialized from
//! the parsed type, and an error is one line of plain text.

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use gpumon_history::{jobs::JobList, span::HistorySpan};
use gpumon_probe::{untrusted::escaped, usage::Usage};
use hyper::body::Incoming;
use serde::{Serialize, de::DeserializeOwned};
use tokio::task::spawn_blocking;

use super::{body::Bodies, problem::NodeProblem};
use crate::{
    alerts::AlertStatus,
    auth::routes::SessionState,
    encoder::gzip,
    frame::Snapshot,
    replay::Position,
    respond::{JSON, encoded},
    runs::{Catalogue, RunDetails, RunList},
};

/// The maximum size of a response in bytes: a month of history with the maximum number of points.
const LONGEST: usize = 32 << 20;

/// The maximum size of a parsed response in bytes: twice that of the longest response of numbers.
const LARGEST: usize = 128 << 20;

/// The maximum size of an error message in bytes.
const LONGEST_MESSAGE: usize = 2048;

/// The longest time after which a node may ask a client to retry, in seconds.
const LONGEST_RETRY_S: u32 = 3600;

/// The path of a node's sign-in endpoint.
pub(super) const SESSION: &str = "api/v1/session";

/// A function that parses a body into the type of its route, and serializes the result.
type Rewrite = fn(&[u8]) -> serde_json::Result<Vec<u8>>;

/// The routes of a node that a fleet passes on. All others change something on the node, or are not
/// used by the page.
const ROUTES: [(&str, Rewrite); 9] = [
    (SESSION, rewrite::<SessionState>),
    ("api/v1/alerts", rewrite::<AlertStatus>),
    ("api/v1/catalogue", rewrite::<Catalogue>),
    ("api/v1/history", rewrite::<HistorySpan>),
    ("api/v1/jobs", rewrite::<JobList>),
    ("api/v1/replay", rewrite::<Position>),
    ("api/v1/runs", rewrite::<RunList>),
    ("api/v1/snapshot", rewrite::<Snapshot>),
    ("api/v1/usage", rewrite::<Usage>),
];

fn rewrite<T: Serialize + DeserializeOwned>(body: &[u8]) -> serde_json::Result<Vec<u8>> {
    if parsed_size(body) > LARGEST {
        return Err(serde::de::Error::custom("it has too many parts"));
    }
    serde_json::to_vec(&serde_json::from_slice::<T>(body)?)
}

/// Returns an upper bound for the memory of a parsed JSON text in bytes, which follows from its
/// punctuation: an empty object of two bytes can become a map of 640.
fn parsed_size(body: &[u8]) -> usize {
    let size = |byte: &u8| match byte {
        b'{' => 640,
        b':' => 96,
        b'[' => 32,
        b',' => 16,
        _ => 1,
    };
    body.iter().map(size).sum()
}

/// Parses and serializes a response of the route that the first byte selects. Doing the same with
/// the result must not change it.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(answer: &[u8]) {
    let Some((route, body)) = answer.split_first() else {
        return;
    };
    let (path, rewrite) = ROUTES[usize::from(*route) % ROUTES.len()];
    if let Ok(written) = rewrite(body) {
        assert_eq!(rewrite(&written).ok().as_ref(), Some(&written), "{path}");
    }
}

/// A route of a node that is passed on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    rewrite: Rewrite,
}

impl Route {
    /// Returns the route with this path below the node's address, or `None` if the path is not
    /// passed on.
    pub(super) fn find(path: &str) -> Option<Self> {
        if path.strip_prefix("api/v1/runs/").is_some_and(is_run) {
            return Some(Self {
                rewrite: rewrite::<RunDetails>,
            });
        }
        ROUTES
            .iter()
            .find(|(known, _)| *known == path)
            .map(|(_, rewrite)| Self { rewrite: *rewrite })
    }
}

/// Returns `true` if the text can be the ID of a run.
fn is_run(id: &str) -> bool {
    !id.is_empty()
        && id
            .bytes()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_'))
}

/// Reads the response of `node` for a route, and returns it in serialized form, compressed if
/// `compress` is set.
///
/// # Errors
/// Returns an error if the response is not from gpumon, or is too long, or if too many responses
/// are being read.
pub(super) async fn read(
    bodies: &Bodies,
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
        let read = bodies.read(node, body, LONGEST).await?;
        let turn = bodies.turn().await;
        let write = move || {
            let _turn = turn;
            let json = (route.rewrite)(&read.bytes)?;
            serde_json::Result::Ok(if compress { gzip(&json) } else { json })
        };
        let written = spawn_blocking(write)
            .await
            .map_err(|error| foreign(error.to_string()))?;
        let json = written
            .map_err(|error| NodeProblem::OtherVersion(node.to_owned(), error.to_string()))?;
        let mut response = encoded(json.into(), JSON, compress);
        *response.status_mut() = head.status;
        return Ok(response);
    }
    let is_refusal =
        head.status.is_client_error() || head.status == StatusCode::SERVICE_UNAVAILABLE;
    if !is_refusal {
        let what = if head.status.is_success() {
            format!("'{}'", escaped(kind))
        } else {
            head.status.to_string()
        };
        return Err(foreign(format!("it answers with {what}")));
    }
    if media_type(kind) != "text/plain" {
        return Err(foreign(format!("it answers with '{}'", escaped(kind))));
    }
    let read = bodies.read(node, body, LONGEST_MESSAGE).await?;
    let message = escaped(String::from_utf8_lossy(&read.bytes).trim_end());
    let mut response = (head.status, message + "\n").into_response();
    if let Some(seconds) = retry_after(&head.headers) {
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

fn retry_after(headers: &HeaderMap) -> Option<u32> {
    let seconds: u32 = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()?;
    Some(seconds.min(LONGEST_RETRY_S))
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
    fn answer_of_many_parts_is_not_parsed() {
        let list = Route::find("api/v1/runs").unwrap();
        let many = format!(r#"{{"runs":[],"x":[{}0]}}"#, r#"{"a":0},"#.repeat(200_000));
        assert!(
            (list.rewrite)(many.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("too many parts")
        );
        // These are the values of a month of one reading of 64 GPUs, with minimum and maximum.
        let numbers = "1234.5,".repeat(64 * 3 * 5000);
        assert!(parsed_size(numbers.as_bytes()) < LARGEST / 4);
    }

    #[test]
    fn only_listed_routes_are_passed_on() {
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
    fn body_is_written_from_its_type_alone() {
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
