//! `gpumon completions`: what a shell needs to complete gpumon's arguments, made of the arguments themselves.

use std::io::{self, Write};

use clap::{CommandFactory, ValueEnum, ValueHint, builder::PossibleValuesParser};
use clap_complete::{Shell, generate};

use crate::{args::Args, exit::Failure};

/// Print the completions of a shell, which the wheel installs where the shells look
///
/// With another way of installation, put them there by hand. What is read at the next start of the shell:
///
/// bash: ~/.local/share/bash-completion/completions/gpumon (with the package bash-completion)
///
/// zsh: _gpumon in a folder of $fpath, as /usr/local/share/zsh/site-functions
///
/// fish: ~/.config/fish/completions/gpumon.fish
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    shell: Completed,
}

const EXAMPLES: &str = "\
Examples:
  source <(gpumon completions bash)
      Completions for this bash alone.
  gpumon completions fish > ~/.config/fish/completions/gpumon.fish
      Completions for every fish of this user.";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Completed {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let shell = match args.shell {
        Completed::Bash => Shell::Bash,
        Completed::Zsh => Shell::Zsh,
        Completed::Fish => Shell::Fish,
    };
    // What is written into memory cannot fail, as the pipe may.
    let mut script = Vec::new();
    let mut command = command();
    generate(shell, &mut command, "gpumon", &mut script);
    if shell == Shell::Fish {
        script.extend(fish_values(&command).into_bytes());
    }
    io::stdout().write_all(&script)?;
    Ok(())
}

/// The arguments, with the values that are worth proposing where others are valid, too.
fn command() -> clap::Command {
    let all = Args::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<_> = shown.map(|command| command.get_name().to_owned()).collect();
    all.mut_subcommand("man", |man| {
        man.mut_arg("command", |command| command.value_parser(PossibleValuesParser::new(names)))
    })
    .mut_arg("source", |source| source.value_parser(["auto", "nvml", "sim", "sim:8"]))
    .mut_arg("nvml_lib", |library| library.value_hint(ValueHint::FilePath))
}

/// What the script for fish lacks: the values of arguments without a name, and those of options before a command.
fn fish_values(command: &clap::Command) -> String {
    let values = |argument: &clap::Arg| {
        let names = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect::<Vec<_>>();
        (!names.is_empty()).then(|| names.join(" "))
    };
    let options = command.get_opts().filter_map(|option| {
        Some(format!("complete -c gpumon -l {} -r -f -a \"{}\"\n", option.get_long()?, values(option)?))
    });
    let positionals = command.get_subcommands().flat_map(|subcommand| {
        let condition = format!("__fish_gpumon_using_subcommand {}", subcommand.get_name());
        let line = move |values| format!("complete -c gpumon -n \"{condition}\" -f -a \"{values}\"\n");
        subcommand.get_positionals().filter_map(values).map(line)
    });
    options.chain(positionals).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_proposed_can_be_typed() {
        let mut proposing = command();
        proposing.build();
        let source = proposing.get_arguments().find(|argument| argument.get_id() == "source").unwrap();
        let proposed = source.get_possible_values();
        assert_eq!(proposed.len(), 4);
        for value in proposed {
            let typed = Args::command().try_get_matches_from(["gpumon", "--source", value.get_name()]);
            assert!(typed.is_ok(), "{value:?}");
        }
    }
}
