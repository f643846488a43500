//! Keys and what they do, as each screen lists its own: help and the line at the bottom are made of
//! the same list.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key, what it does, and what it is about.
pub(super) struct Binding<A: 'static, P: 'static = ()> {
    pub(super) keys: &'static [KeyCode],
    /// With the control key held.
    pub(super) control: bool,
    pub(super) shown: &'static str,
    pub(super) action: A,
    pub(super) part: P,
    pub(super) help: &'static str,
    /// In the line at the bottom, where it belongs there.
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
    /// All keys that do it, the first as it is shown elsewhere.
    pub(super) fn names(&self) -> String {
        let others = self.keys.iter().skip(1).map(|key| format!(" {key}"));
        self.shown.to_owned() + &others.collect::<String>()
    }
}

/// What a key asks for; `None` where it does nothing.
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
