//! The table of `gpumon fleet --table`.

use serde_json::{Value, json};

use super::FakePrometheus;
use crate::support::{assert_refused, gpumon_command, stdout_text};

fn print_table(prometheus: &FakePrometheus, arguments: &[&str]) -> (Option<i32>, String) {
    let url = prometheus.url();
    let output = gpumon_command(&[&["fleet", "--prometheus", &url], arguments].concat())
        .output()
        .unwrap();
    (output.status.code(), stdout_text(&output))
}

#[test]
fn table_lists_and_filters_nodes_gpus_and_users() {
    let prometheus = FakePrometheus::with_instances(&["node10:9400", "node2:9400"]);
    let (code, nodes) = print_table(&prometheus, &["--table"]);
    assert_eq!(code, Some(0));
    assert!(
        nodes.contains("2 nodes  4 GPUs") && nodes.contains("2 busy  2 free"),
        "{nodes}"
    );
    let at = |name: &str| {
        nodes
            .find(name)
            .unwrap_or_else(|| panic!("{name}: {nodes}"))
    };
    assert!(at("node2 ") < at("node10 "), "{nodes}");
    assert!(
        !nodes.contains('\u{1b}') && nodes.contains("ana"),
        "{nodes:?}"
    );
    let (_, gpus) = print_table(&prometheus, &["--gpus", "busy", "node:node2"]);
    let lines: Vec<&str> = gpus.lines().filter(|line| line.contains("H100")).collect();
    assert!(
        lines.len() == 1 && lines[0].contains("job 88123") && lines[0].contains("88"),
        "{gpus}"
    );
    let (_, users) = print_table(&prometheus, &["--users"]);
    assert!(
        users.contains("ana") && !users.contains('\u{1b}'),
        "{users:?}"
    );
    let (_, none) = print_table(&prometheus, &["--table", "user:nobody"]);
    assert!(none.contains("No GPU matches."), "{none}");
    let (_, json) = print_table(&prometheus, &["--json"]);
    let fleet: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (
            &fleet["state"],
            fleet["gpus"]["index"].as_array().unwrap().len()
        ),
        (&"current".into(), 4)
    );
    let states = &fleet["totals"]["states"];
    assert_eq!(
        (&states["busy"], &states["free"], &fleet["sums"]["gpus"]),
        (&json!([2]), &json!([2]), &json!([2, 2]))
    );
}

#[test]
fn fleet_command_uses_proxy_variables_and_exceptions() {
    let proxy = FakePrometheus::with_instances(&["node1:9400"]);
    let mut command = gpumon_command(&[
        "fleet",
        "--prometheus",
        "http://prometheus.invalid:9090",
        "--table",
    ]);
    command
        .env("HTTP_PROXY", proxy.url())
        .env_remove("NO_PROXY")
        .env_remove("no_proxy");
    assert!(stdout_text(&command.output().unwrap()).contains("node1"));
    let output = command.env("NO_PROXY", "invalid").output().unwrap();
    assert!(!stdout_text(&output).contains("node1"));
}

#[test]
fn exit_code_shows_whether_enough_gpus_are_free() {
    let prometheus = FakePrometheus::with_instances(&["node1:9400", "node2:9400"]);
    let (code, found) = print_table(&prometheus, &["--free", "1", "--memory", "80GiB"]);
    assert!(
        code == Some(0) && found.contains("1 of 2") && found.contains("node2"),
        "{found}"
    );
    for arguments in [
        &["--free", "2"][..],
        &["--free", "1", "--memory", "141GiB"],
        &["--free", "1", "node:node3"],
    ] {
        let (code, found) = print_table(&prometheus, arguments);
        assert!(
            code == Some(1) && found.contains("No node has the requested number of free GPUs."),
            "{arguments:?}: {found}"
        );
    }
    let (code, json) = print_table(&prometheus, &["--free", "1", "--json"]);
    let found: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (code, &found[0]["node"], &found[0]["indexes"]),
        (Some(0), &"node1".into(), &json!([1]))
    );
    let url = prometheus.url();
    for (arguments, words) in [
        (&["--memory", "80GiB"][..], "--free"),
        (&["--free", "0"], "1.."),
        (&["--free", "1", "--memory", "50%"], "expected a size"),
        (&["--free", "1", "--memory", "80"], "did you mean 80GiB"),
        (&["--table", "--gpus"], "cannot be used with"),
    ] {
        assert_refused(
            gpumon_command(&[&["fleet", "--prometheus", &url], arguments].concat()),
            2,
            words,
        );
    }
}
