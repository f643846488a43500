//! Construction of PromQL queries. Text from labels or settings must always be quoted.

/// Quotes a string for use in a PromQL query.
pub(super) fn quote(text: &str) -> String {
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

/// Returns a regular expression that matches exactly the strings in `texts`. Prometheus looks up
/// the strings in its index instead of evaluating the expression.
pub(super) fn build_exact_pattern<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
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
    quote(&pattern)
}

/// Returns a selector for the series with the given names and with matchers such as `a="b",c="d"`.
/// Returns `None` if `names` is empty.
pub(super) fn build_selector(names: &[&str], matchers: &str) -> Option<String> {
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
                build_exact_pattern(names.iter().copied())
            ))
        }
    }
}

/// Returns `true` if `text` is a valid label name in PromQL.
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
    fn quoted_text_cannot_end_quotes() {
        assert_eq!(
            quote("a\"} or vector(1) # \\ \n"),
            r#""a\"} or vector(1) # \\ \n""#
        );
        assert_eq!(
            build_exact_pattern(["node1.a:9124", "x|y"]),
            r#""node1\\.a:9124|x\\|y""#
        );
    }

    #[test]
    fn series_are_selected_by_one_name_or_several() {
        assert_eq!(build_selector(&["up"], "").unwrap(), "up");
        assert_eq!(build_selector(&["up"], "a=\"b\"").unwrap(), "up{a=\"b\"}");
        assert_eq!(
            build_selector(&["a", "b"], "c=\"d\"").unwrap(),
            "{__name__=~\"a|b\",c=\"d\"}"
        );
        assert_eq!(build_selector(&[], ""), None);
    }

    #[test]
    fn label_names_may_contain_only_letters_digits_underscores() {
        assert_eq!(
            ["node", "_a1", "1a", "", "a-b", "a\"b"].map(is_label_name),
            [true, true, false, false, false, false]
        );
    }
}
