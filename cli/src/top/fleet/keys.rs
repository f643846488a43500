//! The key bindings of the fleet screen.

use ratatui::crossterm::event::{
    KeyCode::{
        BackTab, Backspace, Char, Down, End, Enter, Esc, F, Home, Left, PageDown, PageUp, Right,
        Tab, Up,
    },
    KeyEvent,
};

use crate::top::binding::{self, Binding, control, key};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Help,
    /// Closes the node, or clears the filter.
    Back,
    Suspend,
    Redraw,
    /// Moves the selection by this many nodes.
    Move(isize),
    /// Moves the selection by this many rows on the screen.
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
    /// Adds this word to the filter, or removes it.
    Word(&'static str),
    Theme,
}

/// All key bindings. Those that matter most in the footer come first.
pub(super) const BINDINGS: &[Binding<Action>] = &[
    key(
        &[Char('q'), F(10)],
        "q",
        Action::Quit,
        (),
        "quit",
        Some("quit"),
    ),
    key(
        &[Char('?'), Char('h'), F(1)],
        "?",
        Action::Help,
        (),
        "this help",
        Some("help"),
    ),
    key(
        &[Enter, Right],
        "enter",
        Action::Open,
        (),
        "open the selected node live",
        Some("open"),
    ),
    key(
        &[Esc, Backspace],
        "esc",
        Action::Back,
        (),
        "back to the fleet; remove the filter",
        Some("back"),
    ),
    key(
        &[Tab, BackTab],
        "tab",
        Action::NextView,
        (),
        "a line per node, or a map of all",
        Some("view"),
    ),
    key(
        &[Char('m')],
        "m",
        Action::NextMetric,
        (),
        "utilization, memory, power, temperature and so on",
        Some("metric"),
    ),
    key(
        &[Char('M')],
        "M",
        Action::PreviousMetric,
        (),
        "the one before it",
        None,
    ),
    key(
        &[Char('s')],
        "s",
        Action::NextSort,
        (),
        "sort: worst, name, utilization, memory and so on",
        Some("sort"),
    ),
    key(
        &[Char('S')],
        "S",
        Action::PreviousSort,
        (),
        "the order before it",
        None,
    ),
    key(
        &[Char('/'), Char('f')],
        "/",
        Action::Filter,
        (),
        "filter by words as user:ana, memory>80GiB",
        Some("filter"),
    ),
    key(
        &[Char('i')],
        "i",
        Action::Word("idle"),
        (),
        "GPUs that are idle but held, or all again",
        Some("idle"),
    ),
    key(
        &[Char('e')],
        "e",
        Action::Word("free"),
        (),
        "free GPUs, or all again",
        Some("free"),
    ),
    key(
        &[Char('x')],
        "x",
        Action::Word("lost"),
        (),
        "GPUs that do not respond, or all again",
        Some("lost"),
    ),
    key(
        &[Down, Char('j')],
        "down",
        Action::Row(1),
        (),
        "the next node",
        None,
    ),
    key(
        &[Up, Char('k')],
        "up",
        Action::Row(-1),
        (),
        "the node before",
        None,
    ),
    key(
        &[Char('l')],
        "l",
        Action::Move(1),
        (),
        "one node to the right, in the map",
        None,
    ),
    key(
        &[Left],
        "left",
        Action::Move(-1),
        (),
        "one node to the left, in the map",
        None,
    ),
    key(
        &[PageDown, Char(' ')],
        "pgdn",
        Action::Page(1),
        (),
        "one page down",
        None,
    ),
    key(
        &[PageUp, Char('b')],
        "pgup",
        Action::Page(-1),
        (),
        "one page up",
        None,
    ),
    key(
        &[Home, Char('g')],
        "home",
        Action::First,
        (),
        "the first node",
        None,
    ),
    key(
        &[End, Char('G')],
        "end",
        Action::Last,
        (),
        "the last node",
        None,
    ),
    key(&[Char('t')], "t", Action::Theme, (), "another theme", None),
    control(&[Char('c')], "ctrl-c", Action::Quit, (), "quit"),
    control(
        &[Char('z')],
        "ctrl-z",
        Action::Suspend,
        (),
        "back to the shell; `fg` resumes",
    ),
    control(
        &[Char('l')],
        "ctrl-l",
        Action::Redraw,
        (),
        "draw everything anew",
    ),
];

/// Returns the action of a key, or `None` if the key has none.
pub(super) fn action(key: KeyEvent) -> Option<Action> {
    binding::action(BINDINGS, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things() {
        binding::assert_no_key_means_two_things(BINDINGS);
    }
}
