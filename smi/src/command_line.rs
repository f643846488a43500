//! A parser for nvidia-smi's command line, with the same error messages as nvidia-smi.

use std::{iter::Peekable, path::PathBuf, time::Duration};

use super::{
    Refusal, log,
    options::{self, Flag, OptionDef},
    query::{self, QueryKind},
    switches::Arity,
};

/// A parsed command line.
pub(crate) struct CommandLine {
    pub(crate) command: Command,
    /// The values of all `-i` options. Every command rejects multiple values, but only after the
    /// GPUs have been enumerated.
    pub(crate) ids: Vec<String>,
    /// The output file given with `-f`.
    pub(crate) file: Option<PathBuf>,
    /// The pause between rounds of output, or `None` for a single round.
    pub(crate) pause: Option<Duration>,
    /// Whether warnings affect the exit code (`-eow`).
    pub(crate) error_on_warning: bool,
}

pub(crate) enum Command {
    Help,
    Version,
    Summary,
    ListGpus,
    Log(Option<Vec<log::Section>>),
    Xml { with_dtd: bool },
    Dtd,
    Query(query::Request),
    HelpQuery(QueryKind),
}

/// The default value of `-l` in seconds, and of `-lms` in milliseconds.
const DEFAULT_PAUSE: u64 = 5;

/// Parses the command-line arguments, without the program's name.
pub(crate) fn parse(words: &[String]) -> Result<CommandLine, Refusal> {
    let typed = TypedOptions::parse(words)?;
    let command = choose_command(&typed)?;
    Ok(CommandLine {
        command,
        ids: typed.values(Flag::Id),
        file: typed.value(Flag::File).map(PathBuf::from),
        pause: typed.parse_pause()?,
        error_on_warning: typed.contains(Flag::ErrorOnWarning),
    })
}

struct TypedOption<'a> {
    option: &'static OptionDef,
    text: &'a str,
    value: Option<&'a str>,
}

/// All options, in the order in which they were typed.
struct TypedOptions<'a>(Vec<TypedOption<'a>>);

impl<'a> TypedOptions<'a> {
    fn parse(words: &'a [String]) -> Result<Self, Refusal> {
        let mut typed = Vec::new();
        let mut words = words.iter().map(String::as_str).peekable();
        let value =
            |words: &mut Peekable<_>| words.next_if(|next: &&'a str| !options::is_option(next));
        while let Some(word) = words.next() {
            if let Some(refusal) = options::find_refusal(word) {
                return Err(refusal);
            }
            let option = options::find_option(word)
                .ok_or_else(|| make_unrecognized_option_refusal(word).leave_to_nvidia_smi())?;
            let value = match (word.split_once('='), option.arity) {
                (Some((_, value)), _) => Some(value),
                (None, Arity::None) => None,
                (None, Arity::Required) => {
                    Some(value(&mut words).ok_or_else(|| make_missing_value_refusal(word))?)
                }
                (None, Arity::Optional) => value(&mut words),
            };
            typed.push(TypedOption {
                option,
                text: word,
                value,
            });
            // Help is shown even if the options that follow are invalid.
            if option.flag == Flag::Help {
                break;
            }
        }
        Ok(Self(typed))
    }

    fn find_option(&self, asked: Flag) -> Option<&TypedOption<'a>> {
        self.0.iter().find(|word| word.option.flag == asked)
    }

    fn contains(&self, asked: Flag) -> bool {
        self.find_option(asked).is_some()
    }

    fn value(&self, asked: Flag) -> Option<&'a str> {
        self.find_option(asked)?.value
    }

    fn values(&self, asked: Flag) -> Vec<String> {
        let words = self.0.iter().filter(|word| word.option.flag == asked);
        words
            .filter_map(|word| word.value.map(str::to_owned))
            .collect()
    }

    /// Returns the queries (`--query-...`) with the fields to show.
    fn queries(&self) -> impl Iterator<Item = (QueryKind, Option<&'a str>)> {
        self.0.iter().filter_map(|word| match word.option.flag {
            Flag::SelectiveQuery(kind) => Some((kind, word.value)),
            _ => None,
        })
    }

    fn parse_pause(&self) -> Result<Option<Duration>, Refusal> {
        let Some(word) = self
            .0
            .iter()
            .find(|word| matches!(word.option.flag, Flag::Loop | Flag::LoopMs))
        else {
            return Ok(None);
        };
        // An invalid number is treated like a missing number.
        let number = word
            .value
            .map_or(Some(DEFAULT_PAUSE), |text| text.parse().ok())
            .unwrap_or(DEFAULT_PAUSE);
        if number == 0 {
            return Err(Refusal::new(
                2,
                "Provided [-l(ms) | --loop(-ms)=] value is incorrect. Loop frequency must be \
                 greater than 0.\n\n",
            ));
        }
        let unit = if word.option.flag == Flag::Loop {
            Duration::from_secs(1)
        } else {
            Duration::from_millis(1)
        };
        Ok(Some(
            unit.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX)),
        ))
    }
}

