//! What browsers are told that a file of the page is. `build.rs` asks, too, and fails for a file of
//! another kind.

pub(crate) fn content_type(path: &str) -> Option<&'static str> {
    Some(match path.rsplit_once('.')?.1 {
        "css" => "text/css",
        "html" => "text/html",
        "js" => "text/javascript",
        "md" => "text/markdown; charset=utf-8",
        "svg" => "image/svg+xml",
        "webmanifest" => "application/manifest+json",
        _ => return None,
    })
}
