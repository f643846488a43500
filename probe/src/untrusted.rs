//! Handling of untrusted text for terminals: process names, and messages from drivers, servers and
//! files.

/// Replaces characters that control the terminal, or that reorder or hide other text.
pub fn to_printable(letter: char) -> char {
    match letter {
        control if control.is_control() => ' ',
        hidden if is_invisible(hidden) => '?',
        letter => letter,
    }
}

/// Escapes text into one line in which all characters are visible: `\n`, `\u{1b}`.
pub fn escape_untrusted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if to_printable(letter) == letter {
            shown.push(letter);
        } else {
            shown.extend(letter.escape_default());
        }
    }
    shown
}

/// Returns `true` for characters that are invisible, or that change the direction of the text after
/// them: Unicode's property `Default_Ignorable_Code_Point`, and a few more. The web page
/// (`static/src/lib/text.ts`) and Python (`_text.py`) use the same rule;
/// `tests/invisible-characters.json` contains test cases for all three.
pub fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    ) || MORE_INVISIBLE.contains(&letter)
}

/// More invisible characters: line and paragraph separators, the empty Braille pattern, annotation
/// marks, and the musical null notehead.
const MORE_INVISIBLE: [char; 7] = [
    '\u{2028}',
    '\u{2029}',
    '\u{2800}',
    '\u{fff9}',
    '\u{fffa}',
    '\u{fffb}',
    '\u{1d159}',
];

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{Class, HirKind};
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Cases {
        invisible: Vec<String>,
        visible: Vec<String>,
    }

    #[test]
    fn to_printable_matches_shared_cases() {
        let cases = include_str!("../../tests/invisible-characters.json");
        let Cases { invisible, visible } = serde_json::from_str(cases).unwrap();
        let letter =
            |digits: &String| char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap();
        for digits in &invisible {
            assert_eq!(to_printable(letter(digits)), '?', "{digits}");
        }
        for digits in &visible {
            assert_eq!(to_printable(letter(digits)), letter(digits), "{digits}");
        }
    }

    #[test]
    fn invisible_characters_match_unicode_property() {
        let property = regex_syntax::parse(r"\p{Default_Ignorable_Code_Point}")
            .unwrap()
            .into_kind();
        let HirKind::Class(Class::Unicode(property)) = property else {
            panic!("{property:?}")
        };
        let is_ignorable = |letter: char| {
            property
                .ranges()
                .iter()
                .any(|range| (range.start()..=range.end()).contains(&letter))
        };
        for letter in '\0'..=char::MAX {
            let expected = is_ignorable(letter) || MORE_INVISIBLE.contains(&letter);
            assert_eq!(is_invisible(letter), expected, "{:x}", u32::from(letter));
        }
    }

    #[test]
    fn terminal_control_characters_are_escaped() {
        let hostile = "a\u{1b}]0;b\u{7}\nc\u{202e}d\u{9b}ü";
        assert_eq!(
            escape_untrusted(hostile),
            "a\\u{1b}]0;b\\u{7}\\nc\\u{202e}d\\u{9b}ü"
        );
        assert_eq!(
            hostile.chars().map(to_printable).collect::<String>(),
            "a ]0;b  c?d ü"
        );
        assert_eq!(
            escape_untrusted("a\u{e0041}\u{200b}"),
            "a\\u{e0041}\\u{200b}"
        );
    }
}
