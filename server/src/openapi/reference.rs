//! A test that `openapi.json` and `docs/reference/api.md` are up to date. With
//! `GPUMON_UPDATE_TYPES`, it writes them.

use std::{collections::BTreeSet, env, fs, path::Path};

use serde_json::Value;

use super::{page, routed::routed, table, types::Types};

#[track_caller]
fn check(file: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if env::var_os("GPUMON_UPDATE_TYPES").is_some() {
        fs::write(&path, made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "{file} is out of date: run `make types`");
}

/// Formats the document with a line per operation and type, so that changes are visible.
fn in_lines(document: &Value) -> String {
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
    let routed = routed(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let operations = table::operations(&mut Types::new());
    let described: BTreeSet<_> = operations
        .iter()
        .map(|operation| (operation.method.to_owned(), operation.path.to_owned()))
        .collect();
    assert_eq!(
        routed, described,
        "server/src/openapi/table.rs describes each route"
    );
}

#[test]
fn the_committed_description_and_reference_page_are_those_of_the_code() {
    let document = table::document();
    check("src/openapi/openapi.json", &in_lines(&document));
    check("../docs/reference/api.md", &page::page(&document));
}
