//! `gpumon top --fleet`, on a terminal.

use super::FakePrometheus;
use crate::support::{Tty, gpumon, refused};

#[test]
fn a_fleet_is_shown_live_takes_keys_and_gives_the_terminal_back() {
    let prometheus = FakePrometheus::of(&["node1:9400", "node2:9400"]);
    let mut command = gpumon(&["top", "--fleet", "--prometheus", &prometheus.url()]);
    command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
    let mut terminal = Tty::start(&command, 100, 30);
    for text in ["gpumon fleet", "2 nodes", "node1", "node2", "ana"] {
        terminal.wait_for(text);
    }
    assert!(!terminal.is_as_before(), "keys are read one by one");
    terminal.press("jj");
    terminal.press("\r");
    terminal.wait_for("nodes/node2/");
    terminal.press("q");
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
