//! A test that `openapi.json` and `docs/reference/api.md` are up to date. If `GPUMON_UPDATE_TYPES`
//! is set, the files are written instead.

use std::{collections::BTreeSet, env, fs, path::Path};

use serde_json::Value;

use super::{page, routed::find_routes, table, types::TypeSchemas};

#[track_caller]
fn check_file(file: &str, made: &str) {
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
    check_file("src/openapi/openapi.json", &format_lines(&document));
    check_file("../docs/reference/api.md", &page::render_page(&document));
}