const HELP_HINT: &str = " Please run 'nvidia-smi -h' for help.\n\n";

fn make_missing_value_refusal(word: &str) -> Refusal {
    Refusal::new_error(
        255,
        &format!("Option {word} is missing its value."),
        HELP_HINT,
    )
}

fn make_unrecognized_option_refusal(word: &str) -> Refusal {
    Refusal::new_error(
        255,
        &format!("Option {word} is not recognized."),
        " Please run 'nvidia-smi -h'.\n\n",
    )
}

fn choose_command(typed: &TypedOptions<'_>) -> Result<Command, Refusal> {
    if typed.contains(Flag::Help) {
        return Ok(Command::Help);
    }
    for (asked, command) in [
        (Flag::ListGpus, Command::ListGpus),
        (Flag::Version, Command::Version),
    ] {
        if typed.contains(asked) {
            return require_single_option(typed, asked, command);
        }
    }
    let help = typed.0.iter().find_map(|word| match word.option.flag {
        Flag::HelpSelectiveQuery(kind) => Some(kind),
        _ => None,
    });
    if let Some(kind) = help {
        return Ok(Command::HelpQuery(kind));
    }
    if let Some((kind, fields)) = typed.queries().next() {
        return parse_selective_query(typed, kind, fields);
    }
    if let Some(word) = typed.find_option(Flag::Format) {
        return Err(make_unrecognized_option_refusal(word.text));
    }
    choose_log_or_summary(typed)
}

fn require_single_option(
    typed: &TypedOptions<'_>,
    asked: Flag,
    command: Command,
) -> Result<Command, Refusal> {
    if let Some(word) = typed.0.iter().find(|word| word.option.flag != asked) {
        return Err(Refusal::new_error(
            2,
            &format!("Option {} is not valid for this command.", word.text),
            HELP_HINT,
        ));
    }
    if typed.0.len() > 1 {
        return Err(Refusal::new_error(
            2,
            "Only one command can be run at a time.",
            HELP_HINT,
        ));
    }
    Ok(command)
}

fn parse_selective_query(
    typed: &TypedOptions<'_>,
    kind: QueryKind,
    fields: Option<&str>,
) -> Result<Command, Refusal> {
    let is_known = |flag| {
        matches!(
            flag,
            Flag::SelectiveQuery(_)
                | Flag::Format
                | Flag::Id
                | Flag::File
                | Flag::Loop
                | Flag::LoopMs
                | Flag::ErrorOnWarning
        )
    };
    if typed.queries().count() > 1 {
        return Err(Refusal::new(
            2,
            "Only one --query-* switch can be used at a time.\n",
        ));
    }
    if let Some(word) = typed.0.iter().find(|word| !is_known(word.option.flag)) {
        return Err(Refusal::new_error(
            2,
            &format!("Option {} is not recognized.", word.text),
            HELP_HINT,
        ));
    }
    let format = typed.value(Flag::Format);
    query::parse_request(kind, fields.unwrap_or_default(), format).map(Command::Query)
}

fn choose_log_or_summary(typed: &TypedOptions<'_>) -> Result<Command, Refusal> {
    let with_query = |flag: &str, what: &str| {
        let text = format!(
            "Invalid combination of input arguments. Specify -q/--query and {flag} to run {what}.  \
             Please run 'nvidia-smi -h' for help.\n\n"
        );
        Err(Refusal::new(2, text))
    };
    let (xml, dtd) = (typed.contains(Flag::Xml), typed.contains(Flag::Dtd));
    if !typed.contains(Flag::Query) {
        return match () {
            () if dtd => Ok(Command::Dtd),
            () if typed.contains(Flag::Sections) => with_query("-d/--display", "a filtered query"),
            () if xml => with_query("-x/--xml-format", "an XML query"),
            () => Ok(Command::Summary),
        };
    }
    if xml && typed.contains(Flag::Sections) {
        return Err(Refusal::new(
            2,
            "Invalid combination of input arguments: --display/-d flags can not be combined with \
             -x/--xml-format flags.\n",
        ));
    }
    if xml {
        return Ok(Command::Xml { with_dtd: dtd });
    }
    Ok(Command::Log(
        typed
            .value(Flag::Sections)
            .map(log::parse_sections)
            .transpose()?,
    ))
}
