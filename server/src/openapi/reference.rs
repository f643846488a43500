//! Tests that the table describes every route of the server, and that `openapi.json` and
//! `docs/reference/api.md` are up to date. If `GPUMON_UPDATE_TYPES` is set, the files are written
//! instead.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{operation::TypeSchemas, page, table};

#[track_caller]
fn check_or_update_file(file: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if env::var_os("GPUMON_UPDATE_TYPES").is_some() {
        fs::write(&path, made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "{file} is out of date: run `make types`");
}

/// Formats the document with one line per operation and type, so that diffs are readable.
fn format_lines(document: &Value) -> String {
    let mut text = document.to_string();
    for long in [&document["paths"], &document["components"]["schemas"]] {
        let parts = long.as_object().into_iter().flatten();
        let lines: Vec<_> = parts
            .map(|(key, part)| format!("\"{key}\":{part}"))
            .collect();
        text = text.replacen(
            &long.to_string(),
            &format!("{{\n{}\n}}", lines.join(",\n")),
            1,
        );
    }
    text + "\n"
}

#[test]
fn every_route_of_the_server_is_described() {
    let routed = find_routes(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let operations = table::list_operations(&mut TypeSchemas::new());
    let described: BTreeSet<_> = operations
        .iter()
        .map(|operation| (operation.method.to_owned(), operation.path.to_owned()))
        .collect();
    assert_eq!(
        routed, described,
        "server/src/openapi/table.rs must describe each route"
    );
}

#[test]
fn api_description_matches_code() {
    let document = table::build_document();
    check_or_update_file("src/openapi/openapi.json", &format_lines(&document));
    check_or_update_file("../docs/reference/api.md", &page::render_page(&document));
}

// The routes found in the router's source code. The router itself has no function that lists them.

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Returns the methods and paths of all `route` calls in the source files of a directory.
fn find_routes(folder: &Path) -> BTreeSet<(String, String)> {
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
    // This module's own sources are skipped, because they contain a test with example routes.
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
        "{path} has a form that openapi/reference.rs does not recognize: {handlers}"
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
