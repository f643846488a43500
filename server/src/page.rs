//! The web page, embedded in the binary.

use axum::{
    Extension,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use rust_embed::RustEmbed;

use crate::{
    app::AppState,
    peer::Peer,
    respond::{Resource, respond},
    view::View,
};

/// What `npm run build` left in `static/dist`. `build.rs` says when to look again.
#[derive(RustEmbed)]
#[folder = "../static/dist"]
#[allow_missing = true]
struct Page;

/// Bundled files carry a hash in their name, so that they never change; the page itself may with every version.
const FOREVER: &str = "public, max-age=31536000, immutable";
const ASK_AGAIN: &str = "no-cache";

/// Everything comes from here, and no other site may frame it.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'self'; img-src 'self' data:; frame-ancestors 'self'; base-uri 'self'";

pub(crate) async fn index(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    let missing = "This gpumon was built without its web page. Build it with `make`, or read /api/v1/snapshot.\n";
    serve(&app, &headers, peer, "index.html".to_owned(), missing).await
}

pub(crate) async fn file(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Response {
    serve(&app, &headers, peer, path, "no such file; the page is at /\n").await
}

async fn serve(app: &AppState, headers: &HeaderMap, peer: Peer, path: String, missing: &'static str) -> Response {
    let Some(file) = Page::get(&path) else { return (StatusCode::NOT_FOUND, missing).into_response() };
    let content_type = file.metadata.mimetype().to_owned();
    let cache = if path.starts_with("assets/") { FOREVER } else { ASK_AGAIN };
    let subject = Resource::Page(path);
    let mut response =
        respond(app, headers, peer.who(), View::Names, subject, &content_type, move |_| file.data.into_owned()).await;
    for (name, value) in [(header::CACHE_CONTROL, cache), (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY)] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
