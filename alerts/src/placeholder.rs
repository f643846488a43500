//! Names in braces that stand for what a notification says, as `{rule}`.

/// All of them.
pub(crate) const NAMES: [&str; 8] = [
    "status", "rule", "severity", "text", "gpu", "uuid", "host", "since_ms",
];

/// The first placeholder of a word that is none of them. Braces around anything but a name are not
/// meant.
pub(crate) fn unknown(word: &str) -> Option<&str> {
    pieces(word).find_map(|(_, name)| name.filter(|name| !NAMES.contains(name)))
}

/// The programs that show their arguments as they are. Others, such as shells, interpreters, `ssh`
/// and `find`, can execute them, and a list of those could never be complete.
pub(crate) const SHOWING_PROGRAMS: [&str; 5] =
    ["notify-send", "dunstify", "logger", "zenity", "kdialog"];

/// Returns `true` if the program shows its arguments as they are, by its file name.
pub(crate) fn shows_arguments(program: &str) -> bool {
    program
        .rsplit('/')
        .next()
        .is_some_and(|name| SHOWING_PROGRAMS.contains(&name))
}

/// Returns `true` if the word has any placeholder.
pub(crate) fn is_in(word: &str) -> bool {
    pieces(word).any(|(_, name)| name.is_some())
}

/// Returns `true` if the word has `{text}`. That contains names of processes and notebooks, which
/// other users choose; all other placeholders stand for what the machine's administrators choose.
pub(crate) fn has_text(word: &str) -> bool {
    pieces(word).any(|(_, name)| name == Some("text"))
}

/// A text before each placeholder with its name, and the text behind the last.
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
