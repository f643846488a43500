//! The endpoint `GET /api/v1/openapi.json`: all operations of the API, and the types of their JSON.
//!
//! A test generates the document from `table.rs` and the types. If the server contained the
//! generator, gpumon's code would be a tenth larger. The binary contains the compressed document.
//! `docs/reference/api.md` is generated from the document, and `gpumon schema` reads it.

#[cfg(test)]
mod operation;
#[cfg(test)]
mod page;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod table;

use axum::{Extension, extract::State, http::HeaderMap, response::Response};
use bytes::Bytes;

use crate::{
    app::AppState,
    peer::Peer,
    responses::{JSON_TYPE, Resource, accepts_gzip, encoded_response, respond_with_resource},
    view::View,
};

const COMPRESSED_DOCUMENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json"));

/// Returns the OpenAPI document, which is the same for all clients.
pub(crate) async fn get_openapi(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    if accepts_gzip(&headers) {
        return encoded_response(Bytes::from_static(COMPRESSED_DOCUMENT), JSON_TYPE, true);
    }
    respond_with_resource(
        &app,
        &headers,
        peer.key(),
        View::UNKNOWN_CLIENT,
        Resource::OpenApi,
        JSON_TYPE,
        |_| read_document().into_bytes(),
    )
    .await
}

/// Returns the OpenAPI document. Its `/components/schemas` contain all types of gpumon's JSON,
/// including the records of `gpumon collect`.
///
/// # Panics
/// Never panics, because the build has compressed the document.
pub fn read_document() -> String {
    String::from_utf8(crate::page::decompress(COMPRESSED_DOCUMENT)).expect("the document is text")
}
