//! Content types of the web page's files. `build.rs` also uses this module, and fails if a file's
//! type is unknown.

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
