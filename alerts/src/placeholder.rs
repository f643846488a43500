//! Placeholders in braces for the values of a notification, such as `{rule}`.

/// The names of all placeholders.
pub(crate) const NAMES: [&str; 8] = [
    "status", "rule", "severity", "text", "gpu", "uuid", "host", "since_ms",
];

/// Returns the first unknown placeholder of a word. Braces around anything but a name are no
/// placeholder.
pub(crate) fn unknown(word: &str) -> Option<&str> {
    pieces(word).find_map(|(_, name)| name.filter(|name| !NAMES.contains(name)))
}

/// The programs that only display their arguments. Others, such as shells, interpreters, `ssh` and
/// `find`, can execute them, and a list of those could never be complete.
pub(crate) const SHOWING_PROGRAMS: [&str; 5] =
    ["notify-send", "dunstify", "logger", "zenity", "kdialog"];

/// Returns `true` if the file name of the program is that of a program that only displays its
/// arguments.
pub(crate) fn shows_arguments(program: &str) -> bool {
    program
        .rsplit('/')
        .next()
        .is_some_and(|name| SHOWING_PROGRAMS.contains(&name))
}

/// Returns `true` if the word contains a placeholder.
pub(crate) fn is_in(word: &str) -> bool {
    pieces(word).any(|(_, name)| name.is_some())
}

/// Returns `true` if the word contains `{text}`. Its value can contain names of processes and
/// notebooks, which other users choose. The values of all other placeholders are chosen by the
/// machine's administrators.
pub(crate) fn has_text(word: &str) -> bool {
    pieces(word).any(|(_, name)| name == Some("text"))
}

/// Splits a word at its placeholders. Yields the text before each placeholder with the
/// placeholder's name, and then the text after the last one.
pub(crate) fn pieces(word: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
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
    fn an_unknown_one_is_found_and_other_braces_are_not_meant() {
        assert_eq!(
            (unknown("{rule} {txet}"), unknown("{rule} {} {1}")),
            (Some("txet"), None)
        );
    }
}
