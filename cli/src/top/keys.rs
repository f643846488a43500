//! The key bindings of the live screen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    binding::{self, Binding, bind_control_key, bind_key},
    kill::KillSignal,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Help,
    Setup,
    /// Undoes the last restriction of the view, such as a filter or a selected GPU.
    Back,
    Suspend,
    Redraw,
    /// Moves the selection in the list by this number of lines.
    Move(isize),
    PageUp,
    PageDown,
    First,
    Last,
    NextGpu,
    PreviousGpu,
    NextView,
    PreviousView,
    View(usize),
    Room,
    NextMetric,
    PreviousMetric,
    ChooseMetrics,
    LongerRange,
    ShorterRange,
    NextSort,
    ChooseSort,
    ChooseUser,
    Reverse,
    Tree,
    Filter,
    Search,
    FindNext,
    FindPrevious,
    Details,
    Environment,
    /// Opens the confirmation for sending a signal to the tagged processes, or to the selected
    /// process if none is tagged.
    Signal(KillSignal),
    Faster,
    Slower,
    Theme,
    Save,
    /// Tags the selected process. If no process is selected, does the same as `Pause`.
    TagOrPause,
    ClearTags,
    Pause,
    StepForward,
    StepBack,
    SpeedUp,
    SlowDown,
    SkipForward,
    SkipBack,
    Goto,
}

/// The section of the help in which a key is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HelpSection {
    Screen,
    Charts,
    Processes,
    Replay,
}

use HelpSection::{Charts, Processes, Replay, Screen};
use KeyCode::{
    BackTab, Char, Down, End, Enter, Esc, F, Home, Left, PageDown, PageUp, Right, Tab, Up,
};

