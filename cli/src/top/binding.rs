//! Key bindings. The list of a screen's bindings is the source of its help and its footer.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key, its action, and the section of the help in which it is listed.
pub(super) struct Binding<A: 'static, P: 'static = ()> {
    pub(super) keys: &'static [KeyCode],
    /// Whether the control key must be held.
    pub(super) control: bool,
    pub(super) shown: &'static str,
    pub(super) action: A,
    pub(super) part: P,
    pub(super) help: &'static str,
    /// The label of the key in the footer, or `None` if the footer does not list the key.
    pub(super) short: Option<&'static str>,
}

pub(super) const fn bind_key<A: Copy, P: Copy>(
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

pub(super) const fn bind_control_key<A: Copy, P: Copy>(
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
    /// Formats all keys of the binding. The first key is the one that is shown outside of the help.
    pub(super) fn format_keys(&self) -> String {
        let others = self.keys.iter().skip(1).map(|key| format!(" {key}"));
        self.shown.to_owned() + &others.collect::<String>()
    }
}

/// Returns the action of a key, or `None` if the key has no binding.
pub(super) fn find_action<A: Copy, P>(bindings: &[Binding<A, P>], event: KeyEvent) -> Option<A> {
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    let binding = bindings
        .iter()
        .find(|binding| binding.control == control && binding.keys.contains(&event.code));
    binding.map(|binding| binding.action)
}

#[cfg(test)]
#[track_caller]
pub(super) fn assert_keys_are_unique<A, P>(bindings: &[Binding<A, P>]) {
    let mut seen = Vec::new();
    for binding in bindings {
        for key in binding.keys {
            assert!(!seen.contains(&(binding.control, *key)), "{key:?} twice");
            seen.push((binding.control, *key));
        }
    }
}
