//! Description of nvidia-smi's command line, for shell completions and the manual page.
//!
//! The description is generated from the help texts and the tables that the command-line parser
//! uses. Options that only NVIDIA's own tool supports are left out.

mod help_text;

use super::{
    HELP_TEXT, log,
    options::{Flag, OPTIONS, OptionDef},
    passthrough,
    query::{self, QueryKind},
    subcommands::SUBCOMMANDS,
    switches::{AllowedValues, Arity, Switch},
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
        name: own.form.name,
        about: help_text::find_headline(&own.form.help()),
        options: own
            .form
            .switches()
            .into_iter()
            .filter(|switch| !own.form.is_refused(switch.spellings[0]))
            .map(|switch| describe_switch(switch, own.form.usage))
            .collect(),
    });
    std::iter::once(itself).chain(subcommands).collect()
}

fn describe_switch(switch: Switch, usage: &str) -> OptionSpec {
    OptionSpec {
        about: help_text::find_switch_text(usage, &switch.spellings).unwrap_or_default(),
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
        _ => help_text::find_option_text(HELP_TEXT, &spellings).unwrap_or_default(),
    };
    let owned = |words: &mut dyn Iterator<Item = &'static str>| words.map(str::to_owned).collect();
    let values = match option.flag {
        Flag::File => ValueHint::File,
        Flag::Sections => ValueHint::Commas(owned(&mut log::list_section_words())),
        Flag::Format => ValueHint::Commas(owned(&mut query::list_modifiers())),
        Flag::SelectiveQuery(_) => ValueHint::Commas(owned(
            &mut list_fields(&spellings)
                .into_iter()
                .flat_map(|field| field.names),
        )),
        _ => ValueHint::Any,
    };
    let passthrough = if passthrough::has_meaning_in_gpumon(option.flag) {
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

#[cfg(test)]
mod tests;
