//! The web page, which is embedded in the binary.

use std::{
    fs,
    io::Read,
    path::{Component, Path},
};

use axum::{
    Extension,
    extract::{self, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use flate2::read::GzDecoder;

use crate::{
    app::AppState,
    content_type::content_type,
    encoder::gzip,
    peer::Peer,
    respond::{Resource, accepts_gzip, encoded, respond},
    view::View,
};

/// The directory into which `npm run build` writes the page.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../static/dist");

/// The files of the page by path, which `build.rs` has compressed.
const EMBEDDED: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The cache header of bundled files. Their names contain a hash, so they never change; the page
/// itself can change with every version.
const FOREVER: &str = "public, max-age=31536000, immutable";
const ASK_AGAIN: &str = "no-cache";

/// The policy allows resources from this server only, and no other site may frame the page.
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
    extract::Path(path): extract::Path<String>,
    headers: HeaderMap,
) -> Response {
    serve(
        &app,
        &headers,
        peer,
        path,
        "no such file; the page is at /\n",
    )
    .await
}

async fn serve(
    app: &AppState,
    headers: &HeaderMap,
    peer: Peer,
    path: String,
    missing: &'static str,
) -> Response {
    let Some((content_type, packed)) = content_type(&path).zip(packed(&path)) else {
        return (StatusCode::NOT_FOUND, missing).into_response();
    };
    let cache = if path.starts_with("assets/") {
        FOREVER
    } else {
        ASK_AGAIN
    };
    let mut response = if accepts_gzip(headers) {
        encoded(packed, content_type, true)
    } else {
        let subject = Resource::Page(path);
        respond(
            app,
            headers,
            peer.who(),
            View::ANYBODY,
            subject,
            content_type,
            move |_| unpacked(&packed),
        )
        .await
    };
    for (name, value) in [
        (header::CACHE_CONTROL, cache),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns a compressed file of the page. A debug build reads the directory at each request, for
/// development of the page.
fn packed(path: &str) -> Option<Bytes> {
    if cfg!(debug_assertions) {
        in_folder(path)
    } else {
        embedded(path)
    }
}

fn embedded(path: &str) -> Option<Bytes> {
    EMBEDDED
        .iter()
        .find(|(name, _)| *name == path)
        .map(|(_, packed)| Bytes::from_static(packed))
}

fn in_folder(path: &str) -> Option<Bytes> {
    let is_inside = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let file = is_inside.then(|| fs::read(Path::new(FOLDER).join(path)).ok())??;
    Some(gzip(&file).into())
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    GzDecoder::new(packed)
        .read_to_end(&mut file)
        .expect("it was compressed here");
    file
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_binary_holds_what_the_folder_does() {
        let found = Command::new("find")
            .args([FOLDER, "-type", "f", "-printf", "%P\n"])
            .output()
            .unwrap();
        let paths = String::from_utf8(found.stdout).unwrap();
        assert_eq!(paths.lines().count(), EMBEDDED.len());
        for path in paths.lines() {
            let file = fs::read(Path::new(FOLDER).join(path)).unwrap();
            for packed in [embedded(path), in_folder(path)] {
                assert_eq!(unpacked(&packed.expect(path)), file, "{path}");
            }
        }
    }
}
