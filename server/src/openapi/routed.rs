//! The routes found in the router's source code. The router itself has no function that lists them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Returns the methods and paths of all `route` calls in the source files of a directory.
pub(super) fn find_routes(folder: &Path) -> BTreeSet<(String, String)> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| {
        if path.is_dir() {
            find_routes(&path)
        } else {
            find_routes_in_source(&fs::read_to_string(&path).unwrap())
        }
    };
    // The sources of this module are skipped, because they contain a test with example routes.
    entries
        .filter(|path| !path.ends_with("openapi"))
        .flat_map(of)
        .collect()
}

fn find_routes_in_source(source: &str) -> BTreeSet<(String, String)> {
    let calls = source
        .split(".route(")
        .skip(1)
        .filter_map(|rest| rest.trim_start().strip_prefix('"'));
    calls
        .filter_map(|rest| rest.split_once('"'))
        .flat_map(|(path, rest)| find_methods(path, call_arguments(rest)))
        .collect()
}

/// Returns the text before the parenthesis that closes the call.
fn call_arguments(rest: &str) -> &str {
    let mut depth = 1;
    let end = rest.find(|letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        depth == 0
    });
    &rest[..end.expect("the call ends")]
}

/// Returns the methods that a route handles, as in `get(…)`, `routing::delete(…)` or `.post(…)`,
/// with its path.
fn find_methods(path: &str, handlers: &str) -> Vec<(String, String)> {
    let called = handlers.match_indices('(').map(|(at, _)| {
        let before = &handlers[..at];
        let start = before
            .rfind(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .map_or(0, |at| at + 1);
        &before[start..]
    });
    let found: Vec<_> = called
        .filter(|name| METHODS.contains(name))
        .map(|name| (name.to_uppercase(), path.to_owned()))
        .collect();
    assert!(
        !found.is_empty(),
        "{path} has a form that openapi/routed.rs does not recognize: {handlers}"
    );
    found
}

#[test]
fn routes_are_found_in_every_notation() {
    let source = r#"
        Router::new().route("/a", get(page::index)).route(
            "/b/{c}",
            axum::routing::delete(cancel),
        )
        .route("/s", get(state).post(sign_in).delete(sign_out)).route_layer(get(x))"#;
    let found = find_routes_in_source(source);
    let found: Vec<_> = found
        .iter()
        .map(|(method, path)| (method.as_str(), path.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("DELETE", "/b/{c}"),
            ("DELETE", "/s"),
            ("GET", "/a"),
            ("GET", "/s"),
            ("POST", "/s")
        ]
    );
}
