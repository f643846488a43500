//! The terminal view `gpumon top --fleet`.

use std::process::Command;

use super::{ENCRYPTED_NODE_URL, FakePrometheus, drill_down::SecuredNode};
use crate::support::{Tty, assert_refused, gpumon_command};

/// Returns the command with the environment of an interactive terminal.
fn top_command(arguments: &[&str]) -> Command {
    let mut command = gpumon_command(&[&["top", "--fleet"], arguments].concat());
    command
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR");
    command
}

#[test]
fn fleet_view_handles_keys_and_restores_terminal() {
    let prometheus = FakePrometheus::with_instances(&["node1:9400", "node2:9400"]);
    let mut terminal = Tty::start(&top_command(&["--prometheus", &prometheus.url()]), 100, 30);
    for text in ["gpumon fleet", "2 nodes", "node1", "node2", "ana"] {
        terminal.wait_for_text(text);
    }
    assert!(!terminal.is_restored(), "the terminal must be in raw mode");
    // The terminal reports a light background. Color 25 belongs to the light theme.
    terminal.wait_for_sequence("\u{1b}]11;?\u{7}");
    terminal.press("\u{1b}]11;rgb:ffff/ffff/ffff\u{7}");
    terminal.wait_for_sequence("38;5;25;");
    terminal.press("jj");
    terminal.press("\r");
    terminal.wait_for_text("node2: https://node2:9123/ cannot be reached");
    terminal.press("q");
    assert!(terminal.wait_for_end().success());
    assert!(terminal.is_restored());
}

#[test]
fn node_view_opens_with_fleet_token_and_returns() {
    let site = SecuredNode::new();
    let (authority, token) = (site.path("ca.crt"), site.path("node-token"));
    let ways = [
        "--prometheus",
        &site.prometheus.url(),
        "--node-url",
        ENCRYPTED_NODE_URL,
        "--node-ca-file",
        &authority,
    ];
    let mut terminal = Tty::start(
        &top_command(&[&ways[..], &["--node-token-file", &token]].concat()),
        110,
        30,
    );
    terminal.wait_for_text(&site.name);
    // These keys sort the table by name and filter it by a job. The last row is then the real node,
    // and the row above it is a node that does not exist.
    terminal.press("s/job:88123\r");
    terminal.wait_for_text("sorted by name");
    for leave in ["q", "\u{1b}"] {
        terminal.press("G\r");
        terminal.wait_for_text("live from node");
        terminal.wait_for_text("simulated");
        terminal.discard_output();
        terminal.press(leave);
        terminal.wait_for_text("sorted by name");
        terminal.wait_for_text("job:88123");
    }
    terminal.press("g\r");
    terminal.wait_for_text(
        "localhost:1: https://localhost:1/ cannot be reached: connection refused; \
                       start `gpumon serve`",
    );
    terminal.press("q");
    assert!(terminal.wait_for_end().success());
    // Without the token, the view shows how to set one.
    let mut terminal = Tty::start(&top_command(&ways), 110, 30);
    terminal.wait_for_text(&site.name);
    terminal.press("sG\r");
    terminal.wait_for_text("--node-token-file FILE");
    terminal.press("\u{3}");
    assert!(terminal.wait_for_end().success());
    assert!(terminal.is_restored());
}

#[test]
fn missing_fleet_is_refused_with_remedy() {
    assert_refused(gpumon_command(&["top", "--fleet"]), 2, "--prometheus URL");
    assert_refused(gpumon_command(&["top", "--fleet", "--once"]), 2, "--once");
    let named = gpumon_command(&["top", "--fleet", "--prometheus", "http://a:secret@p"]);
    assert!(!assert_refused(named, 2, "credentials").contains("secret"));
}
