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
    peer::Peer,
    responses::{Resource, accepts_gzip, compress_gzip, encoded_response, respond_with_resource},
    view::View,
};

/// The directory into which `npm run build` writes the page.
const PAGE_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../static/dist");

/// The page's files by path, compressed by `build.rs`.
const EMBEDDED_FILES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The cache header of bundled files. Their names contain a hash, so the files never change. The
/// page itself can change with every version.
const IMMUTABLE_CACHE: &str = "public, max-age=31536000, immutable";
const REVALIDATED_CACHE: &str = "no-cache";

/// The page's content security policy: resources are only loaded from this server, and no other
/// site may embed the page in a frame.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'self'; img-src 'self' data:; frame-ancestors 'self'; base-uri 'self'";

pub(crate) async fn get_index(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    let missing = "This gpumon was built without its web page. Build it with `make`, or read \
                   /api/v1/snapshot.\n";
    serve_file(&app, &headers, peer, "index.html".to_owned(), missing).await
}

pub(crate) async fn get_file(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    extract::Path(path): extract::Path<String>,
    headers: HeaderMap,
) -> Response {
    serve_file(
        &app,
        &headers,
        peer,
        path,
        "no such file; the page is at /\n",
    )
    .await
}

async fn serve_file(
    app: &AppState,
    headers: &HeaderMap,
    peer: Peer,
    path: String,
    missing: &'static str,
) -> Response {
    let Some((content_type, packed)) = content_type(&path).zip(find_compressed_file(&path)) else {
        return (StatusCode::NOT_FOUND, missing).into_response();
    };
    let cache = if path.starts_with("assets/") {
        IMMUTABLE_CACHE
    } else {
        REVALIDATED_CACHE
    };
    let mut response = if accepts_gzip(headers) {
        encoded_response(packed, content_type, true)
    } else {
        let subject = Resource::Page(path);
        respond_with_resource(
            app,
            headers,
            peer.key(),
            View::UNKNOWN_CLIENT,
            subject,
            content_type,
            move |_| decompress(&packed),
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

/// Returns a compressed file of the page. Debug builds read the directory at each request, to make
/// development of the page easier.
fn find_compressed_file(path: &str) -> Option<Bytes> {
    if cfg!(debug_assertions) {
        read_file_from_folder(path)
    } else {
        find_embedded_file(path)
    }
}

fn find_embedded_file(path: &str) -> Option<Bytes> {
    EMBEDDED_FILES
        .iter()
        .find(|(name, _)| *name == path)
        .map(|(_, packed)| Bytes::from_static(packed))
}

fn read_file_from_folder(path: &str) -> Option<Bytes> {
    let is_inside = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let file = is_inside.then(|| fs::read(Path::new(PAGE_FOLDER).join(path)).ok())??;
    Some(compress_gzip(&file).into())
}

/// Decompresses a file that this server or its build has compressed.
pub(crate) fn decompress(packed: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    GzDecoder::new(packed)
        .read_to_end(&mut file)
        .expect("this server or its build compressed the file");
    file
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn binary_contains_all_page_files() {
        let found = Command::new("find")
            .args([PAGE_FOLDER, "-type", "f", "-printf", "%P\n"])
            .output()
            .unwrap();
        let paths = String::from_utf8(found.stdout).unwrap();
        assert_eq!(paths.lines().count(), EMBEDDED_FILES.len());
        for path in paths.lines() {
            let file = fs::read(Path::new(PAGE_FOLDER).join(path)).unwrap();
            for packed in [find_embedded_file(path), read_file_from_folder(path)] {
                assert_eq!(decompress(&packed.expect(path)), file, "{path}");
            }
        }
    }
}
