//! Placeholders in braces for the values of a notification, such as `{rule}`.

/// The names of all placeholders.
pub(crate) const PLACEHOLDER_NAMES: [&str; 8] = [
    "status", "rule", "severity", "text", "gpu", "uuid", "host", "since_ms",
];

/// Returns the first unknown placeholder in `word`. Braces that do not enclose a name are not a
/// placeholder.
pub(crate) fn find_unknown_placeholder(word: &str) -> Option<&str> {
    split_placeholders(word)
        .find_map(|(_, name)| name.filter(|name| !PLACEHOLDER_NAMES.contains(name)))
}

/// The programs that only display their arguments. Other programs, such as shells, interpreters,
/// `ssh` and `find`, can execute their arguments, and a list of those programs could never be
/// complete.
pub(crate) const DISPLAY_PROGRAMS: [&str; 5] =
    ["notify-send", "dunstify", "logger", "zenity", "kdialog"];

/// Returns `true` if the program's file name is one of [`DISPLAY_PROGRAMS`].
pub(crate) fn only_displays_arguments(program: &str) -> bool {
    program
        .rsplit('/')
        .next()
        .is_some_and(|name| DISPLAY_PROGRAMS.contains(&name))
}

/// Returns `true` if the word contains a placeholder.
pub(crate) fn has_placeholder(word: &str) -> bool {
    split_placeholders(word).any(|(_, name)| name.is_some())
}

/// Returns `true` if the word contains `{text}`. Its value can contain names of processes and
/// notebooks, which other users choose. The values of all other placeholders are chosen by the
/// machine's administrators.
pub(crate) fn has_text_placeholder(word: &str) -> bool {
    split_placeholders(word).any(|(_, name)| name == Some("text"))
}

/// Splits a word at its placeholders. Yields the text before each placeholder with the
/// placeholder's name, and then the text after the last one.
pub(crate) fn split_placeholders(word: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = Some(word);
    std::iter::from_fn(move || {
        let text = rest?;
        let found = text.match_indices('{').find_map(|(at, _)| {
            let (name, _) = text[at + 1..].split_once('}')?;
            let is_name =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
            is_name.then_some((at, name))
        });
        if let Some((at, name)) = found {
            rest = Some(&text[at + name.len() + 2..]);
            Some((&text[..at], Some(name)))
        } else {
            rest = None;
            Some((text, None))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_placeholder_is_found_among_other_braces() {
        assert_eq!(
            (
                find_unknown_placeholder("{rule} {txet}"),
                find_unknown_placeholder("{rule} {} {1}")
            ),
            (Some("txet"), None)
        );
    }
}