/// All key bindings. The most important keys for the footer come first.
pub(super) const BINDINGS: &[Binding<Action, HelpSection>] = &[
    bind_key(
        &[Char('q'), F(10)],
        "q",
        Action::Quit,
        Screen,
        "quit",
        Some("quit"),
    ),
    bind_key(
        &[Char('?'), Char('h'), F(1)],
        "?",
        Action::Help,
        Screen,
        "this help",
        Some("help"),
    ),
    bind_key(
        &[Char('S'), F(2)],
        "S",
        Action::Setup,
        Screen,
        "setup: columns, charts, theme, thresholds",
        Some("setup"),
    ),
    bind_key(
        &[Char('p'), Char('Z')],
        "p",
        Action::Pause,
        Screen,
        "pause or resume; restart a replay that is over",
        None,
    ),
    bind_key(
        &[Char(' ')],
        "space",
        Action::TagOrPause,
        Processes,
        "tag the process; if none is selected, pause",
        Some("tag"),
    ),
    bind_key(
        &[Char('U')],
        "U",
        Action::ClearTags,
        Processes,
        "remove all tags",
        None,
    ),
    bind_key(
        &[Char('.')],
        ".",
        Action::StepForward,
        Replay,
        "one sample forward",
        Some("step"),
    ),
    bind_key(
        &[Char(',')],
        ",",
        Action::StepBack,
        Replay,
        "one sample back",
        None,
    ),
    bind_key(
        &[Char(')')],
        ")",
        Action::SkipForward,
        Replay,
        "half a minute forward",
        Some("skip"),
    ),
    bind_key(
        &[Char('(')],
        "(",
        Action::SkipBack,
        Replay,
        "half a minute back",
        None,
    ),
    bind_key(
        &[Char('>')],
        ">",
        Action::SpeedUp,
        Replay,
        "faster",
        Some("faster"),
    ),
    bind_key(&[Char('<')], "<", Action::SlowDown, Replay, "slower", None),
    bind_key(
        &[Char(':')],
        ":",
        Action::Goto,
        Replay,
        "go to a time, such as 10:42 or 10:42:07",
        Some("go to"),
    ),
    bind_key(
        &[Tab],
        "tab",
        Action::NextView,
        Screen,
        "next view",
        Some("view"),
    ),
    bind_key(
        &[BackTab],
        "shift-tab",
        Action::PreviousView,
        Screen,
        "previous view",
        None,
    ),
    bind_key(
        &[Right],
        "→",
        Action::NextGpu,
        Screen,
        "next GPU; after the last, all GPUs",
        Some("GPU"),
    ),
    bind_key(
        &[Left],
        "←",
        Action::PreviousGpu,
        Screen,
        "previous GPU",
        None,
    ),
    bind_key(
        &[Char('m')],
        "m",
        Action::NextMetric,
        Charts,
        "chart the next reading of all GPUs",
        Some("metric"),
    ),
    bind_key(
        &[Char('M')],
        "M",
        Action::PreviousMetric,
        Charts,
        "chart the previous reading of all GPUs",
        None,
    ),
    bind_key(
        &[Char('c')],
        "c",
        Action::ChooseMetrics,
        Charts,
        "choose the readings that are charted",
        None,
    ),
    bind_key(
        &[Char(']')],
        "]",
        Action::LongerRange,
        Charts,
        "show a longer time range in the charts",
        None,
    ),
    bind_key(
        &[Char('[')],
        "[",
        Action::ShorterRange,
        Charts,
        "show a shorter time range in the charts",
        None,
    ),
    bind_key(
        &[Char('s')],
        "s",
        Action::NextSort,
        Processes,
        "sort by the next column",
        Some("sort"),
    ),
    bind_key(
        &[Char('o'), F(6)],
        "o",
        Action::ChooseSort,
        Processes,
        "choose the column to sort by",
        None,
    ),
    bind_key(
        &[Char('r')],
        "r",
        Action::Reverse,
        Processes,
        "reverse the sort order",
        None,
    ),
    bind_key(
        &[Char('f'), Char('\\'), F(4)],
        "f",
        Action::Filter,
        Processes,
        "filter by words, such as `ana gpu:0 what:train`",
        Some("filter"),
    ),
    bind_key(
        &[Char('u')],
        "u",
        Action::ChooseUser,
        Processes,
        "list the processes of one user",
        Some("user"),
    ),
    bind_key(
        &[Char('/'), F(3)],
        "/",
        Action::Search,
        Processes,
        "search while you type",
        Some("search"),
    ),
    bind_key(
        &[Char('n')],
        "n",
        Action::FindNext,
        Processes,
        "next match of the search",
        None,
    ),
    bind_key(
        &[Char('N')],
        "N",
        Action::FindPrevious,
        Processes,
        "previous match of the search",
        None,
    ),
    bind_key(
        &[Char('t'), F(5)],
        "t",
        Action::Tree,
        Processes,
        "show processes below their parents, as a tree",
        Some("tree"),
    ),
    bind_key(
        &[Enter, Char('i')],
        "enter",
        Action::Details,
        Processes,
        "details of the selected process",
        Some("details"),
    ),
    bind_key(
        &[Char('e')],
        "e",
        Action::Environment,
        Processes,
        "its environment",
        None,
    ),
    bind_key(
        &[Char('T'), F(9)],
        "T",
        Action::Signal(KillSignal::Terminate),
        Processes,
        "send a signal to the tagged or selected processes",
        Some("signal"),
    ),
    bind_key(
        &[Char('K')],
        "K",
        Action::Signal(KillSignal::End),
        Processes,
        "send a signal, with SIGKILL preselected",
        None,
    ),
    bind_key(
        &[Char('I')],
        "I",
        Action::Signal(KillSignal::Interrupt),
        Processes,
        "send a signal, with SIGINT preselected",
        None,
    ),
    bind_key(
        &[Down, Char('j')],
        "↓",
        Action::Move(1),
        Processes,
        "select the next process",
        None,
    ),
    bind_key(
        &[Up, Char('k')],
        "↑",
        Action::Move(-1),
        Processes,
        "select the previous process",
        None,
    ),
    bind_key(
        &[PageDown],
        "page down",
        Action::PageDown,
        Processes,
        "a page further",
        None,
    ),
    bind_control_key(
        &[Char('d')],
        "ctrl-d",
        Action::Move(5),
        Processes,
        "half a page further",
    ),
    bind_key(
        &[PageUp],
        "page up",
        Action::PageUp,
        Processes,
        "a page back",
        None,
    ),
    bind_control_key(
        &[Char('u')],
        "ctrl-u",
        Action::Move(-5),
        Processes,
        "half a page back",
    ),
    bind_key(
        &[Home, Char('g')],
        "home",
        Action::First,
        Processes,
        "the first",
        None,
    ),
    bind_key(
        &[End, Char('G')],
        "end",
        Action::Last,
        Processes,
        "the last",
        None,
    ),
    bind_key(
        &[Char('z')],
        "z",
        Action::Room,
        Screen,
        "show only the view, only the processes, or both",
        Some("zoom"),
    ),
    bind_key(&[Char('1')], "1", Action::View(0), Screen, "charts", None),
    bind_key(
        &[Char('2')],
        "2",
        Action::View(1),
        Screen,
        "activity of the GPU's parts",
        None,
    ),
    bind_key(
        &[Char('3')],
        "3",
        Action::View(2),
        Screen,
        "PCIe and NVLink",
        None,
    ),
    bind_key(
        &[Char('4')],
        "4",
        Action::View(3),
        Screen,
        "MIG instances",
        None,
    ),
    bind_key(
        &[Char('5')],
        "5",
        Action::View(4),
        Screen,
        "the machine",
        None,
    ),
    bind_key(
        &[Char('6')],
        "6",
        Action::View(5),
        Screen,
        "conditions and events",
        None,
    ),
    bind_key(
        &[Char('+'), Char('=')],
        "+",
        Action::Faster,
        Screen,
        "sample more often",
        None,
    ),
    bind_key(
        &[Char('-')],
        "-",
        Action::Slower,
        Screen,
        "sample less often",
        None,
    ),
    bind_key(
        &[Char('C')],
        "C",
        Action::Theme,
        Screen,
        "another theme",
        None,
    ),
    bind_key(
        &[Char('W')],
        "W",
        Action::Save,
        Screen,
        "save these settings",
        None,
    ),
    bind_key(
        &[Esc],
        "esc",
        Action::Back,
        Screen,
        "close a dialog; clear filter, tags, GPU; go back",
        None,
    ),
    bind_control_key(
        &[Char('l')],
        "ctrl-l",
        Action::Redraw,
        Screen,
        "redraw the screen",
    ),
    bind_control_key(
        &[Char('z')],
        "ctrl-z",
        Action::Suspend,
        Screen,
        "back to the shell; `fg` resumes",
    ),
    bind_control_key(&[Char('c')], "ctrl-c", Action::Quit, Screen, "quit"),
];

