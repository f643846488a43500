//! Names in braces that stand for what a notification says, as `{rule}`.

/// All of them.
pub(crate) const NAMES: [&str; 8] = ["status", "rule", "severity", "text", "gpu", "uuid", "host", "since_ms"];

/// The first placeholder of a word that is none of them. Braces around anything but a name are not meant.
pub(crate) fn unknown(word: &str) -> Option<&str> {
    pieces(word).find_map(|(_, name)| name.filter(|name| !NAMES.contains(name)))
}

/// Whether these words have a shell or another interpreter execute what stands for `{text}`: names of processes are part of
/// it, which come from strangers.
pub(crate) fn is_executed([option, script]: [&str; 2]) -> bool {
    let is_option = option.starts_with('-') && !option.starts_with("--") && option.ends_with('c');
    is_option && pieces(script).any(|(_, name)| name == Some("text"))
}

/// A text before each placeholder with its name, and the text behind the last.
pub(crate) fn pieces(word: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = Some(word);
    std::iter::from_fn(move || {
        let text = rest?;
        let found = text.match_indices('{').find_map(|(at, _)| {
            let (name, _) = text[at + 1..].split_once('}')?;
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
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
        assert_eq!((unknown("{rule} {txet}"), unknown("{rule} {} {1}")), (Some("txet"), None));
    }
}
