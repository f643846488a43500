//! The terminal view `gpumon top --fleet`.

use std::process::Command;

use super::{ENCRYPTED, FakePrometheus, drill_down::Site};
use crate::support::{Tty, gpumon, refused};

/// Returns the command with the environment of an interactive terminal.
fn top(arguments: &[&str]) -> Command {
    let mut command = gpumon(&[&["top", "--fleet"], arguments].concat());
    command
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR");
    command
}

#[test]
fn a_fleet_is_shown_live_takes_keys_and_gives_the_terminal_back() {
    let prometheus = FakePrometheus::of(&["node1:9400", "node2:9400"]);
    let mut terminal = Tty::start(&top(&["--prometheus", &prometheus.url()]), 100, 30);
    for text in ["gpumon fleet", "2 nodes", "node1", "node2", "ana"] {
        terminal.wait_for(text);
    }
    assert!(!terminal.is_as_before(), "keys are read one by one");
    // The terminal reports a light background. Color 25 belongs to the light theme.
    terminal.wait_for_sequence("\u{1b}]11;?\u{7}");
    terminal.press("\u{1b}]11;rgb:ffff/ffff/ffff\u{7}");
    terminal.wait_for_sequence("38;5;25;");
    terminal.press("jj");
    terminal.press("\r");
    terminal.wait_for("node2: https://node2:9123/ cannot be reached");
    terminal.press("q");
    assert!(terminal.ended().success());
    assert!(terminal.is_as_before());
}

#[test]
fn a_node_opens_live_with_the_fleets_token_and_leads_back() {
    let site = Site::new();
    let (authority, token) = (site.path("ca.crt"), site.path("node-token"));
    let ways = [
        "--prometheus",
        &site.prometheus.url(),
        "--node-url",
        ENCRYPTED,
        "--node-ca-file",
        &authority,
    ];
    let mut terminal = Tty::start(
        &top(&[&ways[..], &["--node-token-file", &token]].concat()),
        110,
        30,
    );
    terminal.wait_for(&site.name);
    // Sort by name, and filter by a job. The last row is the node, after one that does not exist.
    terminal.press("s/job:88123\r");
    terminal.wait_for("sorted by name");
    for leave in ["q", "\u{1b}"] {
        terminal.press("G\r");
        terminal.wait_for("live from node");
        terminal.wait_for("simulated");
        terminal.forget();
        terminal.press(leave);
        terminal.wait_for("sorted by name");
        terminal.wait_for("job:88123");
    }
    terminal.press("g\r");
    terminal.wait_for("localhost:1: https://localhost:1/ cannot be reached: connection refused; start `gpumon serve`");
    terminal.press("q");
    assert!(terminal.ended().success());
    // Without the token, the view shows how to set one.
    let mut terminal = Tty::start(&top(&ways), 110, 30);
    terminal.wait_for(&site.name);
    terminal.press("sG\r");
    terminal.wait_for("--node-token-file FILE");
    terminal.press("\u{3}");
    assert!(terminal.ended().success());
    assert!(terminal.is_as_before());
}

#[test]
fn without_a_fleet_it_says_how_to_name_one() {
    refused(gpumon(&["top", "--fleet"]), 2, "--prometheus URL");
    refused(gpumon(&["top", "--fleet", "--once"]), 2, "--once");
    let named = gpumon(&["top", "--fleet", "--prometheus", "http://a:secret@p"]);
    assert!(!refused(named, 2, "credentials").contains("secret"));
}