/// Returns the action of a key, or `None` if the key has no binding.
pub(super) fn find_action(event: KeyEvent) -> Option<Action> {
    binding::find_action(BINDINGS, event)
}

/// Returns the name of a key, such as `ctrl-c`, or `None` for modifier keys.
pub(super) fn key_name(event: KeyEvent) -> Option<String> {
    let key = match event.code {
        Char(letter) => letter.to_string(),
        KeyCode::Null | KeyCode::Modifier(_) => return None,
        other => other.to_string().to_lowercase(),
    };
    let control = if event.modifiers.contains(KeyModifiers::CONTROL) {
        "ctrl-"
    } else {
        ""
    };
    let alt = if event.modifiers.contains(KeyModifiers::ALT) {
        "alt-"
    } else {
        ""
    };
    Some(format!("{control}{alt}{key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_action() {
        binding::assert_keys_are_unique(BINDINGS);
    }

    #[test]
    fn ctrl_combination_differs_from_plain_letter() {
        let event = |modifiers| KeyEvent::new(Char('c'), modifiers);
        assert_eq!(
            find_action(event(KeyModifiers::CONTROL)),
            Some(Action::Quit)
        );
        assert_eq!(
            key_name(event(KeyModifiers::CONTROL)).as_deref(),
            Some("ctrl-c")
        );
        assert_eq!(
            key_name(KeyEvent::new(F(9), KeyModifiers::NONE)).as_deref(),
            Some("f9")
        );
        assert_eq!(
            find_action(event(KeyModifiers::NONE)),
            Some(Action::ChooseMetrics)
        );
        assert_eq!(
            find_action(KeyEvent::new(Char('M'), KeyModifiers::SHIFT)),
            Some(Action::PreviousMetric)
        );
    }
}
