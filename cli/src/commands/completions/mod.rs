//! `gpumon completions`: generates shell completions from the definitions of the command line.

use clap::{
    ValueHint,
    builder::{PossibleValuesParser, TypedValueParser},
};
use clap_complete::{Shell, generate};
use gpumon_probe::vendor::SourceChoice;
use gpumon_smi::{
    Arity,
    cli_spec::{CommandSpec, OptionSpec, ValueHint as Hint, list_commands},
};

use crate::{
    commands::{bench, oom, tutorials},
    exit::Result,
    terminal::output::print_raw,
};

/// Print the completions for a shell
///
/// Packages install the completions for bash, zsh and fish. The completions include the options of
/// nvidia-smi after `gpumon smi` and `gpumon`, but not for a link named nvidia-smi.
///
/// To install them manually, write them to:
///
/// bash: ~/.local/share/bash-completion/completions/gpumon (with the package bash-completion)
///
/// zsh: _gpumon in a folder of $fpath, for example /usr/local/share/zsh/site-functions
///
/// fish: ~/.config/fish/completions/gpumon.fish
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell to print completions for
    #[arg(value_parser = build_shell_parser())]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(gpumon completions bash)
      Enable completions in this shell.
  gpumon completions fish > ~/.config/fish/completions/gpumon.fish
      Install completions for this user.";

fn build_shell_parser() -> impl TypedValueParser<Value = Shell> {
    PossibleValuesParser::new(["bash", "zsh", "fish"]).try_map(|name| name.parse::<Shell>())
}

