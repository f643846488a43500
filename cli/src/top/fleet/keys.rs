//! The key bindings of the fleet screen.

use ratatui::crossterm::event::{
    KeyCode::{
        BackTab, Backspace, Char, Down, End, Enter, Esc, F, Home, Left, PageDown, PageUp, Right,
        Tab, Up,
    },
    KeyEvent,
};

use crate::top::binding::{self, Binding, bind_control_key, bind_key};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Help,
    /// Closes the node's screen or, without one, clears the filter.
    Back,
    Suspend,
    Redraw,
    /// Moves the selection by this number of nodes.
    Move(isize),
    /// Moves the selection up or down by this number of rows. On a map, a row contains several
    /// nodes.
    Row(isize),
    Page(isize),
    First,
    Last,
    Open,
    NextView,
    NextMetric,
    PreviousMetric,
    NextSort,
    PreviousSort,
    Filter,
    /// Adds this word to the filter, or removes the word if the filter contains it.
    Word(&'static str),
    Theme,
}

/// All key bindings. The most important keys for the footer come first.
pub(super) const BINDINGS: &[Binding<Action>] = &[
    bind_key(
        &[Char('q'), F(10)],
        "q",
        Action::Quit,
        (),
        "quit",
        Some("quit"),
    ),
    bind_key(
        &[Char('?'), Char('h'), F(1)],
        "?",
        Action::Help,
        (),
        "this help",
        Some("help"),
    ),
    bind_key(
        &[Enter, Right],
        "enter",
        Action::Open,
        (),
        "open the live view of the selected node",
        Some("open"),
    ),
    bind_key(
        &[Esc, Backspace],
        "esc",
        Action::Back,
        (),
        "back to the fleet; remove the filter",
        Some("back"),
    ),
    bind_key(
        &[Tab, BackTab],
        "tab",
        Action::NextView,
        (),
        "switch between the list and the map of nodes",
        Some("view"),
    ),
    bind_key(
        &[Char('m')],
        "m",
        Action::NextMetric,
        (),
        "show the next reading, such as memory or power",
        Some("metric"),
    ),
    bind_key(
        &[Char('M')],
        "M",
        Action::PreviousMetric,
        (),
        "show the previous reading",
        None,
    ),
    bind_key(
        &[Char('s')],
        "s",
        Action::NextSort,
        (),
        "sort: worst, name, utilization, memory and so on",
        Some("sort"),
    ),
    bind_key(
        &[Char('S')],
        "S",
        Action::PreviousSort,
        (),
        "select the previous sort order",
        None,
    ),
    bind_key(
        &[Char('/'), Char('f')],
        "/",
        Action::Filter,
        (),
        "filter by words such as user:ana, memory>80GiB",
        Some("filter"),
    ),
    bind_key(
        &[Char('i')],
        "i",
        Action::Word("idle"),
        (),
        "show only idle but held GPUs, or all again",
        Some("idle"),
    ),
    bind_key(
        &[Char('e')],
        "e",
        Action::Word("free"),
        (),
        "show only free GPUs, or all again",
        Some("free"),
    ),
    bind_key(
        &[Char('x')],
        "x",
        Action::Word("lost"),
        (),
        "show only unresponsive GPUs, or all again",
        Some("lost"),
    ),
    bind_key(
        &[Down, Char('j')],
        "down",
        Action::Row(1),
        (),
        "the next node",
        None,
    ),
    bind_key(
        &[Up, Char('k')],
        "up",
        Action::Row(-1),
        (),
        "the previous node",
        None,
    ),
    bind_key(
        &[Char('l')],
        "l",
        Action::Move(1),
        (),
        "one node to the right, in the map",
        None,
    ),
    bind_key(
        &[Left],
        "left",
        Action::Move(-1),
        (),
        "one node to the left, in the map",
        None,
    ),
    bind_key(
        &[PageDown, Char(' ')],
        "pgdn",
        Action::Page(1),
        (),
        "one page down",
        None,
    ),
    bind_key(
        &[PageUp, Char('b')],
        "pgup",
        Action::Page(-1),
        (),
        "one page up",
        None,
    ),
    bind_key(
        &[Home, Char('g')],
        "home",
        Action::First,
        (),
        "the first node",
        None,
    ),
    bind_key(
        &[End, Char('G')],
        "end",
        Action::Last,
        (),
        "the last node",
        None,
    ),
    bind_key(&[Char('t')], "t", Action::Theme, (), "another theme", None),
    bind_control_key(&[Char('c')], "ctrl-c", Action::Quit, (), "quit"),
    bind_control_key(
        &[Char('z')],
        "ctrl-z",
        Action::Suspend,
        (),
        "back to the shell; `fg` resumes",
    ),
    bind_control_key(
        &[Char('l')],
        "ctrl-l",
        Action::Redraw,
        (),
        "redraw the screen",
    ),
];

/// Returns the action of a key, or `None` if the key has no binding.
pub(super) fn find_action(key: KeyEvent) -> Option<Action> {
    binding::find_action(BINDINGS, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_action() {
        binding::assert_keys_are_unique(BINDINGS);
    }
}
