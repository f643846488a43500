//! Untrusted text on its way to a terminal: what processes call themselves, what a driver, a server or a file says.

/// The letter as a terminal may get it: without what drives the terminal, and without what reorders or hides other text.
pub fn printable(letter: char) -> char {
    match letter {
        control if control.is_control() => ' ',
        hidden if hides(hidden) => '?',
        letter => letter,
    }
}

/// The same in one line, with everything that was in it to be seen: `\n`, `\u{1b}`.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if printable(letter) == letter { shown.push(letter) } else { shown.extend(letter.escape_default()) }
    }
    shown
}

/// Letters without a width, and those that turn the direction of others round.
fn hides(letter: char) -> bool {
    matches!(
        letter,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{61c}' | '\u{feff}'
        // Tags, which spell a text that a program reads and nobody sees.
        | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_and_not_done() {
        let hostile = "a\u{1b}]0;b\u{7}\nc\u{202e}d\u{9b}ü";
        assert_eq!(escaped(hostile), "a\\u{1b}]0;b\\u{7}\\nc\\u{202e}d\\u{9b}ü");
        assert_eq!(hostile.chars().map(printable).collect::<String>(), "a ]0;b  c?d ü");
        assert_eq!(escaped("a\u{e0041}\u{200b}"), "a\\u{e0041}\\u{200b}");
    }
}
