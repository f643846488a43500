//! Key bindings. Each screen has one list of them, from which both its help and its footer are
//! made.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key, its action, and the section of the help that lists it.
pub(super) struct Binding<A: 'static, P: 'static = ()> {
    pub(super) keys: &'static [KeyCode],
    /// Whether the control key must be held.
    pub(super) control: bool,
    pub(super) shown: &'static str,
    pub(super) action: A,
    pub(super) part: P,
    pub(super) help: &'static str,
    /// The label in the footer, if the key is listed there.
    pub(super) short: Option<&'static str>,
}

pub(super) const fn key<A: Copy, P: Copy>(
    keys: &'static [KeyCode],
    shown: &'static str,
    action: A,
    part: P,
    help: &'static str,
    short: Option<&'static str>,
) -> Binding<A, P> {
    Binding {
        keys,
        control: false,
        shown,
        action,
        part,
        help,
        short,
    }
}

pub(super) const fn control<A: Copy, P: Copy>(
    keys: &'static [KeyCode],
    shown: &'static str,
    action: A,
    part: P,
    help: &'static str,
) -> Binding<A, P> {
    Binding {
        keys,
        control: true,
        shown,
        action,
        part,
        help,
        short: None,
    }
}

impl<A, P> Binding<A, P> {
    /// Returns all keys of the binding, starting with the one that is shown elsewhere.
    pub(super) fn names(&self) -> String {
        let others = self.keys.iter().skip(1).map(|key| format!(" {key}"));
        self.shown.to_owned() + &others.collect::<String>()
    }
}

/// Returns the action of a key, or `None` if the key has none.
pub(super) fn action<A: Copy, P>(bindings: &[Binding<A, P>], event: KeyEvent) -> Option<A> {
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    let binding = bindings
        .iter()
        .find(|binding| binding.control == control && binding.keys.contains(&event.code));
    binding.map(|binding| binding.action)
}

#[cfg(test)]
#[track_caller]
pub(super) fn assert_no_key_means_two_things<A, P>(bindings: &[Binding<A, P>]) {
    let mut seen = Vec::new();
    for binding in bindings {
        for key in binding.keys {
            assert!(!seen.contains(&(binding.control, *key)), "{key:?} twice");
            seen.push((binding.control, *key));
        }
    }
}
