//! Extraction of option descriptions from help texts.

use crate::switches;

/// Returns a command's description, which is the first sentence of its help without the command's
/// name.
pub(super) fn find_headline(help: &str) -> String {
    let first = help
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let sentence = first.split_once("-- ").map_or(first, |(_, rest)| rest);
    sentence
        .split(['.', ':', ';'])
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Returns a switch's description from the command's help, which has lines such as `[-m |
/// --matrix]: Matrix of ...`.
pub(super) fn find_switch_text(help: &str, spellings: &[&str]) -> Option<String> {
    find_text(help, |line| {
        let (mut names, text) = switches::parse_spellings(line)?;
        names.any(|name| spellings.contains(&name)).then_some(text)
    })
}

/// Returns an option's description from nvidia-smi's own help, which has lines such as `-L,
/// --list-gpus Every GPU ...`.
pub(super) fn find_option_text(help: &str, spellings: &[&str]) -> Option<String> {
    find_text(help, |line| {
        let (names, text) = line.split_at(line.rfind("  ").filter(|_| line.starts_with('-'))?);
        names
            .split_whitespace()
            .any(|name| spellings.contains(&name.trim_end_matches([',', '='])))
            .then_some(text)
    })
}

/// Returns the text that `text_of` finds in a line, including its continuation lines, without the
/// final period.
fn find_text<'a>(help: &'a str, text_of: impl Fn(&'a str) -> Option<&'a str>) -> Option<String> {
    let mut lines = help.lines().map(str::trim);
    let mut text = lines.by_ref().find_map(text_of)?.trim().to_owned();
    let goes_on = |line: &&str| line.starts_with(|first: char| first.is_ascii_lowercase());
    while !text.ends_with(['.', ':'])
        && let Some(more) = lines.next().filter(goes_on)
    {
        text = format!("{text} {more}");
    }
    Some(text.trim_end_matches(['.', ':']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiline_sentence_is_joined() {
        let help = "\n    topo -- Shows how devices are connected.\n\n    Options include:\n    \
                    [-i | --id]: GPUs by index, separated\n                 by \
                    commas.\n                 Goes with -n.\n    [-n | --near]: No farther than \
                    this:\n                   0 = near\n    [N/A | --format]:     How\n";
        assert_eq!(find_headline(help), "Shows how devices are connected");
        for (spelling, about) in [
            ("-i", Some("GPUs by index, separated by commas")),
            ("--near", Some("No farther than this")),
            ("--format", Some("How")),
            ("--bogus", None),
        ] {
            assert_eq!(
                find_switch_text(help, &[spelling]).as_deref(),
                about,
                "{spelling}"
            );
        }
    }

    #[test]
    fn option_is_found_by_either_spelling() {
        let help = "    -f,   --filename=           Write to this file, \
                    which\n                                is emptied.\n    -pm, -e are \
                    refused:\n    --query-gpu                 Of GPUs. See there.\n";
        for spelling in ["-f", "--filename"] {
            assert_eq!(
                find_option_text(help, &[spelling]).as_deref(),
                Some("Write to this file, which is emptied")
            );
        }
        assert_eq!(
            find_option_text(help, &["--query-gpu"]).as_deref(),
            Some("Of GPUs. See there")
        );
        assert_eq!(find_option_text(help, &["-pm"]), None);
    }
}