/// Prints the completions of the command line `gpumon`.
pub(crate) fn run(gpumon: &clap::Command, args: &CompletionsArgs) -> Result {
    let shell = args.shell;
    // The script is generated in memory first, because `generate` panics if writing fails, for
    // example to a closed pipe.
    let mut script = Vec::new();
    let mut command = add_value_suggestions(gpumon);
    generate(shell, &mut command, "gpumon", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Fish {
        script.push_str(&list_fish_values(&command));
    }
    print_raw(&add_smi_completions(
        shell,
        &script,
        &list_visible_command_names(&command),
    ))
}

/// Returns a copy of the command line `gpumon` in which some arguments with free-form values have
/// suggestions for these values.
fn add_value_suggestions(gpumon: &clap::Command) -> clap::Command {
    let all = remove_hidden_subcommands(gpumon);
    let names = list_visible_command_names(&all);
    let suggestions = [
        ("man", "command", PossibleValuesParser::new(&names)),
        ("help", "path", PossibleValuesParser::new(&names)),
        ("bench", "ids", bench::list_accepted_ids().into()),
        (
            "tutorials",
            "cases",
            tutorials::list_accepted_cases().into(),
        ),
        ("oom", "scenario", oom::list_accepted_scenarios().into()),
    ];
    suggestions
        .into_iter()
        .fold(all, |gpumon, (command, argument, values)| {
            gpumon.mut_subcommand(command, |command| {
                command.mut_arg(argument, |argument| argument.value_parser(values))
            })
        })
        .mut_arg("source", |source| {
            source.value_parser(SourceChoice::COMPLETIONS)
        })
        .mut_arg("nvml_lib", |library| {
            library.value_hint(ValueHint::FilePath)
        })
}

/// Returns a copy of the command line `all` without hidden subcommands, which the generators would
/// otherwise suggest.
fn remove_hidden_subcommands(all: &clap::Command) -> clap::Command {
    let shown = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned();
    let version = all.get_version().unwrap_or_default().to_owned();
    clap::Command::new("gpumon")
        .version(version)
        .disable_help_subcommand(true)
        .args(all.get_arguments().cloned())
        .subcommands(shown)
}

fn list_visible_command_names(gpumon: &clap::Command) -> Vec<String> {
    let shown = gpumon
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    shown.map(|command| command.get_name().to_owned()).collect()
}

/// Returns completions for fish that are missing in clap's generated script: values of positional
/// arguments, and values of options before the subcommand.
fn list_fish_values(command: &clap::Command) -> String {
    let values = |argument: &clap::Arg| {
        let names = argument
            .get_possible_values()
            .iter()
            .map(|value| value.get_name().to_owned())
            .collect::<Vec<_>>();
        (!names.is_empty()).then(|| names.join(" "))
    };
    let options = command.get_opts().filter_map(|option| {
        let condition = "__fish_gpumon_smi_is own start open";
        let (long, values) = (option.get_long()?, values(option)?);
        Some(format!(
            "complete -c gpumon -n \"{condition}\" -l {long} -r -f -a \"{values}\"\n"
        ))
    });
    let positionals = command.get_subcommands().flat_map(|subcommand| {
        let condition = format!("__fish_gpumon_using_subcommand {}", subcommand.get_name());
        let line =
            move |values| format!("complete -c gpumon -n \"{condition}\" -f -a \"{values}\"\n");
        subcommand.get_positionals().filter_map(values).map(line)
    });
    options.chain(positionals).collect()
}

/// Adds completions for the commands and options of nvidia-smi to a script. `own` contains the
/// names of gpumon's own commands.
fn add_smi_completions(shell: Shell, script: &str, own: &[String]) -> String {
    let commands = list_commands();
    let own: Vec<&str> = own
        .iter()
        .map(String::as_str)
        .filter(|name| *name != "smi")
        .collect();
    match shell {
        Shell::Zsh => {
            // The script `smi.zsh` defines its own function `_gpumon`, which calls clap's function.
            // Clap's function has the same name, so it is renamed to `_gpumon_own`.
            let (before, _) = script
                .rsplit_once("\nif [ \"$funcstack[1]\"")
                .unwrap_or((script, ""));
            let before = before.replacen("\n_gpumon() {", "\n_gpumon_own() {", 1);
            format!(
                "{before}\n{}{}",
                fill_word_template(&commands, &own),
                include_str!("smi.zsh")
            )
        }
        Shell::Fish => format!("{script}{}", format_fish_completions(&commands, &own)),
        _ => format!(
            "{script}\n{}{}",
            fill_word_template(&commands, &own),
            include_str!("smi.bash")
        ),
    }
}

fn fill_word_template(commands: &[CommandSpec], own: &[&str]) -> String {
    replace_words(include_str!("words.sh"), commands, own, "|")
        .replace("@OPTIONS@", &format_option_cases(commands))
        .replace("@VALUES@", &format_value_cases(commands))
}

/// Replaces the placeholders for lists of words in a template.
fn replace_words(
    template: &str,
    commands: &[CommandSpec],
    own: &[&str],
    separator: &str,
) -> String {
    let names: Vec<_> = commands[1..].iter().map(|command| command.name).collect();
    let options = commands[0].options.iter();
    let passthrough: Vec<_> = options
        .flat_map(|option| option.passthrough.iter().copied())
        .collect();
    template
        .replace("@COMMANDS@", &names.join(separator))
        .replace("@OWN@", &own.join(separator))
        .replace("@PASSTHROUGH@", &passthrough.join(separator))
}

/// Returns the branches of a shell `case`, one for each command of nvidia-smi. A branch prints one
/// line per option name, such as `-L:Every GPU`.
fn format_option_cases(commands: &[CommandSpec]) -> String {
    let case = |name: &str, lines: Vec<String>| {
        format!(
            "        {name}) printf '%s\\n' \\\n            {} ;;",
            lines.join(" \\\n            ")
        )
    };
    let lines = |option: &OptionSpec, spellings: &[&str]| {
        spellings
            .iter()
            .map(|spelling| quote_for_shell(&format!("{spelling}:{}", option.about)))
            .collect::<Vec<_>>()
    };
    let passthrough = commands[0]
        .options
        .iter()
        .flat_map(|option| lines(option, &option.passthrough))
        .collect();
    let subcommands = commands[1..]
        .iter()
        .map(|command| quote_for_shell(&format!("{}:{}", command.name, command.about)))
        .collect();
    let of_each = commands.iter().map(|command| {
        case(
            command.name,
            command
                .options
                .iter()
                .flat_map(|option| lines(option, &option.spellings))
                .collect(),
        )
    });
    of_each
        .chain([
            case("passthrough", passthrough),
            case("commands", subcommands),
        ])
        .collect::<Vec<_>>()
        .join("\n")
}

fn format_value_cases(commands: &[CommandSpec]) -> String {
    let mut cases = Vec::new();
    for command in commands {
        for option in command
            .options
            .iter()
            .filter(|option| option.arity == Arity::Required)
        {
            let keys: Vec<String> = option
                .spellings
                .iter()
                .map(|spelling| format!("'{} {spelling}'", command.name))
                .collect();
            let text = match &option.values {
                Hint::Any => "?".to_owned(),
                Hint::File => "/".to_owned(),
                Hint::One(words) => format!("1 {}", words.join(" ")),
                Hint::Commas(words) => format!(", {}", words.join(" ")),
                Hint::Letters(letters) => format!("+ {}", letters.join(" ")),
            };
            cases.push(format!(
                "        {}) echo {} ;;",
                keys.join("|"),
                quote_for_shell(&text)
            ));
        }
    }
    cases.join("\n")
}

/// Quotes a word for all three shells. `'\''` is a single quote in each of them.
fn quote_for_shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn format_fish_completions(commands: &[CommandSpec], own: &[&str]) -> String {
    let mut lines =
        vec!["complete -c gpumon -n 'not __fish_gpumon_smi_is own open start' -f".to_owned()];
    for command in &commands[1..] {
        let about = quote_for_shell(&command.about);
        lines.push(format!(
            "complete -c gpumon -n '__fish_gpumon_smi_is start smi-start' -f -a {} -d {about}",
            command.name
        ));
    }
    for command in commands {
        for option in &command.options {
            let condition = if command.name == "smi" {
                "smi smi-start"
            } else {
                command.name
            };
            lines.push(format_fish_line(condition, option, &option.spellings));
            if !option.passthrough.is_empty() {
                lines.push(format_fish_line("start open", option, &option.passthrough));
            }
        }
    }
    replace_words(include_str!("smi.fish"), commands, own, " ")
        .replace("@LINES@", &lines.join("\n"))
}

fn format_fish_line(condition: &str, option: &OptionSpec, spellings: &[&str]) -> String {
    let flags: Vec<String> = spellings
        .iter()
        // In fish, single-dash options are marked as “old-style”, because nvidia-smi's short
        // options cannot be combined.
        .map(|spelling| match spelling.strip_prefix("--") {
            Some(long) => format!("-l {long}"),
            None => format!("-o {}", spelling.trim_start_matches('-')),
        })
        .collect();
    let values = match &option.values {
        _ if option.arity == Arity::None => String::new(),
        Hint::Any if option.arity == Arity::Optional => String::new(),
        Hint::Any => " -x".to_owned(),
        Hint::File => " -r -F".to_owned(),
        Hint::One(words) => format!(" -x -a '{}'", words.join(" ")),
        Hint::Commas(words) => {
            format!(" -x -a '(__fish_gpumon_smi_list {})'", words.join(" "))
        }
        Hint::Letters(letters) => {
            format!(" -x -a '(__fish_gpumon_smi_letters {})'", letters.join(" "))
        }
    };
    let (flags, about) = (flags.join(" "), quote_for_shell(&option.about));
    format!("complete -c gpumon -n '__fish_gpumon_smi_is {condition}' {flags} -d {about}{values}")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::args::Args;

    use super::*;

    #[test]
    fn suggested_sources_are_valid() {
        let mut proposing = add_value_suggestions(&Args::command());
        proposing.build();
        let source = proposing
            .get_arguments()
            .find(|argument| argument.get_id() == "source")
            .unwrap();
        let proposed = source.get_possible_values();
        assert_eq!(proposed.len(), 6);
        for value in proposed {
            let typed =
                Args::command().try_get_matches_from(["gpumon", "--source", value.get_name()]);
            assert!(typed.is_ok(), "{value:?}");
        }
    }

    #[test]
    fn clap_function_in_zsh_script_is_renamed() {
        let script = "#compdef gpumon\n\n_gpumon() {\n    own\n}\n\n\
                      if [ \"$funcstack[1]\" = \"_gpumon\" ]; then\nfi\n";
        let all = add_smi_completions(Shell::Zsh, script, &[]);
        assert!(
            all.starts_with("#compdef gpumon\n\n_gpumon_own() {\n    own\n}\n"),
            "{all}"
        );
        assert_eq!(all.matches("\n_gpumon() {").count(), 1);
        assert_eq!(all.matches("$funcstack[1]").count(), 1);
    }

    #[test]
    fn completion_templates_have_no_unfilled_placeholders() {
        let own = ["collect".to_owned(), "smi".to_owned()];
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let all = add_smi_completions(shell, "", &own);
            let is_gap =
                |word: &str| word.starts_with('@') && word.ends_with('@') && word.len() > 2;
            assert!(!all.split_whitespace().any(is_gap), "{shell}");
            assert!(
                all.contains("--query-gpu") && all.contains("clocks.current.graphics"),
                "{shell}"
            );
        }
    }

    #[test]
    fn single_quote_is_escaped() {
        assert_eq!(quote_for_shell("NVIDIA's"), r"'NVIDIA'\''s'");
    }
}
