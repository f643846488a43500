//! The key bindings of the live screen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    binding::{self, Binding, control, key},
    kill::Kill,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Help,
    Setup,
    /// Undoes the last narrowing, such as a filter or a selected GPU.
    Back,
    Suspend,
    Redraw,
    /// Moves the selection in the list by this many lines.
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
    /// Asks for confirmation to send a signal to the tagged processes, or else to the selected one.
    Signal(Kill),
    Faster,
    Slower,
    Theme,
    Save,
    /// Tags the selected process, or acts as `Pause` if none is selected.
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

/// A section of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Screen,
    Charts,
    Processes,
    Replay,
}

use KeyCode::{
    BackTab, Char, Down, End, Enter, Esc, F, Home, Left, PageDown, PageUp, Right, Tab, Up,
};
use Part::{Charts, Processes, Replay, Screen};

/// All key bindings. Those that matter most in the footer come first.
pub(super) const BINDINGS: &[Binding<Action, Part>] = &[
    key(
        &[Char('q'), F(10)],
        "q",
        Action::Quit,
        Screen,
        "quit",
        Some("quit"),
    ),
    key(
        &[Char('?'), Char('h'), F(1)],
        "?",
        Action::Help,
        Screen,
        "this help",
        Some("help"),
    ),
    key(
        &[Char('S'), F(2)],
        "S",
        Action::Setup,
        Screen,
        "setup: columns, charts, theme, thresholds",
        Some("setup"),
    ),
    key(
        &[Char('p'), Char('Z')],
        "p",
        Action::Pause,
        Screen,
        "pause or resume; restart a replay that is over",
        None,
    ),
    key(
        &[Char(' ')],
        "space",
        Action::TagOrPause,
        Processes,
        "tag the selected process, or pause if none is",
        Some("tag"),
    ),
    key(
        &[Char('U')],
        "U",
        Action::ClearTags,
        Processes,
        "remove all tags",
        None,
    ),
    key(
        &[Char('.')],
        ".",
        Action::StepForward,
        Replay,
        "one sample forward",
        Some("step"),
    ),
    key(
        &[Char(',')],
        ",",
        Action::StepBack,
        Replay,
        "one sample back",
        None,
    ),
    key(
        &[Char(')')],
        ")",
        Action::SkipForward,
        Replay,
        "half a minute forward",
        Some("skip"),
    ),
    key(
        &[Char('(')],
        "(",
        Action::SkipBack,
        Replay,
        "half a minute back",
        None,
    ),
    key(
        &[Char('>')],
        ">",
        Action::SpeedUp,
        Replay,
        "faster",
        Some("faster"),
    ),
    key(&[Char('<')], "<", Action::SlowDown, Replay, "slower", None),
    key(
        &[Char(':')],
        ":",
        Action::Goto,
        Replay,
        "go to a time, as 10:42 or 10:42:07",
        Some("go to"),
    ),
    key(
        &[Tab],
        "tab",
        Action::NextView,
        Screen,
        "next view",
        Some("view"),
    ),
    key(
        &[BackTab],
        "shift-tab",
        Action::PreviousView,
        Screen,
        "previous view",
        None,
    ),
    key(
        &[Right],
        "→",
        Action::NextGpu,
        Screen,
        "next GPU; after the last, all of them",
        Some("GPU"),
    ),
    key(
        &[Left],
        "←",
        Action::PreviousGpu,
        Screen,
        "previous GPU",
        None,
    ),
    key(
        &[Char('m')],
        "m",
        Action::NextMetric,
        Charts,
        "another reading in the charts of all GPUs",
        Some("metric"),
    ),
    key(
        &[Char('M')],
        "M",
        Action::PreviousMetric,
        Charts,
        "the one before it",
        None,
    ),
    key(
        &[Char('c')],
        "c",
        Action::ChooseMetrics,
        Charts,
        "choose the readings that are charted",
        None,
    ),
    key(
        &[Char(']')],
        "]",
        Action::LongerRange,
        Charts,
        "charts reach further back",
        None,
    ),
    key(
        &[Char('[')],
        "[",
        Action::ShorterRange,
        Charts,
        "charts reach less far back",
        None,
    ),
    key(
        &[Char('s')],
        "s",
        Action::NextSort,
        Processes,
        "sort by the next column",
        Some("sort"),
    ),
    key(
        &[Char('o'), F(6)],
        "o",
        Action::ChooseSort,
        Processes,
        "choose the column to sort by",
        None,
    ),
    key(
        &[Char('r')],
        "r",
        Action::Reverse,
        Processes,
        "sort the other way round",
        None,
    ),
    key(
        &[Char('f'), Char('\\'), F(4)],
        "f",
        Action::Filter,
        Processes,
        "filter by words, as `ana gpu:0 what:train`",
        Some("filter"),
    ),
    key(
        &[Char('u')],
        "u",
        Action::ChooseUser,
        Processes,
        "list the processes of one user",
        Some("user"),
    ),
    key(
        &[Char('/'), F(3)],
        "/",
        Action::Search,
        Processes,
        "search while you type",
        Some("search"),
    ),
    key(
        &[Char('n')],
        "n",
        Action::FindNext,
        Processes,
        "next match of the search",
        None,
    ),
    key(
        &[Char('N')],
        "N",
        Action::FindPrevious,
        Processes,
        "the one before",
        None,
    ),
    key(
        &[Char('t'), F(5)],
        "t",
        Action::Tree,
        Processes,
        "below those that started them, as a tree",
        Some("tree"),
    ),
    key(
        &[Enter, Char('i')],
        "enter",
        Action::Details,
        Processes,
        "the screen of the selected process",
        Some("details"),
    ),
    key(
        &[Char('e')],
        "e",
        Action::Environment,
        Processes,
        "its environment",
        None,
    ),
    key(
        &[Char('T'), F(9)],
        "T",
        Action::Signal(Kill::Terminate),
        Processes,
        "send a signal to the tagged or selected processes",
        Some("signal"),
    ),
    key(
        &[Char('K')],
        "K",
        Action::Signal(Kill::End),
        Processes,
        "the same, SIGKILL first",
        None,
    ),
    key(
        &[Char('I')],
        "I",
        Action::Signal(Kill::Interrupt),
        Processes,
        "the same, SIGINT first",
        None,
    ),
    key(
        &[Down, Char('j')],
        "↓",
        Action::Move(1),
        Processes,
        "select the next process",
        None,
    ),
    key(
        &[Up, Char('k')],
        "↑",
        Action::Move(-1),
        Processes,
        "select the previous process",
        None,
    ),
    key(
        &[PageDown],
        "page down",
        Action::PageDown,
        Processes,
        "a page further",
        None,
    ),
    control(
        &[Char('d')],
        "ctrl-d",
        Action::Move(5),
        Processes,
        "half a page further",
    ),
    key(
        &[PageUp],
        "page up",
        Action::PageUp,
        Processes,
        "a page back",
        None,
    ),
    control(
        &[Char('u')],
        "ctrl-u",
        Action::Move(-5),
        Processes,
        "half a page back",
    ),
    key(
        &[Home, Char('g')],
        "home",
        Action::First,
        Processes,
        "the first",
        None,
    ),
    key(
        &[End, Char('G')],
        "end",
        Action::Last,
        Processes,
        "the last",
        None,
    ),
    key(
        &[Char('z')],
        "z",
        Action::Room,
        Screen,
        "the view alone, the processes alone, or both",
        Some("zoom"),
    ),
    key(&[Char('1')], "1", Action::View(0), Screen, "charts", None),
    key(
        &[Char('2')],
        "2",
        Action::View(1),
        Screen,
        "activity of the GPU's parts",
        None,
    ),
    key(
        &[Char('3')],
        "3",
        Action::View(2),
        Screen,
        "PCIe and NVLink",
        None,
    ),
    key(
        &[Char('4')],
        "4",
        Action::View(3),
        Screen,
        "MIG instances",
        None,
    ),
    key(
        &[Char('5')],
        "5",
        Action::View(4),
        Screen,
        "the machine",
        None,
    ),
    key(
        &[Char('6')],
        "6",
        Action::View(5),
        Screen,
        "conditions and events",
        None,
    ),
    key(
        &[Char('+'), Char('=')],
        "+",
        Action::Faster,
        Screen,
        "sample more often",
        None,
    ),
    key(
        &[Char('-')],
        "-",
        Action::Slower,
        Screen,
        "sample less often",
        None,
    ),
    key(
        &[Char('C')],
        "C",
        Action::Theme,
        Screen,
        "another theme",
        None,
    ),
    key(
        &[Char('W')],
        "W",
        Action::Save,
        Screen,
        "save these settings",
        None,
    ),
    key(
        &[Esc],
        "esc",
        Action::Back,
        Screen,
        "close a dialog; clear filter, tags, GPU; go back",
        None,
    ),
    control(
        &[Char('l')],
        "ctrl-l",
        Action::Redraw,
        Screen,
        "draw everything anew",
    ),
    control(
        &[Char('z')],
        "ctrl-z",
        Action::Suspend,
        Screen,
        "back to the shell; `fg` resumes",
    ),
    control(&[Char('c')], "ctrl-c", Action::Quit, Screen, "quit"),
];

/// Returns the action of a key.
pub(super) fn action(event: KeyEvent) -> Option<Action> {
    binding::action(BINDINGS, event)
}

/// Returns the name printed on a key, or `None` for modifier keys.
pub(super) fn name(event: KeyEvent) -> Option<String> {
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
    fn no_key_means_two_things() {
        binding::assert_no_key_means_two_things(BINDINGS);
    }

    #[test]
    fn a_control_key_is_not_its_letter() {
        let event = |modifiers| KeyEvent::new(Char('c'), modifiers);
        assert_eq!(action(event(KeyModifiers::CONTROL)), Some(Action::Quit));
        assert_eq!(
            name(event(KeyModifiers::CONTROL)).as_deref(),
            Some("ctrl-c")
        );
        assert_eq!(
            name(KeyEvent::new(F(9), KeyModifiers::NONE)).as_deref(),
            Some("f9")
        );
        assert_eq!(
            action(event(KeyModifiers::NONE)),
            Some(Action::ChooseMetrics)
        );
        assert_eq!(
            action(KeyEvent::new(Char('M'), KeyModifiers::SHIFT)),
            Some(Action::PreviousMetric)
        );
    }
}
