//! `GET /api/v1/openapi.json`: every operation of the API, and the types of its JSON.
//!
//! A test makes the document of [`table`] and of the types, since what makes it would be as much
//! code as a tenth of gpumon's; the program has it compressed. `docs/reference/api.md` is made of
//! the document, and `gpumon schema` reads it.

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

/// The same for everybody.
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

/// The document. Its `/components/schemas` are all types of gpumon's JSON, records of `gpumon
/// collect` among them.
///
/// # Panics
/// Never: the build has compressed it.
pub fn document() -> String {
    let mut text = String::new();
    GzDecoder::new(PACKED)
        .read_to_string(&mut text)
        .expect("the build compressed it");
    text
}
