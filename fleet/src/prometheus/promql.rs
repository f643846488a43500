//! Parts of queries. Text from labels or settings must always be quoted before it becomes part of a
//! query.

/// Quotes a string for a query.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a regular expression that matches only these texts. Prometheus looks up such expressions
/// in its index instead of matching them.
pub(super) fn any_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut pattern = String::new();
    for text in texts {
        if !pattern.is_empty() {
            pattern.push('|');
        }
        for character in text.chars() {
            if "\\.+*?()|[]{}^$".contains(character) {
                pattern.push('\\');
            }
            pattern.push(character);
        }
    }
    quoted(&pattern)
}

/// Returns a selector of the series with these names and matchers such as `a="b",c="d"`. Returns
/// `None` without names.
pub(super) fn series(names: &[&str], matchers: &str) -> Option<String> {
    let braces = |inner: &str| {
        if inner.is_empty() {
            String::new()
        } else {
            format!("{{{inner}}}")
        }
    };
    match names {
        [] => None,
        [name] => Some(format!("{name}{}", braces(matchers))),
        names => {
            let separator = if matchers.is_empty() { "" } else { "," };
            Some(format!(
                "{{__name__=~{}{separator}{matchers}}}",
                any_of(names.iter().copied())
            ))
        }
    }
}

/// Returns `true` if the text is a valid label name in a query.
pub(super) fn is_label_name(text: &str) -> bool {
    let is_begin = |character: char| character.is_ascii_alphabetic() || character == '_';
    let mut characters = text.chars();
    characters.next().is_some_and(is_begin)
        && characters.all(|it| is_begin(it) || it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_quotes() {
        assert_eq!(
            quoted("a\"} or vector(1) # \\ \n"),
            r#""a\"} or vector(1) # \\ \n""#
        );
        assert_eq!(any_of(["node1.a:9124", "x|y"]), r#""node1\\.a:9124|x\\|y""#);
    }

    #[test]
    fn series_are_selected_by_one_name_or_several() {
        assert_eq!(series(&["up"], "").unwrap(), "up");
        assert_eq!(series(&["up"], "a=\"b\"").unwrap(), "up{a=\"b\"}");
        assert_eq!(
            series(&["a", "b"], "c=\"d\"").unwrap(),
            "{__name__=~\"a|b\",c=\"d\"}"
        );
        assert_eq!(series(&[], ""), None);
    }

    #[test]
    fn names_of_labels_have_letters_digits_and_underscores() {
        assert_eq!(
            ["node", "_a1", "1a", "", "a-b", "a\"b"].map(is_label_name),
            [true, true, false, false, false, false]
        );
    }
}
