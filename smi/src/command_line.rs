//! A parser for nvidia-smi's command line, with the same error messages as nvidia-smi. It knows the
//! subcommands, and detects which arguments of `gpumon` are meant for nvidia-smi.

use std::{iter::Peekable, path::PathBuf, time::Duration};

use super::{
    Refusal, dmon, log, nvlink,
    options::{self, Flag, OptionDef},
    pmon,
    query::{self, QueryKind},
    subcommand::{Arity, Subcommand},
    topo,
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
        pause: typed.parse_loop_interval()?,
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
            if let Some(refusal) = options::find_option_refusal(word) {
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

    fn parse_loop_interval(&self) -> Result<Option<Duration>, Refusal> {
        let Some(word) = self
            .0
            .iter()
            .find(|word| matches!(word.option.flag, Flag::Loop | Flag::LoopMs))
        else {
            return Ok(None);
        };
        // If the number is invalid, the default is used, as for a missing number.
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

// nvidia-smi's subcommands: those that gpumon supports, and the names of those that only NVIDIA's
// own tool supports.

pub(super) static SUBCOMMANDS: [Subcommand; 4] = [
    Subcommand::new(&dmon::SYNTAX, dmon::run),
    Subcommand::new(&pmon::SYNTAX, pmon::run),
    Subcommand::new(&topo::SYNTAX, topo::run),
    Subcommand::new(&nvlink::SYNTAX, nvlink::run),
];

/// The nvidia-smi 580 subcommands that gpumon does not support.
const HANDED_OVER_SUBCOMMANDS: [&str; 19] = [
    "base-clocks",
    "boost-slider",
    "c2c",
    "clocks",
    "compute-policy",
    "conf-compute",
    "daemon",
    "drain",
    "encodersessions",
    "fbcsessions",
    "gpm",
    "mig",
    "pci",
    "power-hint",
    "power-profiles",
    "power-smoothing",
    "prm",
    "replay",
    "vgpu",
];

pub(crate) fn find_subcommand(name: &str) -> Option<&'static Subcommand> {
    SUBCOMMANDS
        .iter()
        .find(|subcommand| subcommand.syntax.name == name)
}

/// Returns `true` if NVIDIA's own nvidia-smi must run the subcommand `name`.
pub(crate) fn is_nvidia_only_subcommand(name: &str) -> bool {
    HANDED_OVER_SUBCOMMANDS.contains(&name)
}

// Detection of nvidia-smi options and subcommands in the arguments of `gpumon`.

/// Returns `true` if the arguments of `gpumon` are meant for nvidia-smi. This is the case if the
/// first word is `smi` or an nvidia-smi subcommand that gpumon does not have, or if there is an
/// option that only nvidia-smi has. `is_own` returns whether a word is a gpumon command; options
/// after such a command belong to gpumon.
pub fn belongs_to_nvidia_smi(words: &[String], is_own: impl Fn(&str) -> bool) -> bool {
    let is_nvidias = |word: &String| match options::find_option(word) {
        Some(option) => !has_meaning_in_gpumon(option.flag),
        // `--columns` is an option of gpumon, where it selects columns.
        None => options::is_option(word) && !word.starts_with("--columns"),
    };
    let is_subcommand =
        |name: &str| find_subcommand(name).is_some() || is_nvidia_only_subcommand(name);
    words
        .first()
        .is_some_and(|word| word == "smi" || (is_subcommand(word) && !is_own(word)))
        || words
            .iter()
            .take_while(|word| word.starts_with('-') || !is_own(word))
            .any(is_nvidias)
}

/// Returns `true` if an option also has a meaning in plain `gpumon`.
pub(super) fn has_meaning_in_gpumon(flag: Flag) -> bool {
    matches!(flag, Flag::Help | Flag::Version | Flag::Id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_meant_for_nvidia_smi(line: &str) -> bool {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        belongs_to_nvidia_smi(&words, |word| {
            ["collect", "serve", "wait", "doctor"].contains(&word)
        })
    }

    #[test]
    fn arguments_are_recognized_as_gpumon_or_nvidia_smi() {
        for line in [
            "-L",
            "-q -i 0",
            "-i 0 -q -d MEMORY",
            "--query-gpu=name --format=csv",
            "-l 1",
            "-col 2",
            "-pm 1",
            "dmon -c 1",
            "mig -lgi",
            "topo -m",
        ] {
            assert!(is_meant_for_nvidia_smi(line), "{line}");
        }
        for line in [
            "",
            "--json",
            "--csv --columns index,memory",
            "--columns=index",
            "-i 0",
            "--help",
            "collect --count 1",
            "serve --port 1",
            "wait --free 20GiB -- nvidia-smi -L",
            "doctor",
        ] {
            assert!(!is_meant_for_nvidia_smi(line), "{line}");
        }
    }
}
