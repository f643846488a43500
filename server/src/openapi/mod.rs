//! The endpoint `GET /api/v1/openapi.json`: all operations of the API, and the types of their JSON.
//!
//! A test generates the document from [`table`] and the types, because the generator would add a
//! tenth to gpumon's code; the binary contains the compressed document. `docs/reference/api.md` is
//! generated from the document, and `gpumon schema` reads it.

#[cfg(test)]
mod operation;
#[cfg(test)]
mod page;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod routed;
#[cfg(test)]
mod table;
#[cfg(test)]
mod types;

use std::io::Read;

use axum::{Extension, extract::State, http::HeaderMap, response::Response};
use bytes::Bytes;
use flate2::read::GzDecoder;

use crate::{
    app::AppState,
    peer::Peer,
    respond::{JSON, Resource, accepts_gzip, encoded, respond},
    view::View,
};

const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json"));

/// Returns the document, which is the same for all clients.
pub(crate) async fn openapi(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    if accepts_gzip(&headers) {
        return encoded(Bytes::from_static(PACKED), JSON, true);
    }
    respond(
        &app,
        &headers,
        peer.who(),
        View::ANYBODY,
        Resource::OpenApi,
        JSON,
        |_| document().into_bytes(),
    )
    .await
}

/// Returns the document. Its `/components/schemas` are all types of gpumon's JSON, including the
/// records of `gpumon collect`.
///
/// # Panics
/// Never panics, because the build has compressed the document.
pub fn document() -> String {
    let mut text = String::new();
    GzDecoder::new(PACKED)
        .read_to_string(&mut text)
        .expect("the build compressed it");
    text
}
