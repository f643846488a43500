//! Description of nvidia-smi's command line, for shell completions and the manual page.
//!
//! The description is generated from the help texts and the tables that the command-line parser
//! uses. Options that only NVIDIA's own tool supports are left out.

use super::{
    HELP_TEXT,
    command_line::{self, SUBCOMMANDS},
    log,
    options::{Flag, OPTIONS, OptionDef},
    query::{self, QueryKind},
    subcommand::{self, AllowedValues, Arity, Switch},
};

/// nvidia-smi itself, or one of its commands.
pub struct CommandSpec {
    /// The command's name, or `smi` for nvidia-smi itself.
    pub name: &'static str,
    /// The command's description, as a sentence without a final period.
    pub about: String,
    /// The options that the command accepts.
    pub options: Vec<OptionSpec>,
}

pub struct OptionSpec {
    /// The option's names, starting with the short form.
    pub spellings: Vec<&'static str>,
    /// The option's description, as a sentence without a final period.
    pub about: String,
    /// Whether the option takes a value.
    pub arity: Arity,
    /// The values that shell completion suggests.
    pub values: ValueHint,
    /// The names under which plain `gpumon`, without `smi`, also accepts this option.
    pub passthrough: Vec<&'static str>,
}

/// The values that an option accepts.
#[derive(Debug, PartialEq, Eq)]
pub enum ValueHint {
    /// The option accepts any value.
    Any,
    /// The path of a file.
    File,
    /// One of these words.
    One(Vec<String>),
    /// A comma-separated list of these words.
    Commas(Vec<String>),
    /// A combination of these letters, without separators.
    Letters(Vec<String>),
}

/// Returns nvidia-smi itself, followed by its commands.
pub fn list_commands() -> Vec<CommandSpec> {
    let itself = CommandSpec {
        name: "smi",
        about: String::new(),
        options: OPTIONS.iter().map(describe_option).collect(),
    };
    let subcommands = SUBCOMMANDS.iter().map(|own| CommandSpec {
        name: own.syntax.name,
        about: find_headline(&own.syntax.help()),
        options: own
            .syntax
            .switches()
            .into_iter()
            .filter(|switch| !own.syntax.is_refused(switch.spellings[0]))
            .map(|switch| describe_switch(switch, own.syntax.usage))
            .collect(),
    });
    std::iter::once(itself).chain(subcommands).collect()
}

fn describe_switch(switch: Switch, usage: &str) -> OptionSpec {
    OptionSpec {
        about: find_switch_text(usage, &switch.spellings).unwrap_or_default(),
        spellings: switch.spellings,
        arity: switch.arity,
        values: match switch.values {
            AllowedValues::Any => ValueHint::Any,
            AllowedValues::File => ValueHint::File,
            AllowedValues::One(words) => {
                ValueHint::One(words.iter().map(|word| (*word).to_owned()).collect())
            }
            AllowedValues::Commas(words) => ValueHint::Commas(words()),
            AllowedValues::Letters(letters) => {
                ValueHint::Letters(letters.chars().map(String::from).collect())
            }
        },
        passthrough: Vec::new(),
    }
}

fn describe_option(option: &OptionDef) -> OptionSpec {
    let spellings = option.spellings();
    let about = match option.flag {
        Flag::HelpSelectiveQuery(_) => format!(
            "What --{} knows",
            spellings[0].trim_start_matches("--help-")
        ),
        _ => find_option_text(HELP_TEXT, &spellings).unwrap_or_default(),
    };
    let owned = |words: &mut dyn Iterator<Item = &'static str>| words.map(str::to_owned).collect();
    let values = match option.flag {
        Flag::File => ValueHint::File,
        Flag::Sections => ValueHint::Commas(owned(&mut log::list_section_words())),
        Flag::Format => ValueHint::Commas(owned(&mut query::list_format_modifiers())),
        Flag::SelectiveQuery(_) => ValueHint::Commas(owned(
            &mut list_fields(&spellings)
                .into_iter()
                .flat_map(|field| field.names),
        )),
        _ => ValueHint::Any,
    };
    let passthrough = if command_line::has_meaning_in_gpumon(option.flag) {
        Vec::new()
    } else {
        spellings.clone()
    };
    OptionSpec {
        spellings,
        about,
        arity: option.arity,
        values,
        passthrough,
    }
}

/// Returns the fields that a query option accepts. For all other options, the list is empty.
pub fn list_fields(spellings: &[&'static str]) -> Vec<query::FieldHelp> {
    let query = QueryKind::ALL
        .into_iter()
        .find(|query| spellings.contains(&query.switch()));
    query.map_or_else(Vec::new, query::list_fields)
}

// Extraction of option descriptions from help texts.

/// Returns a command's description, which is the first sentence of its help without the command's
/// name.
fn find_headline(help: &str) -> String {
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
fn find_switch_text(help: &str, spellings: &[&str]) -> Option<String> {
    find_text(help, |line| {
        let (mut names, text) = subcommand::parse_spellings(line)?;
        names.any(|name| spellings.contains(&name)).then_some(text)
    })
}

/// Returns an option's description from nvidia-smi's own help, which has lines such as `-L,
/// --list-gpus Every GPU ...`.
fn find_option_text(help: &str, spellings: &[&str]) -> Option<String> {
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
mod tests;

#[cfg(test)]
mod help_text_tests {
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
