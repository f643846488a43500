//! HTTP responses that are encoded outside the event loop, and compressed for clients that accept
//! it.

use std::{ops::Range, sync::Arc};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use serde::Serialize;

use crate::{
    app::AppState,
    encoder::{Encoder, compress_gzip},
    hub::Hub,
    metrics::PageKey,
    peer::PeerKey,
    view::View,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    Snapshot {
        history_ms: Option<u64>,
        metrics: Vec<String>,
        brief: bool,
    },
    History {
        from_ms: u64,
        to_ms: u64,
        points: u32,
        resolution_ms: Option<u64>,
        metrics: Vec<String>,
    },
    Answers,
    OpenApi,
    Usage {
        span: Option<Range<u64>>,
    },
    Jobs {
        id: Option<String>,
    },
    /// The page of `/metrics`, with its naming scheme and format.
    Metrics(PageKey),
    Page(String),
    Fleet(FleetResource),
}

/// The data of a fleet: the current state of the fleet or of one node, or the usage, events or
/// history of the last number of seconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum FleetResource {
    Now { at_once: bool },
    Node(String),
    Usage(u32),
    Events(u32),
    History(u32, Option<String>),
}

/// A resource together with everything else that its response depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ResponseCacheKey {
    /// The user. Each user has separate responses, so that slow clients do not use other users'
    /// quotas.
    who: PeerKey,
    resource: Resource,
    change: u64,
    view: View,
    gzip: bool,
}

pub(crate) const JSON_TYPE: &str = "application/json";

pub(crate) type ResponseEncoder = Encoder<ResponseCacheKey>;

/// Returns a response with the bytes that `write` creates from the hub's data.
pub(crate) async fn respond_with_resource(
    app: &AppState,
    headers: &HeaderMap,
    who: PeerKey,
    view: View,
    resource: Resource,
    content_type: &'static str,
    write: impl FnOnce(&Hub) -> Vec<u8> + Send + 'static,
) -> Response {
    let compress = accepts_gzip(headers);
    let write = move |hub: &Hub| {
        if compress {
            compress_gzip(&write(hub))
        } else {
            write(hub)
        }
    };
    respond_encoded(app, compress, who, view, resource, content_type, write).await
}

/// Returns a response with the bytes that `write` creates. If `is_gzip` is set, `write` has already
/// compressed them.
pub(crate) async fn respond_encoded(
    app: &AppState,
    is_gzip: bool,
    who: PeerKey,
    view: View,
    resource: Resource,
    content_type: &'static str,
    write: impl FnOnce(&Hub) -> Vec<u8> + Send + 'static,
) -> Response {
    let hub = Arc::clone(&app.hub);
    let key = ResponseCacheKey {
        who,
        resource,
        change: hub.change_count(),
        view,
        gzip: is_gzip,
    };
    let write = move || write(&hub);
    let is_long = matches!(
        key.resource,
        Resource::Snapshot {
            history_ms: Some(_),
            ..
        } | Resource::History { .. }
            | Resource::Usage { span: Some(_) }
            | Resource::Jobs { .. }
            | Resource::Fleet(_)
    );
    let encoder = if is_long {
        &app.encoders.long_responses
    } else {
        &app.encoders.responses
    };
    let Ok(bytes) = encoder.get_or_encode(who, key, write).await else {
        let message = "too many large responses are being sent: try again in a few seconds\n";
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            [(header::RETRY_AFTER, "5")],
            message,
        )
            .into_response();
    };
    encoded_response(bytes, content_type, is_gzip)
}

/// Returns a response with bytes that are already encoded. `is_gzip` is whether they are also
/// compressed.
pub(crate) fn encoded_response(
    bytes: Bytes,
    content_type: &'static str,
    is_gzip: bool,
) -> Response {
    let mut response = Body::from(bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if is_gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("responses have string keys and no failing parts")
}

/// Returns `true` if `Accept-Encoding` contains gzip with a weight above 0 (RFC 9110, section
/// 12.5.3).
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight =
            parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        is_gzip
            && weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_depends_on_accept_encoding() {
        let accepts = |value: &'static str| {
            accepts_gzip(&HeaderMap::from_iter([(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static(value),
            )]))
        };
        assert!(accepts("gzip") && accepts("br, GZIP;q=0.5") && accepts("deflate,gzip ; q=1"));
        assert!(!accepts("gzip;q=0") && !accepts("br") && !accepts("") && !accepts("gzip;q=x"));
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
