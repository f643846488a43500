//! Description of nvidia-smi's command line, for shell completions and the manual.
//!
//! The description is built from the tables that parse the command line and from the help texts.
//! Options that only NVIDIA's own tool supports are left out.

mod help_text;

use super::{
    HELP, log,
    options::{Flag, OPTIONS, OptionDef},
    passthrough,
    query::{self, QueryKind},
    subcommands::SUBCOMMANDS,
    switches::{Arity, Switch, Values},
};

/// nvidia-smi itself, or one of its commands.
pub struct CommandSpec {
    /// The name of the command; `smi` for nvidia-smi itself.
    pub name: &'static str,
    /// The description as a sentence without a period.
    pub about: String,
    /// The options of the command.
    pub options: Vec<OptionSpec>,
}

pub struct OptionSpec {
    /// The spellings of the option, short form first.
    pub spellings: Vec<&'static str>,
    /// The description as a sentence without a period.
    pub about: String,
    /// Whether the option takes a value.
    pub arity: Arity,
    /// The values for completion.
    pub values: ValueHint,
    /// The spellings that plain `gpumon` also accepts for this option.
    pub passthrough: Vec<&'static str>,
}

/// The possible values of an option.
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
    /// A combination of these letters.
    Letters(Vec<String>),
}

/// Returns nvidia-smi itself, followed by its commands.
pub fn commands() -> Vec<CommandSpec> {
    let itself = CommandSpec {
        name: "smi",
        about: String::new(),
        options: OPTIONS.iter().map(own).collect(),
    };
    let subcommands = SUBCOMMANDS.iter().map(|own| CommandSpec {
        name: own.form.name,
        about: help_text::headline(&own.form.help()),
        options: own
            .form
            .switches()
            .into_iter()
            .filter(|switch| !own.form.refuses(switch.spellings[0]))
            .map(|switch| typed(switch, own.form.usage))
            .collect(),
    });
    std::iter::once(itself).chain(subcommands).collect()
}

fn typed(switch: Switch, usage: &str) -> OptionSpec {
    OptionSpec {
        about: help_text::of_switch(usage, &switch.spellings).unwrap_or_default(),
        spellings: switch.spellings,
        arity: switch.arity,
        values: match switch.values {
            Values::Any => ValueHint::Any,
            Values::File => ValueHint::File,
            Values::One(words) => {
                ValueHint::One(words.iter().map(|word| (*word).to_owned()).collect())
            }
            Values::Commas(words) => ValueHint::Commas(words()),
            Values::Letters(letters) => {
                ValueHint::Letters(letters.chars().map(String::from).collect())
            }
        },
        passthrough: Vec::new(),
    }
}

fn own(option: &OptionDef) -> OptionSpec {
    let spellings = option.spellings();
    let about = match option.flag {
        Flag::HelpSelectiveQuery(_) => format!(
            "What --{} knows",
            spellings[0].trim_start_matches("--help-")
        ),
        _ => help_text::of_option(HELP, &spellings).unwrap_or_default(),
    };
    let owned = |words: &mut dyn Iterator<Item = &'static str>| words.map(str::to_owned).collect();
    let values = match option.flag {
        Flag::File => ValueHint::File,
        Flag::Sections => ValueHint::Commas(owned(&mut log::section_words())),
        Flag::Format => ValueHint::Commas(owned(&mut query::modifiers())),
        Flag::SelectiveQuery(_) => ValueHint::Commas(owned(
            &mut fields(&spellings).into_iter().flat_map(|field| field.names),
        )),
        _ => ValueHint::Any,
    };
    let passthrough = if passthrough::is_shared(option.flag) {
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

/// Returns the fields of a query option; none for other options.
pub fn fields(spellings: &[&'static str]) -> Vec<query::FieldHelp> {
    let query = QueryKind::ALL
        .into_iter()
        .find(|query| spellings.contains(&query.switch()));
    query.map_or_else(Vec::new, query::fields)
}

#[cfg(test)]
mod tests;
