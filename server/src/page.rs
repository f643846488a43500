//! The web page, embedded in the binary.

use axum::{
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use rust_embed::RustEmbed;

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

pub(crate) async fn index() -> Response {
    match serve("index.html") {
        Some(page) => page,
        None => (
            StatusCode::NOT_FOUND,
            "This gpumon was built without its web page. Build it with `make`, or read /api/v1/snapshot.\n",
        )
            .into_response(),
    }
}

pub(crate) async fn file(Path(path): Path<String>) -> Response {
    serve(&path).unwrap_or_else(|| (StatusCode::NOT_FOUND, "no such file; the page is at /\n").into_response())
}

fn serve(path: &str) -> Option<Response> {
    let file = Page::get(path)?;
    let kind = file.metadata.mimetype().to_owned();
    let cache = if path.starts_with("assets/") { FOREVER } else { ASK_AGAIN };
    let headers = [
        (header::CONTENT_TYPE, kind.as_str()),
        (header::CACHE_CONTROL, cache),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    ];
    Some((headers, file.data.into_owned()).into_response())
}
